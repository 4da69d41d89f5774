//! What the consumer counts, and where it shows it.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use rdkafka::statistics::Statistics;
use saltern_service::campaigns::{EventResult, ResultLabel};
use tokio::net::TcpListener;

use crate::campaigns::Counts;
use crate::campaigns::target::Target;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartitionLabel {
    topic: String,
    partition: i32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ConsumerMetrics {
    events: Family<ResultLabel, Counter>,
    lag: Family<PartitionLabel, Gauge>,
    pub(super) retries: Counter,
    /// Partitions that are paused, because what was read of them is not taken.
    pub(super) held_up: Gauge,
}

impl ConsumerMetrics {
    fn register(&self, registry: &mut Registry) {
        let events = "Events read from Kafka, by what became of them";
        registry.register("consumer_events", events, self.events.clone());
        let lag = "Events in a partition of ours that have not been written";
        registry.register("consumer_lag", lag, self.lag.clone());
        registry.register("consumer_retries", "Batches that were sent again", self.retries.clone());
        let held_up = "Partitions that are read no further until what was read of them is taken";
        registry.register("consumer_held_up", held_up, self.held_up.clone());
    }

    pub(super) fn count(&self, counts: Counts) {
        let Counts { applied, stale, rejected } = counts;
        for (result, count) in
            [(EventResult::Applied, applied), (EventResult::Stale, stale), (EventResult::Rejected, rejected)]
        {
            self.events.get_or_create(&ResultLabel { result }).inc_by(count);
        }
    }

    /// Applied, stale and rejected.
    pub(super) fn events(&self) -> [u64; 3] {
        [EventResult::Applied, EventResult::Stale, EventResult::Rejected]
            .map(|result| self.events.get_or_create(&ResultLabel { result }).get())
    }

    /// Of partitions that are ours, the client knows how far the broker is, and how far we are.
    pub(super) fn take_lag(&self, statistics: &Statistics) {
        self.lag.clear();
        for topic in statistics.topics.values() {
            for partition in topic.partitions.values().filter(|partition| partition.fetch_state == "active") {
                let places = [partition.stored_offset, partition.committed_offset, partition.lo_offset];
                let written = places.into_iter().find(|offset| *offset >= 0);
                // What is not known yet is not told.
                let (Some(written), 0..) = (written, partition.hi_offset) else { continue };
                let label = PartitionLabel { topic: topic.topic.clone(), partition: partition.partition };
                self.lag.get_or_create(&label).set((partition.hi_offset - written).max(0));
            }
        }
    }
}

/// Serves `/metrics` for as long as the process lives, and answers where.
pub(super) async fn serve(address: SocketAddr, metrics: &ConsumerMetrics, target: &Target) -> Result<SocketAddr> {
    let mut registry = Registry::with_prefix("saltern");
    metrics.register(&mut registry);
    target.register_metrics(&mut registry);
    let registry = Arc::new(registry);
    let shown = move || {
        let mut text = String::new();
        let written = prometheus_client::encoding::text::encode(&mut text, &registry);
        let status = if written.is_ok() { StatusCode::OK } else { StatusCode::INTERNAL_SERVER_ERROR };
        std::future::ready((status, [(header::CONTENT_TYPE, OPENMETRICS)], text))
    };
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let bound = listener.local_addr()?;
    let router = Router::new().route("/metrics", get(shown));
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(bound)
}
