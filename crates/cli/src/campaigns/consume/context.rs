//! What the Kafka client tells: partitions that come and go, statistics, errors and log lines.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer as _, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::statistics::Statistics;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};
use tokio::runtime::Handle;
use tokio::task::block_in_place;
use tracing::{debug, error, info, warn};

use super::event::Partition;
use super::lane::Lanes;
use super::metrics::ConsumerMetrics;

/// A partition is given away only when what was read of it has been written, or after so long.
const HAND_OVER: Duration = Duration::from_secs(5);

pub(super) struct GroupMember {
    lanes: Arc<Lanes>,
    metrics: ConsumerMetrics,
}

impl GroupMember {
    pub(super) fn new(lanes: Arc<Lanes>, metrics: ConsumerMetrics) -> Self {
        Self { lanes, metrics }
    }
}

impl ClientContext for GroupMember {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        use RDKafkaLogLevel::{Alert, Critical, Debug, Emerg, Error, Info, Notice, Warning};
        match level {
            Emerg | Alert | Critical | Error => error!(facility, message, "Kafka client"),
            Warning => warn!(facility, message, "Kafka client"),
            Notice | Info => info!(facility, message, "Kafka client"),
            Debug => debug!(facility, message, "Kafka client"),
        }
    }

    fn stats(&self, statistics: Statistics) {
        self.metrics.take_lag(&statistics);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        warn!(%error, reason, "Kafka");
    }
}

impl ConsumerContext for GroupMember {
    fn pre_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        let Rebalance::Revoke(list) = rebalance else { return };
        let revoked: Vec<_> = list.elements().iter().map(Partition::listed).collect();
        // Called within the one task that reads; the lanes work on beside it.
        let ended = block_in_place(|| Handle::current().block_on(self.lanes.end(&revoked, HAND_OVER)));
        for (partition, next_offset) in ended {
            if let Err(error) = consumer.store_offsets(&offsets_of(&partition, next_offset)) {
                warn!(%partition, next_offset, %error, "offset not kept; events will be read again");
            }
        }
        tell("partitions taken away", &revoked);
    }

    fn post_rebalance(&self, consumer: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => {
                // One that was paused when it was taken away has no lane now that could let it go on.
                if let Err(error) = consumer.resume(list) {
                    warn!(%error, "cannot resume");
                }
                tell("partitions taken on", &list.elements().iter().map(Partition::listed).collect::<Vec<_>>());
            }
            Rebalance::Revoke(_) => {}
            Rebalance::Error(error) => warn!(%error, "rebalance failed"),
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _: &TopicPartitionList) {
        // The next commit, a second later, covers what this one did not.
        if let Err(error) = result {
            debug!(%error, "offsets not committed");
        }
    }
}

fn tell(what: &str, partitions: &[Partition]) {
    if !partitions.is_empty() {
        let partitions: Vec<_> = partitions.iter().map(Partition::to_string).collect();
        info!(partitions = partitions.join(" "), "{what}");
    }
}

pub(super) fn offsets_of(partition: &Partition, next_offset: i64) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    // Fails for no offset that a message can have.
    let _ = list.add_partition_offset(&partition.topic, partition.number, Offset::Offset(next_offset));
    list
}
