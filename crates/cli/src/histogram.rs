//! Latencies in buckets a thirty-second of an octave wide: a percentile is at most 3 % off.

use std::time::Duration;

const SUB_BITS: u32 = 5;
const SUB: usize = 1 << SUB_BITS;
/// Up to 2^40 µs.
const BUCKETS: usize = 36 * SUB;

#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS] }
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, latency: Duration) {
        let us = usize::try_from(latency.as_micros()).unwrap_or(usize::MAX);
        self.counts[bucket(us).min(BUCKETS - 1)] += 1;
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// The latency that this share of all did not exceed, in milliseconds; 0 if there was none.
    pub(crate) fn percentile_ms(&self, share: f64) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let rank = total as f64 * share;
        let mut seen = 0;
        for (i, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen as f64 >= rank {
                return lowest_us(i + 1) as f64 / 1_000.0;
            }
        }
        0.0
    }
}

fn bucket(us: usize) -> usize {
    if us < SUB {
        return us;
    }
    let shift = us.ilog2() - SUB_BITS;
    (shift as usize) * SUB + (us >> shift)
}

fn lowest_us(bucket: usize) -> usize {
    if bucket < 2 * SUB {
        return bucket;
    }
    let shift = bucket / SUB - 1;
    (bucket - shift * SUB) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        for us in (0..5_000_000).step_by(7) {
            let (low, high) = (lowest_us(bucket(us)), lowest_us(bucket(us) + 1));
            assert!(low <= us && us < high, "{us}: {low}..{high}");
            assert!(high - low <= (us / SUB).max(1), "{us}: {low}..{high}");
        }
    }

    #[test]
    fn percentiles_of_a_ramp() {
        let mut latencies = Histogram::default();
        assert_eq!(latencies.percentile_ms(0.99), 0.0);
        (1..=1_000).for_each(|ms| latencies.record(Duration::from_millis(ms)));
        assert!((490.0..=520.0).contains(&latencies.percentile_ms(0.5)));
        assert!((980.0..=1_030.0).contains(&latencies.percentile_ms(0.99)));
    }
}
