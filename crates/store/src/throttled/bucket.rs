use std::time::Duration;

/// What may be saved up at least: units are counted by the second.
const SAVED_MIN: Duration = Duration::from_secs(1);

/// A token bucket. Whoever finds anything in it may take what it needs, if need be on credit: what a query costs is only
/// known when it has been read, and over time the rate holds all the same.
#[derive(Debug)]
pub(super) struct Bucket {
    per_s: f64,
    saved_max: f64,
    tokens: f64,
    /// Time on the caller's clock up to which the bucket has been filled.
    filled_at: Duration,
}

impl Bucket {
    /// A bucket with a second's worth in it.
    pub(super) fn new(per_s: f64, burst: Duration) -> Self {
        Self {
            per_s,
            saved_max: per_s * burst.max(SAVED_MIN).as_secs_f64(),
            tokens: per_s * SAVED_MIN.as_secs_f64(),
            filled_at: Duration::ZERO,
        }
    }

    /// Takes units if there is anything left.
    pub(super) fn take(&mut self, now: Duration, units: f64) -> bool {
        let passed = now.saturating_sub(self.filled_at);
        self.filled_at = self.filled_at.max(now);
        self.tokens = (self.tokens + passed.as_secs_f64() * self.per_s).min(self.saved_max);
        let any = self.tokens > 0.0;
        if any {
            self.tokens -= units;
        }
        any
    }

    /// Takes units that have been used already.
    pub(super) fn charge(&mut self, units: f64) {
        self.tokens -= units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn admitted(bucket: &mut Bucket, times: impl Iterator<Item = Duration>, units: f64) -> usize {
        times.filter(|now| bucket.take(*now, units)).count()
    }

    fn seconds(from: u32, to: u32, per_ms: u32) -> impl Iterator<Item = Duration> {
        (from * 1_000 * per_ms..to * 1_000 * per_ms).map(move |i| MS * i / per_ms)
    }

    #[test]
    fn a_flood_gets_the_rate_and_the_second_saved() {
        let mut bucket = Bucket::new(1_000.0, Duration::ZERO);
        let first = admitted(&mut bucket, seconds(0, 1, 4), 1.0);
        assert!((1_999..=2_001).contains(&first), "{first}");
        let then = admitted(&mut bucket, seconds(1, 11, 4), 1.0);
        assert!((9_999..=10_001).contains(&then), "{then}");
    }

    #[test]
    fn burst_is_saved_up_to_its_limit_and_no_further() {
        let mut bucket = Bucket::new(1_000.0, Duration::from_secs(300));
        assert!(bucket.take(Duration::from_secs(100_000), 0.0));
        let spent = admitted(&mut bucket, std::iter::repeat_n(Duration::from_secs(100_000), 400_000), 1.0);
        assert_eq!(spent, 300_000);
    }

    #[test]
    fn large_items_are_paid_for_later() {
        let mut bucket = Bucket::new(10.0, Duration::ZERO);
        assert!(bucket.take(Duration::ZERO, 65.0));
        assert!(!bucket.take(MS * 5_400, 1.0));
        assert!(bucket.take(MS * 5_600, 1.0));
    }
}
