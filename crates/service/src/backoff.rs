use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use saltern_core::rng::SplitMix64;

const BACKOFF_FIRST: Duration = Duration::from_millis(4);
const BACKOFF_MAX: Duration = Duration::from_millis(400);

/// Pauses between attempts: doubling, each between half and all of its length, so that many do not march in step.
#[derive(Debug)]
pub(crate) struct Jitter(AtomicU64);

impl Jitter {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// Before attempt number `attempt + 2`.
    pub(crate) fn pause(&self, attempt: u32) -> Duration {
        let full = BACKOFF_FIRST.saturating_mul(1 << attempt.min(10)).min(BACKOFF_MAX);
        let micros = u64::try_from(full.as_micros()).unwrap_or(u64::MAX);
        let mut rng = SplitMix64::new(self.0.fetch_add(1, Ordering::Relaxed));
        Duration::from_micros(micros / 2 + rng.below(micros / 2 + 1))
    }
}
