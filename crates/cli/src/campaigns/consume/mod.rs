//! `saltern campaigns consume`: events from Kafka. An offset is kept only once all before it has been written, so whatever
//! happens in between is read again, and changes nothing the second time.

mod context;
mod event;
mod lane;
mod metrics;
mod options;

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rdkafka::TopicPartitionList;
use rdkafka::consumer::{Consumer as _, StreamConsumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tokio::sync::mpsc;
use tokio::task::{block_in_place, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use self::context::{GroupMember, offsets_of};
use self::event::{Event, Partition};
use self::lane::Lanes;
use self::metrics::ConsumerMetrics;
use super::target::Target;
use crate::args::ConsumeArgs;
use crate::out;
use crate::stop::Stop;

/// How often offsets are handed to the client, which commits them every second, and held-up partitions are looked at.
const TICK: Duration = Duration::from_millis(500);
/// What is under way may take so long to end once it was told to.
const DRAIN: Duration = Duration::from_secs(10);
const BROKER_TIMEOUT: Duration = Duration::from_secs(15);

type Consumer = StreamConsumer<GroupMember>;

pub(crate) async fn consume(args: &ConsumeArgs) -> Result<()> {
    let stop = Stop::listen()?;
    let config = options::client_config(args)?;
    let target = Arc::new(Target::open(&args.target).await?);
    let done = consume_into(args, &config, &target, stop).await;
    // Nobody works on it any more.
    if let Some(target) = Arc::into_inner(target) {
        target.close().await;
    }
    done
}

async fn consume_into(
    args: &ConsumeArgs,
    config: &rdkafka::ClientConfig,
    target: &Arc<Target>,
    stop: Stop,
) -> Result<()> {
    let metrics = ConsumerMetrics::default();
    let (failures, failed) = mpsc::channel(1);
    let lanes = Arc::new(Lanes::new(Arc::clone(target), metrics.clone(), failures));
    let consumer: Consumer = config
        .create_with_context(GroupMember::new(Arc::clone(&lanes), metrics.clone()))
        .context("cannot make a Kafka client")?;
    let consumed = async {
        block_in_place(|| topics_exist(&consumer, &args.topics))?;
        let shown = match args.metrics {
            Some(address) => format!(", metrics on http://{}", metrics::serve(address, &metrics, target).await?),
            None => String::new(),
        };
        let topics: Vec<&str> = args.topics.iter().map(String::as_str).collect();
        consumer.subscribe(&topics).context("cannot subscribe")?;
        out::line(format_args!(
            "saltern consumes {} from {} as {}{shown}",
            topics.join(", "),
            args.brokers,
            args.group
        ))?;
        // Whoever waits for the line may have stopped reading: no reason not to go on.
        let _ = std::io::stdout().flush();
        run(&consumer, &lanes, target, stop, failed).await
    }
    .await;
    for offset in lanes.end_all(DRAIN).await {
        store(&consumer, &offset);
    }
    // Commits, leaves the group, and takes its time.
    spawn_blocking(move || drop(consumer)).await.context("the Kafka client did not end")?;
    let [applied, stale, rejected] = metrics.events();
    info!(applied, stale, rejected, "consumer ended");
    consumed
}

fn topics_exist(consumer: &Consumer, topics: &[String]) -> Result<()> {
    for topic in topics {
        let metadata = consumer.fetch_metadata(Some(topic), BROKER_TIMEOUT).context("no Kafka broker answers")?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        let partitions = found.filter(|found| found.error().is_none()).map_or(0, |found| found.partitions().len());
        ensure!(partitions > 0, "there is no topic {topic:?}, or it may not be read");
    }
    Ok(())
}

async fn run(
    consumer: &Consumer,
    lanes: &Lanes,
    target: &Target,
    mut stop: Stop,
    mut failed: mpsc::Receiver<anyhow::Error>,
) -> Result<()> {
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.requested() => return Ok(()),
            Some(error) = failed.recv() => return Err(error),
            error = target.failure() => return Err(error),
            _ = tick.tick() => {
                for offset in lanes.offsets() {
                    store(consumer, &offset);
                }
                resume(consumer, &lanes.go_on());
            }
            message = consumer.recv() => match message {
                Ok(message) => {
                    let (partition, event) = (Partition::of(&message), Event::of(&message));
                    drop(message);
                    if !lanes.offer(&partition, event).await {
                        pause(consumer, &partition);
                    }
                }
                Err(error) => go_on_after(error)?,
            },
        }
    }
}

/// Most failures pass, and the client itself tries again.
fn go_on_after(error: KafkaError) -> Result<()> {
    use RDKafkaErrorCode::{GroupAuthorizationFailed, SaslAuthenticationFailed, TopicAuthorizationFailed};
    match error {
        KafkaError::PartitionEOF(_) => {}
        KafkaError::MessageConsumptionFatal(_) => return Err(error).context("the Kafka client has failed"),
        KafkaError::MessageConsumption(
            GroupAuthorizationFailed | SaslAuthenticationFailed | TopicAuthorizationFailed,
        ) => bail!("Kafka refuses: {error}"),
        error => warn!(%error, "Kafka"),
    }
    Ok(())
}

/// One that has been taken away since cannot be stored, and need not be.
fn store(consumer: &Consumer, (partition, next_offset): &(Partition, i64)) {
    if let Err(error) = consumer.store_offsets(&offsets_of(partition, *next_offset)) {
        warn!(%partition, next_offset, %error, "offset not kept; events will be read again");
    }
}

/// Its events wait at the broker while it is held up, and the others go on.
fn pause(consumer: &Consumer, partition: &Partition) {
    info!(%partition, "held up: reading no further");
    if let Err(error) = consumer.pause(&partition.list()) {
        warn!(%partition, %error, "cannot pause");
    }
}

fn resume(consumer: &Consumer, partitions: &[Partition]) {
    let mut list = TopicPartitionList::new();
    for partition in partitions {
        info!(%partition, "going on");
        list.add_partition(&partition.topic, partition.number);
    }
    if list.count() > 0
        && let Err(error) = consumer.resume(&list)
    {
        warn!(%error, "cannot resume");
    }
}
