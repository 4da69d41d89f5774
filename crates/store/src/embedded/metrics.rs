use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// What the commit thread does. Clones count together.
#[derive(Debug, Clone)]
pub struct EmbeddedMetrics {
    commits: Counter,
    batch: Histogram,
    seconds: Histogram,
    queue: Gauge,
    moves: Histogram,
}

impl Default for EmbeddedMetrics {
    fn default() -> Self {
        Self {
            commits: Counter::default(),
            batch: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            seconds: Histogram::new(exponential_buckets(0.000_1, 2.0, 16)),
            queue: Gauge::default(),
            moves: Histogram::new(exponential_buckets(0.01, 2.0, 14)),
        }
    }
}

impl EmbeddedMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("store_commits", "Commits synced to disk", self.commits.clone());
        registry.register("store_commit_requests", "Requests per commit", self.batch.clone());
        let help = "Time of a commit, with its sync";
        registry.register_with_unit("store_commit", help, Unit::Seconds, self.seconds.clone());
        registry.register("store_commit_queue", "Requests waiting for the next commit", self.queue.clone());
        let help = "Time to move what the log holds into tables";
        registry.register_with_unit("store_move", help, Unit::Seconds, self.moves.clone());
    }

    pub(super) fn committed(&self, requests: usize, took: Duration) {
        self.commits.inc();
        self.batch.observe(f64::from(u32::try_from(requests).unwrap_or(u32::MAX)));
        self.seconds.observe(took.as_secs_f64());
    }

    pub(super) fn moved(&self, took: Duration) {
        self.moves.observe(took.as_secs_f64());
    }

    pub(super) fn waiting(&self, requests: usize) {
        self.queue.set(i64::try_from(requests).unwrap_or(i64::MAX));
    }
}
