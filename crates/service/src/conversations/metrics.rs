//! What the conversation service counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::EncodeLabelValue;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum AppendResult {
    Appended,
    Replayed,
    Conflict,
    Overloaded,
    Registry,
    Unsettled,
    Full,
    Damaged,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: AppendResult,
}

/// Counters and histograms, to be registered with the server's registry.
#[derive(Debug, Clone)]
pub struct Metrics {
    appends: Family<ResultLabel, Counter>,
    /// Of `appends`, that of the most common result, so that it need not be looked up.
    appended: Counter,
    pub append_seconds: Histogram,
    pub read_seconds: Histogram,
    pub read_partitions: Counter,
    pub rows_read: Counter,
    pub rows_returned: Counter,
    pub reads_coalesced: Counter,
    pub reads_cached: Counter,
    pub tickets_wasted: Counter,
    pub pending_gaps_seen: Counter,
    pub voids_written: Counter,
    pub rows_lost: Counter,
    pub contents_unread: Counter,
    pub messages_erased: Counter,
    pub syncs: Counter,
    pub extensions: Counter,
    pub epochs_opened: Counter,
    pub store_throttles: Counter,
    pub store_retries: Counter,
}

/// 50 µs to 13 s, doubling.
fn latency() -> Histogram {
    Histogram::new((0..18).map(|i| 50e-6 * f64::from(1 << i)))
}

impl Default for Metrics {
    fn default() -> Self {
        let appends = Family::default();
        Self {
            appended: appends.get_or_create_owned(&ResultLabel { result: AppendResult::Appended }),
            appends,
            append_seconds: latency(),
            read_seconds: latency(),
            read_partitions: Counter::default(),
            rows_read: Counter::default(),
            rows_returned: Counter::default(),
            reads_coalesced: Counter::default(),
            reads_cached: Counter::default(),
            tickets_wasted: Counter::default(),
            pending_gaps_seen: Counter::default(),
            voids_written: Counter::default(),
            rows_lost: Counter::default(),
            contents_unread: Counter::default(),
            messages_erased: Counter::default(),
            syncs: Counter::default(),
            extensions: Counter::default(),
            epochs_opened: Counter::default(),
            store_throttles: Counter::default(),
            store_retries: Counter::default(),
        }
    }
}

impl Metrics {
    pub(super) fn count_append(&self, result: AppendResult) {
        match result {
            AppendResult::Appended => self.appended.inc(),
            result => self.appends.get_or_create(&ResultLabel { result }).inc(),
        };
    }

    pub fn register(&self, registry: &mut Registry) {
        registry.register("appends", "Messages by how their append ended", self.appends.clone());
        registry.register("append_seconds", "Time of an append", self.append_seconds.clone());
        registry.register("read_seconds", "Time of a page, coalesced or not", self.read_seconds.clone());
        let counters = [
            ("read_partitions", "Partitions asked by reads", &self.read_partitions),
            ("rows_read", "Rows that reads got from the store", &self.rows_read),
            ("rows_returned", "Messages that reads returned", &self.rows_returned),
            ("reads_coalesced", "Reads answered by another's query", &self.reads_coalesced),
            ("reads_cached", "Windows of history answered from memory", &self.reads_cached),
            ("tickets_wasted", "Tickets that did not become a message's place", &self.tickets_wasted),
            ("pending_gaps_seen", "Pending gaps that reads met", &self.pending_gaps_seen),
            ("voids_written", "Holes sealed with a void", &self.voids_written),
            ("rows_lost", "Rows that must exist but do not: sound the alarm", &self.rows_lost),
            (
                "contents_unread",
                "Contents that the archive lacks or holds damaged: sound the alarm",
                &self.contents_unread,
            ),
            ("messages_erased", "Messages whose content was erased", &self.messages_erased),
            ("syncs", "Conversations made known to the registry again", &self.syncs),
            ("extensions", "Horizons moved on", &self.extensions),
            ("epochs_opened", "Changes of n", &self.epochs_opened),
            ("store_throttles", "Throttles reported by the store", &self.store_throttles),
            ("store_retries", "Store calls tried again", &self.store_retries),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
    }
}
