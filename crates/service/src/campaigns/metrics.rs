//! What the campaign service counts.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use saltern_core::campaigns::zones;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
pub enum EventResult {
    Applied,
    Stale,
    Rejected,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResultLabel {
    pub result: EventResult,
}

/// Counters and histograms, to be registered with the server's registry.
#[derive(Debug, Clone)]
pub struct CampaignMetrics {
    events: Family<ResultLabel, Counter>,
    pub puts: Counter,
    pub lookup_seconds: Histogram,
    pub lookup_keys: Counter,
    pub lookup_calls: Counter,
    pub partners_unread: Counter,
    pub markets_read: Counter,
    pub store_throttles: Counter,
    pub store_retries: Counter,
}

impl Default for CampaignMetrics {
    fn default() -> Self {
        Self {
            events: Family::default(),
            puts: Counter::default(),
            // 50 µs to 13 s, doubling.
            lookup_seconds: Histogram::new((0..18).map(|i| 50e-6 * f64::from(1 << i))),
            lookup_keys: Counter::default(),
            lookup_calls: Counter::default(),
            partners_unread: Counter::default(),
            markets_read: Counter::default(),
            store_throttles: Counter::default(),
            store_retries: Counter::default(),
        }
    }
}

impl CampaignMetrics {
    pub(super) fn count_event(&self, result: EventResult) {
        self.events.get_or_create(&ResultLabel { result }).inc();
    }

    pub fn register(&self, registry: &mut Registry) {
        let zones = zones();
        let in_use = Info::new([("source", zones.source().as_str().to_owned()), ("version", zones.version())]);
        registry.register("time_zone_database", "The time zone database in use", in_use);
        registry.register("campaign_events", "Events by what became of them", self.events.clone());
        registry.register("lookup_seconds", "Time of a lookup", self.lookup_seconds.clone());
        let counters = [
            ("boost_puts", "Boosts put, one for each area of an event", &self.puts),
            ("lookup_keys", "Keys that lookups asked for", &self.lookup_keys),
            ("lookup_calls", "Batches that lookups asked for", &self.lookup_calls),
            ("lookup_partners_unread", "Partners that lookups could not tell about", &self.partners_unread),
            ("markets_read", "Markets read from the store", &self.markets_read),
            ("campaign_store_throttles", "Throttles reported by the campaigns table", &self.store_throttles),
            ("campaign_store_retries", "Calls to the campaigns table tried again", &self.store_retries),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
    }
}
