//! What physical partitions took between two moments.

use saltern_store::throttled::PartitionLoad;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(in crate::bench::partitions) struct Load {
    /// Of all attempts to write.
    pub(in crate::bench::partitions) throttled_share: f64,
    pub(in crate::bench::partitions) busiest_wcu_per_s: f64,
}

impl Load {
    /// Every write here costs one unit, so units count what was admitted.
    pub(super) fn between(before: &[PartitionLoad], after: &[PartitionLoad], seconds: f64) -> Self {
        let units = || before.iter().zip(after).map(|(before, after)| after.write_units - before.write_units);
        let admitted: u64 = units().sum();
        let throttled: u64 =
            before.iter().zip(after).map(|(before, after)| after.throttled_writes - before.throttled_writes).sum();
        Self {
            throttled_share: throttled as f64 / (admitted + throttled).max(1) as f64,
            busiest_wcu_per_s: units().max().unwrap_or(0) as f64 / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_all_attempts_and_the_busiest_stands_for_itself() {
        let load =
            |write_units, throttled_writes| PartitionLoad { write_units, throttled_writes, ..Default::default() };
        let before = [load(100, 7), load(50, 0)];
        let after = [load(400, 107), load(150, 0)];
        assert_eq!(Load::between(&before, &after, 2.0), Load { throttled_share: 0.2, busiest_wcu_per_s: 150.0 });
        assert_eq!(Load::between(&before, &before, 2.0), Load { throttled_share: 0.0, busiest_wcu_per_s: 0.0 });
    }
}
