//! Attempts at one put, paced as Saltern paces its own, so that the designs differ in their keys alone.

use std::time::{Duration, Instant};

use saltern_core::rng::SplitMix64;
use saltern_store::StoreError;

use super::writer::Outcome;

const BACKOFF_FIRST: Duration = Duration::from_millis(4);
const BACKOFF_MAX: Duration = Duration::from_millis(400);
const DEADLINE: Duration = Duration::from_secs(10);

/// Tries until the put is not throttled any more, or time is up.
pub(super) async fn until_admitted<F>(mut rng: SplitMix64, put: impl Fn() -> F) -> Outcome
where
    F: Future<Output = Result<(), StoreError>>,
{
    let deadline = Instant::now() + DEADLINE;
    let mut made = 0;
    loop {
        match put().await {
            Ok(()) => return Outcome::Acked,
            Err(StoreError::Throttled) => {}
            Err(_) => return Outcome::Failed,
        }
        let pause = pause(made, &mut rng);
        if Instant::now() + pause >= deadline {
            return Outcome::Failed;
        }
        made += 1;
        tokio::time::sleep(pause).await;
    }
}

/// Doubling, each between half and all of its length, so that many do not march in step.
fn pause(made: u32, rng: &mut SplitMix64) -> Duration {
    let full = BACKOFF_FIRST.saturating_mul(1 << made.min(10)).min(BACKOFF_MAX);
    let micros = u64::try_from(full.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(micros / 2 + rng.below(micros / 2 + 1))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn pauses_double_up_to_their_limit() {
        let mut rng = SplitMix64::new(1);
        for (made, full_ms) in [(0, 4), (1, 8), (6, 256), (7, 400), (40, 400)] {
            let full = Duration::from_millis(full_ms);
            assert!((0..100).all(|_| (full / 2..=full).contains(&pause(made, &mut rng))));
        }
    }

    #[tokio::test]
    async fn what_is_throttled_is_tried_again() {
        let tries = AtomicU32::new(0);
        let put = || async {
            match tries.fetch_add(1, Ordering::Relaxed) {
                0..3 => Err(StoreError::Throttled),
                _ => Ok(()),
            }
        };
        assert_eq!(until_admitted(SplitMix64::new(1), put).await, Outcome::Acked);
        assert_eq!(tries.into_inner(), 4);
    }
}
