use std::sync::atomic::AtomicU64;

use aws_sdk_dynamodb::types::ConsumedCapacity;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Units come in halves.
type Units = Counter<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabel {
    operation: &'static str,
}

/// What DynamoDB is asked for, and what it charges. Clones count together.
///
/// The units are DynamoDB's own figures. It charges for a refused put too but does not say how much, so those are
/// missing here.
#[derive(Debug, Clone, Default)]
pub struct DynamoMetrics {
    calls: Family<CallLabel, Counter>,
    throttles: Counter,
    write_units: Units,
    read_units: Units,
}

impl DynamoMetrics {
    pub fn register(&self, registry: &mut Registry) {
        registry.register("dynamodb_calls", "Calls to DynamoDB", self.calls.clone());
        registry.register("dynamodb_throttles", "Calls that DynamoDB throttled", self.throttles.clone());
        registry.register("dynamodb_write_units", "Write units charged", self.write_units.clone());
        registry.register("dynamodb_read_units", "Read units charged", self.read_units.clone());
    }

    #[must_use]
    pub fn write_units(&self) -> f64 {
        self.write_units.get()
    }

    #[must_use]
    pub fn read_units(&self) -> f64 {
        self.read_units.get()
    }

    #[must_use]
    pub fn throttles(&self) -> u64 {
        self.throttles.get()
    }

    /// Calls so far, by the name that DynamoDB gives the operation.
    #[must_use]
    pub fn calls(&self, operation: &'static str) -> u64 {
        self.calls.get(&CallLabel { operation }).map_or(0, |calls| calls.get())
    }

    pub(super) fn called(&self, operation: &'static str) {
        self.calls.get_or_create(&CallLabel { operation }).inc();
    }

    pub(super) fn throttled(&self) {
        self.throttles.inc();
    }

    pub(super) fn wrote(&self, charged: Option<&ConsumedCapacity>) {
        self.write_units.inc_by(units(charged));
    }

    pub(super) fn read<'a>(&self, charged: impl IntoIterator<Item = &'a ConsumedCapacity>) {
        self.read_units.inc_by(charged.into_iter().map(|one| units(Some(one))).sum());
    }
}

fn units(charged: Option<&ConsumedCapacity>) -> f64 {
    charged.and_then(ConsumedCapacity::capacity_units).unwrap_or(0.0)
}
