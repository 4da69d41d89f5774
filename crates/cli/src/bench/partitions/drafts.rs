//! Made-up messages of one write unit each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use saltern_core::ids::{MessageId, ParticipantId};
use saltern_core::message::{Body, Draft};
use saltern_core::rng::SplitMix64;

const CONTENT_BYTES: usize = 100;

/// Makes messages whose ids never repeat. Two that are new make the same ones. Clones are one maker.
#[derive(Debug, Clone)]
pub(in crate::bench) struct Drafts {
    body: Arc<Body>,
    issued: Arc<AtomicU64>,
}

impl Drafts {
    pub(in crate::bench) fn new() -> Result<Self> {
        let body = Body {
            sender_id: ParticipantId::new("alice")?,
            receiver_id: Some(ParticipantId::new("bob")?),
            content: "x".repeat(CONTENT_BYTES),
            timestamp: Some("2026-11-15T04:20:00Z".into()),
        };
        Ok(Self { body: Arc::new(body), issued: Arc::default() })
    }

    /// As random as clients' ids are: a design that salts by them must not suffer from a counter's regularity.
    pub(in crate::bench) fn next(&self) -> Result<Draft> {
        let mut rng = SplitMix64::new(self.issued.fetch_add(1, Ordering::Relaxed));
        let id = MessageId::new(&format!("{:016x}{:016x}", rng.next_u64(), rng.next_u64()))?;
        Ok(Draft::new(id, Body::clone(&self.body))?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_message_is_another_and_costs_one_unit() {
        let drafts = Drafts::new().unwrap();
        let made: Vec<_> = (0..1_000).map(|_| drafts.next().unwrap()).collect();
        assert!(made.iter().all(|draft| draft.wcu() == 1));
        assert_eq!(made.iter().map(|draft| &draft.message_id).collect::<HashSet<_>>().len(), 1_000);
    }
}
