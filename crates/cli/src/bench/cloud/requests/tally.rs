//! What DynamoDB was asked for, as the adapter counts it.

use saltern_store::dynamodb::DynamoMetrics;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(super) struct Tally {
    pub(super) puts: u64,
    /// By exact key, one or many at once.
    pub(super) gets: u64,
    pub(super) queries: u64,
    pub(super) write_units: f64,
    pub(super) read_units: f64,
}

impl Tally {
    /// All so far.
    pub(super) fn of(metrics: &DynamoMetrics) -> Self {
        Self {
            puts: metrics.calls("PutItem"),
            gets: metrics.calls("GetItem") + metrics.calls("BatchGetItem"),
            queries: metrics.calls("Query"),
            write_units: metrics.write_units(),
            read_units: metrics.read_units(),
        }
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            puts: self.puts - before.puts,
            gets: self.gets - before.gets,
            queries: self.queries - before.queries,
            write_units: self.write_units - before.write_units,
            read_units: self.read_units - before.read_units,
        }
    }

    pub(super) fn calls(self) -> u64 {
        self.puts + self.gets + self.queries
    }
}
