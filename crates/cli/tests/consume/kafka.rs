//! Kafka for these tests: the client library's own mock cluster, or a real broker where one is named.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::FromClientConfig as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use saltern_backends::Kafka as Broker;

pub(crate) const PARTITIONS: i32 = 4;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Kafka {
    producer: ThreadedProducer<DefaultProducerContext>,
    broker: Option<Broker>,
}

impl Kafka {
    pub(crate) fn start() -> Self {
        let broker = Broker::start_if_named(PARTITIONS);
        let mut config = ClientConfig::new();
        match &broker {
            Some(broker) => {
                config.set("bootstrap.servers", broker.servers());
                for (name, value) in Broker::client_options() {
                    config.set(*name, *value);
                }
            }
            None => {
                config.set("test.mock.num.brokers", "1");
            }
        }
        // Whatever is sent at once is to arrive in order.
        config.set("linger.ms", "5").set("max.in.flight", "1").set("queue.buffering.max.messages", "1000000");
        Self { producer: ThreadedProducer::from_config(&config).unwrap(), broker }
    }

    /// Makes a topic.
    pub(crate) fn topic(&self, name: &str) {
        match self.producer.client().mock_cluster() {
            Some(mock) => mock.create_topic(name, PARTITIONS, 1).unwrap(),
            // A broker makes those that are asked for, and says that it will.
            None => saltern_backends::wait_until("there is a topic", || {
                let metadata = self.producer.client().fetch_metadata(Some(name), PATIENCE).unwrap();
                metadata.topics().iter().any(|topic| topic.error().is_none() && !topic.partitions().is_empty())
            }),
        }
    }

    pub(crate) fn servers(&self) -> String {
        match &self.broker {
            Some(broker) => broker.servers(),
            None => self.producer.client().mock_cluster().unwrap().bootstrap_servers(),
        }
    }

    /// What the consumer must be told to work with this Kafka.
    pub(crate) fn options(&self) -> Vec<String> {
        let options: &[(&str, &str)] = match &self.broker {
            // A member that was killed is missed only after its session.
            Some(_) => &[Broker::client_options()[0], Broker::client_options()[1], ("session.timeout.ms", "6000")],
            // The mock waits long for members of the classic protocol.
            None => &[("group.protocol", "consumer")],
        };
        options.iter().flat_map(|(name, value)| ["--kafka-option".into(), format!("{name}={value}")]).collect()
    }

    pub(crate) fn send(&self, topic: &str, partition: i32, payload: Option<&[u8]>) {
        let mut record = BaseRecord::<(), [u8]>::to(topic).partition(partition);
        if let Some(payload) = payload {
            record = record.payload(payload);
        }
        while let Err((error, unsent)) = self.producer.send(record) {
            assert_eq!(error, KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull));
            std::thread::sleep(Duration::from_millis(10));
            record = unsent;
        }
    }

    /// All that was sent is there.
    pub(crate) fn flush(&self) {
        self.producer.flush(PATIENCE).unwrap();
    }
}
