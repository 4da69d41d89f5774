use std::num::NonZeroU32;
use std::time::Duration;

/// What one physical partition can take, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartitionLimits {
    pub physical_partitions: NonZeroU32,
    pub write_units_per_s: f64,
    pub read_units_per_s: f64,
    /// How much unused capacity a partition may save up, in seconds of its rate. Below one second there is nothing to
    /// count by, so zero means that a second's units may be used at any time within about a second.
    pub burst: Duration,
}

impl PartitionLimits {
    /// DynamoDB's figures.
    #[must_use]
    pub fn dynamodb(physical_partitions: NonZeroU32) -> Self {
        Self {
            physical_partitions,
            write_units_per_s: 1_000.0,
            read_units_per_s: 3_000.0,
            burst: Duration::from_secs(300),
        }
    }

    /// DynamoDB's figures for a partition that has nothing saved up: its burst is not guaranteed.
    #[must_use]
    pub fn without_burst(physical_partitions: NonZeroU32) -> Self {
        Self { burst: Duration::ZERO, ..Self::dynamodb(physical_partitions) }
    }
}
