use std::sync::Arc;

use saltern_core::ids::ConversationId;
use saltern_core::seq::SeqNo;
use saltern_service::conversations::{AppendError, ReadError};

use super::*;

fn registry_error() -> RegistryError {
    RegistryError(Arc::new(std::io::Error::other("connection refused")))
}

#[test]
fn every_service_error_is_a_problem() {
    let seq = SeqNo::clamped(17);
    let conversation = ConversationId::new("c").unwrap();
    let cases: Vec<(Problem, &str, u16)> = vec![
        (AppendError::Conflict(seq).into(), "message-id-conflict", 409),
        (AppendError::Overloaded.into(), "overloaded", 503),
        (AppendError::Registry(registry_error()).into(), "registry-unavailable", 503),
        (AppendError::Unsettled(None).into(), "outcome-unknown", 503),
        (AppendError::Full.into(), "conversation-full", 507),
        (ReadError::Overloaded.into(), "overloaded", 503),
        (ReadError::Unavailable(None).into(), "store-unavailable", 503),
        (ReadError::Lost { conversation, seq }.into(), "data-loss", 500),
        (registry_error().into(), "registry-unavailable", 503),
    ];
    for (problem, kind, status) in cases {
        assert_eq!(problem.kind.urn(), format!("urn:saltern:problem:{kind}"));
        assert_eq!(problem.kind.status().as_u16(), status, "{kind}");
        let needs_seq = matches!(problem.kind, Kind::MessageIdConflict | Kind::DataLoss);
        assert_eq!(problem.wire().seq_no, needs_seq.then_some(17), "{kind}");
        let response = problem.into_response();
        assert_eq!(response.headers().contains_key(header::RETRY_AFTER), status == 503, "{kind}");
    }
}

#[test]
fn the_cause_is_for_the_log_alone() {
    let problem = Problem::from(AppendError::Registry(registry_error()));
    assert_eq!(problem.cause.as_deref(), Some("registry out of reach: registry unavailable: connection refused"));
    assert!(!serde_json::to_string(&problem).unwrap().contains("refused"));
}
