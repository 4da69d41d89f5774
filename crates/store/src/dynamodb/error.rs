//! What a failed call means (S4).

use std::error::Error;
use std::sync::Arc;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use hyper_util::client::legacy::Error as HttpError;

use super::item::Damage;
use crate::port::StoreError;

/// Whether a call that was carried out leaves a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Write,
    Read,
}

/// What became of a call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Throttled,
    NotDone,
    Unknown,
}

/// DynamoDB says so before it does anything.
const THROTTLES: [&str; 3] = ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"];

pub(super) fn failed<E>(effect: Effect, error: SdkError<E>) -> StoreError
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match (fate(&error), effect) {
        (Fate::Throttled, _) => StoreError::Throttled,
        (Fate::Unknown, Effect::Write) => StoreError::Unknown(Arc::new(error)),
        (Fate::Unknown | Fate::NotDone, _) => StoreError::Unavailable(Arc::new(error)),
    }
}

fn fate<E: ProvideErrorMetadata>(error: &SdkError<E>) -> Fate {
    match error {
        SdkError::ConstructionFailure(_) => Fate::NotDone,
        SdkError::DispatchFailure(failure) => match failure.as_connector_error() {
            Some(error) if was_never_sent(error) => Fate::NotDone,
            _ => Fate::Unknown,
        },
        SdkError::ServiceError(answer) => answered(answer.err().code(), answer.raw().status().as_u16()),
        _ => Fate::Unknown,
    }
}

/// A refusal in DynamoDB's own words is final. One without a code is from something in between, which may have passed
/// the request on, and behind an error of the server the row may still appear.
fn answered(code: Option<&str>, status: u16) -> Fate {
    match (code, status) {
        (Some(code), _) if THROTTLES.contains(&code) => Fate::Throttled,
        (Some(_), 400..500) if status != 408 => Fate::NotDone,
        _ => Fate::Unknown,
    }
}

/// Without a connection, or without credentials to sign it, no request has left.
fn was_never_sent(error: &(dyn Error + 'static)) -> bool {
    let no_connection = error.downcast_ref::<HttpError>().is_some_and(HttpError::is_connect);
    no_connection || error.is::<CredentialsError>() || error.source().is_some_and(was_never_sent)
}

/// The condition failed, but the row in the way is not there to be seen (S3).
#[derive(Debug, thiserror::Error)]
#[error("server refused a put without the row that was in the way")]
pub(super) struct RowWithheld;

impl From<RowWithheld> for StoreError {
    fn from(error: RowWithheld) -> Self {
        Self::Unavailable(Arc::new(error))
    }
}

impl From<Damage> for StoreError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(Arc::new(damage))
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::error::ConnectorError;
    use aws_sdk_dynamodb::operation::put_item::PutItemError;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Some("ProvisionedThroughputExceededException"), 400, Fate::Throttled)]
    #[case(Some("ThrottlingException"), 400, Fate::Throttled)]
    #[case(Some("RequestLimitExceeded"), 400, Fate::Throttled)]
    #[case(Some("ThrottlingException"), 503, Fate::Throttled)]
    #[case(Some("TransactionConflictException"), 400, Fate::NotDone)]
    #[case(Some("ReplicatedWriteConflictException"), 400, Fate::NotDone)]
    #[case(Some("ValidationException"), 400, Fate::NotDone)]
    #[case(Some("ResourceNotFoundException"), 400, Fate::NotDone)]
    #[case(Some("AccessDeniedException"), 400, Fate::NotDone)]
    #[case(Some("ExpiredTokenException"), 403, Fate::NotDone)]
    #[case(Some("RequestTimeout"), 408, Fate::Unknown)]
    #[case(Some("InternalServerError"), 500, Fate::Unknown)]
    #[case(Some("ServiceUnavailable"), 503, Fate::Unknown)]
    #[case(None, 400, Fate::Unknown)]
    #[case(None, 502, Fate::Unknown)]
    #[case(None, 200, Fate::Unknown)]
    fn answers_are_told_apart(#[case] code: Option<&str>, #[case] status: u16, #[case] expected: Fate) {
        assert_eq!(answered(code, status), expected);
    }

    type Failure = SdkError<PutItemError>;

    #[rstest]
    #[case(Failure::construction_failure("no table"), Fate::NotDone)]
    #[case(Failure::timeout_error("too long"), Fate::Unknown)]
    #[case(Failure::dispatch_failure(ConnectorError::io("reset".into())), Fate::Unknown)]
    #[case(Failure::dispatch_failure(ConnectorError::timeout("slow".into())), Fate::Unknown)]
    #[case(Failure::dispatch_failure(ConnectorError::other(CredentialsError::not_loaded("none").into(), None)), Fate::NotDone)]
    fn failures_on_the_way_are_told_apart(#[case] error: Failure, #[case] expected: Fate) {
        assert_eq!(fate(&error), expected);
        let told = failed(Effect::Write, error);
        assert_eq!(matches!(told, StoreError::Unknown(_)), expected == Fate::Unknown, "{told:?}");
    }

    #[test]
    fn a_read_is_never_unknown() {
        let told = failed(Effect::Read, Failure::timeout_error("too long"));
        assert!(matches!(told, StoreError::Unavailable(_)), "{told:?}");
    }
}
