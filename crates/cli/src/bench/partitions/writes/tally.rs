//! What became of the messages.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::writer::Outcome;
use crate::histogram::Histogram;

#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) acked: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    /// Of what was acknowledged.
    pub(super) latency: Histogram,
}

/// Clones are one tally.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(Arc<Mutex<Seen>>);

impl Tally {
    pub(super) fn record(&self, outcome: Outcome, latency: Duration) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Outcome::Acked => {
                seen.acked += 1;
                seen.latency.record(latency);
            }
            Outcome::Refused => seen.refused += 1,
            Outcome::Failed => seen.failed += 1,
        }
    }

    /// What was recorded since the last time.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
