//! `saltern campaigns consume` with the real binary: nothing is lost over kills and outages, poison blocks nothing, and
//! partitions are shared and handed over.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

#[path = "../deployment/mod.rs"]
mod deployment;
mod kafka;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use kafka::{Kafka, PARTITIONS};
use saltern_backends::{DynamoLocal, Redis};
use serde_json::{Value, json};
use support::{Client, PATIENCE, Server, plain_failure, plain_line, saltern};
use tempfile::TempDir;

use crate::deployment::Deployment;

const TOPIC: &str = "campaign-events";

fn event(partner: usize) -> Value {
    json!({"tenant": "at", "partner_id": format!("p{partner}"), "delivery_areas": ["*"], "boost_score": 1.5,
           "last_updated": 1_763_200_000_000_i64})
}

/// The events of these partners, over all partitions.
fn send(kafka: &Kafka, partners: std::ops::Range<usize>) {
    for partner in partners {
        let partition = i32::try_from(partner).unwrap() % PARTITIONS;
        kafka.send(TOPIC, partition, Some(event(partner).to_string().as_bytes()));
    }
    kafka.flush();
}

fn with_topic() -> Kafka {
    let kafka = Kafka::start();
    kafka.topic(TOPIC);
    kafka
}

fn consume(kafka: &Kafka, mut command: Command) -> Command {
    command.args(["--brokers", &kafka.servers(), "--topic", TOPIC]);
    command.args(["--kafka-option", "statistics.interval.ms=200"]).args(kafka.options());
    command
}

fn consumer(kafka: &Kafka, to: &[&str]) -> Server {
    let mut command = saltern();
    command.args(["campaigns", "consume", "--metrics", "127.0.0.1:0"]).args(to);
    Server::spawn(consume(kafka, command))
        .unwrap_or_else(|output| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// A consumer that ends by itself.
fn ended(kafka: &Kafka, to: &[&str]) -> Output {
    let mut command = saltern();
    command.args(["campaigns", "consume"]).args(to);
    consume(kafka, command).output().unwrap()
}

async fn served(data: &Path) -> Server {
    let server = Server::start(data);
    let mut client = Client::connect(server.addr).await.unwrap();
    let market = json!({"model": "wildcard", "time_zone": "Europe/Vienna"});
    assert_eq!(client.put("/v1/tenants/at", &market).await.unwrap().status, 200);
    server
}

async fn metrics(of: &Server) -> String {
    Client::connect(of.addr).await.unwrap().text("/metrics").await.unwrap()
}

/// The values of all series of this name.
fn values(metrics: &str, name: &str) -> Vec<u64> {
    let series =
        metrics.lines().filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    series.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

fn events(metrics: &str, result: &str) -> u64 {
    let name = format!("saltern_consumer_events_total{{result=\"{result}\"}}");
    metrics.lines().find_map(|line| line.strip_prefix(&name)?.trim().parse().ok()).unwrap_or(0)
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !done().await {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn until_counted(consumer: &Server, result: &str, at_least: u64) {
    until(&format!("{at_least} events are {result}"), async || events(&metrics(consumer).await, result) >= at_least)
        .await;
}

/// Every partition of ours is known, and nothing in it is left.
async fn until_no_lag(consumer: &Server) {
    until("there is no lag", async || {
        let lag = values(&metrics(consumer).await, "saltern_consumer_lag");
        lag.len() == PARTITIONS as usize && lag.iter().all(|lag| *lag == 0)
    })
    .await;
}

async fn boosted(server: &Server, partners: usize) -> usize {
    let mut client = Client::connect(server.addr).await.unwrap();
    let (ids, mut boosted): (Vec<_>, _) = ((0..partners).map(|i| format!("p{i}")).collect(), 0);
    for ids in ids.chunks(1_000) {
        let answer = client.post("/v1/boosts/query", &json!({"tenant": "at", "partner_ids": ids})).await.unwrap();
        boosted += answer.json["boosts"].as_array().unwrap().len();
    }
    boosted
}

async fn until_boosted(server: &Server, partners: usize) {
    until(&format!("{partners} are boosted"), async || boosted(server, partners).await == partners).await;
}

async fn dead_letters(server: &Server) -> Vec<Value> {
    let mut client = Client::connect(server.addr).await.unwrap();
    let letters = client.get("/v1/dead-letters?limit=100").await.unwrap().json;
    letters["dead_letters"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_again_and_again_it_loses_nothing() {
    const EVENTS: usize = 40_000;
    let (folder, kafka) = (TempDir::new().unwrap(), with_topic());
    let server = served(folder.path()).await;
    send(&kafka, 0..EVENTS);
    let url = server.url();
    let mut killed_amid = 0;
    for _ in 0..3 {
        let consumer = consumer(&kafka, &["--url", &url]);
        until("some are written", async || {
            let metrics = metrics(&consumer).await;
            events(&metrics, "Applied") + events(&metrics, "Stale") > 0
        })
        .await;
        consumer.kill();
        killed_amid += usize::from(boosted(&server, EVENTS).await < EVENTS);
    }
    assert!(killed_amid >= 2, "only {killed_amid} kills came in time");
    let consumer = consumer(&kafka, &["--url", &url]);
    until_boosted(&server, EVENTS).await;
    until_no_lag(&consumer).await;
    assert_eq!(dead_letters(&server).await, Vec::<Value>::new());
    consumer.terminate();
    server.terminate();
}

/// What was written is committed when it is told to end: the next one reads none of it again.
#[tokio::test(flavor = "multi_thread")]
async fn told_to_end_it_leaves_nothing_to_be_read_again() {
    let (folder, kafka) = (TempDir::new().unwrap(), with_topic());
    let server = served(folder.path()).await;
    let url = server.url();
    send(&kafka, 0..30_000);
    let first = consumer(&kafka, &["--url", &url]);
    until("some are written", async || events(&metrics(&first).await, "Applied") > 0).await;
    first.terminate();
    let before = boosted(&server, 30_000).await as u64;
    send(&kafka, 30_000..30_100);
    let second = consumer(&kafka, &["--url", &url]);
    until_counted(&second, "Applied", 30_100 - before).await;
    let shown = metrics(&second).await;
    assert_eq!((events(&shown, "Applied"), events(&shown, "Stale")), (30_100 - before, 0));
    second.terminate();
    server.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn poison_is_a_dead_letter_and_blocks_nothing() {
    let (folder, kafka) = (TempDir::new().unwrap(), with_topic());
    let server = served(folder.path()).await;
    let long = [b"{\"tenant\":\"".to_vec(), vec![b'x'; 900_000], b"\"}".to_vec()].concat();
    let unknown = json!({"tenant": "nowhere", "partner_id": "p", "delivery_areas": ["*"], "boost_score": 1.5,
                         "last_updated": 1_763_200_000_000_i64})
    .to_string();
    let poison: [Option<&[u8]>; 7] = [
        Some(b"not an event"),
        None,
        Some(b""),
        Some(b"\xff\xfe"),
        Some(b"{\"tenant\": \"a\nt\"}"),
        Some(&long),
        Some(unknown.as_bytes()),
    ];
    for (partner, poison) in (0..).zip(poison) {
        kafka.send(TOPIC, 0, poison);
        let pretty = serde_json::to_string_pretty(&event(partner)).unwrap();
        kafka.send(TOPIC, 0, Some(pretty.as_bytes()));
    }
    kafka.flush();
    let consumer = consumer(&kafka, &["--url", &server.url()]);
    until_counted(&consumer, "Applied", 7).await;
    until_counted(&consumer, "Rejected", 7).await;
    assert_eq!(boosted(&server, 7).await, 7);
    let letters = dead_letters(&server).await;
    assert_eq!(letters.len(), 7, "{letters:?}");
    assert!(letters.iter().all(|letter| !letter["reason"].as_str().unwrap().is_empty()), "{letters:?}");
    consumer.terminate();
    server.terminate();
}

/// Partitions are divided, handed over when one leaves, and nothing is read twice over it.
#[tokio::test(flavor = "multi_thread")]
async fn two_share_the_partitions_and_one_may_leave() {
    let (folder, kafka) = (TempDir::new().unwrap(), with_topic());
    let server = served(folder.path()).await;
    let url = server.url();
    let assigned = async |consumer: &Server| values(&metrics(consumer).await, "saltern_consumer_lag").len();
    send(&kafka, 0..1_000);
    let first = consumer(&kafka, &["--url", &url]);
    until_counted(&first, "Applied", 1_000).await;
    let second = consumer(&kafka, &["--url", &url]);
    until("each has half", async || (assigned(&first).await, assigned(&second).await) == (2, 2)).await;
    send(&kafka, 1_000..20_000);
    until("both have written some", async || {
        events(&metrics(&first).await, "Applied") > 1_000 && events(&metrics(&second).await, "Applied") > 0
    })
    .await;
    first.terminate();
    send(&kafka, 20_000..21_000);
    until("the other has all", async || assigned(&second).await == PARTITIONS as usize).await;
    until_boosted(&server, 21_000).await;
    until_no_lag(&second).await;
    assert_eq!(events(&metrics(&second).await, "Stale"), 0, "events were read again");
    second.terminate();
    server.terminate();
}

/// While nobody takes events, partitions are paused; the consumer stays in its group, and goes on by itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_away_is_waited_for() {
    const EVENTS: usize = 20_000;
    let (folder, kafka) = (TempDir::new().unwrap(), with_topic());
    let server = served(folder.path()).await;
    let (url, addr) = (server.url(), server.addr);
    let consumer = consumer(&kafka, &["--url", &url]);
    server.kill();
    send(&kafka, 0..EVENTS);
    until("every partition is held up", async || {
        values(&metrics(&consumer).await, "saltern_consumer_held_up") == [PARTITIONS as u64]
    })
    .await;
    assert!(values(&metrics(&consumer).await, "saltern_consumer_retries_total")[0] > 0);
    let server = Server::start_at(addr, folder.path());
    until_boosted(&server, EVENTS).await;
    until_no_lag(&consumer).await;
    consumer.signal("TERM");
    let (status, log) = consumer.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("held up") && log.contains("going on") && log.contains("taken again"), "{log}");
    server.terminate();
}

/// Held up, given away, and come back: it is read again when the server is.
#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_was_held_up_when_it_left_goes_on_when_it_comes_back() {
    const EVENTS: usize = 20_000;
    let (folder, kafka) = (TempDir::new().unwrap(), with_topic());
    let server = served(folder.path()).await;
    let (url, addr) = (server.url(), server.addr);
    let first = consumer(&kafka, &["--url", &url]);
    server.kill();
    send(&kafka, 0..EVENTS);
    let held_up = async |consumer: &Server, partitions: u64| {
        until("partitions are held up", async || {
            values(&metrics(consumer).await, "saltern_consumer_held_up") == [partitions]
        })
        .await;
    };
    held_up(&first, 4).await;
    let second = consumer(&kafka, &["--url", &url]);
    held_up(&second, 2).await;
    second.terminate();
    held_up(&first, 4).await;
    let server = Server::start_at(addr, folder.path());
    until_boosted(&server, EVENTS).await;
    until_no_lag(&first).await;
    first.terminate();
    server.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn it_writes_by_itself_into_a_folder_and_into_tables() {
    let kafka = with_topic();
    send(&kafka, 0..500);
    let folder = TempDir::new().unwrap();
    served(folder.path()).await.terminate();
    let folder_consumer = consumer(&kafka, &["--group", "folder", "--data", folder.path().to_str().unwrap()]);
    until_counted(&folder_consumer, "Applied", 500).await;
    folder_consumer.terminate();
    let server = Server::start(folder.path());
    assert_eq!(boosted(&server, 500).await, 500);
    server.terminate();

    let redis = Redis::start();
    let deployment = Deployment::on(DynamoLocal::shared().endpoint(), redis.url());
    deployment.init(&[]);
    let server = deployment.serve_ready().await;
    let mut client = Client::connect(server.addr).await.unwrap();
    let market = json!({"model": "wildcard", "time_zone": "Europe/Vienna"});
    assert_eq!(client.put("/v1/tenants/at", &market).await.unwrap().status, 200);
    let mut command = deployment.command("campaigns");
    command.args(["consume", "--group", "tables", "--metrics", "127.0.0.1:0"]);
    let tables_consumer = Server::spawn(consume(&kafka, command)).unwrap_or_else(|output| panic!("{output:?}"));
    // A put whose answer came too late is put again, and counts as stale then.
    until_boosted(&server, 500).await;
    until_no_lag(&tables_consumer).await;
    tables_consumer.terminate();
    server.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_told_in_one_line() {
    let (folder, kafka) = (TempDir::new().unwrap(), with_topic());
    let server = served(folder.path()).await;
    let url = server.url();
    let held = plain_failure(&ended(&kafka, &["--data", folder.path().to_str().unwrap()]));
    assert!(held.contains("--url"), "{held}");
    let promise = plain_failure(&ended(&kafka, &["--url", &url, "--kafka-option", "enable.auto.offset.store=true"]));
    assert!(promise.contains("cannot be changed"), "{promise}");
    let taken = plain_failure(&ended(&kafka, &["--url", &url, "--metrics", &server.addr.to_string()]));
    assert!(taken.contains("cannot listen"), "{taken}");
    let nobody = format!("127.0.0.1:{}", saltern_backends::free_port());
    let mut command = saltern();
    command.args(["campaigns", "consume", "--url", &url, "--topic", TOPIC, "--brokers", &nobody]);
    let no_broker = plain_failure(&command.output().unwrap());
    assert!(no_broker.contains("no Kafka broker answers"), "{no_broker}");
    server.terminate();
}

/// A server that refuses for good ends the consumer, and no event is taken for written.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_ends_it_and_skips_nothing() {
    let (folder, kafka) = (TempDir::new().unwrap(), with_topic());
    let data = folder.path().join("data");
    served(&data).await.terminate();
    let config = folder.path().join("saltern.toml");
    let keys = format!("[[api_keys]]\nname = 'ops'\nsha256 = '{}'\nscopes = ['admin']\n", "0".repeat(64));
    std::fs::write(&config, keys).unwrap();
    let server = Server::start_with(&data, &["--config", config.to_str().unwrap()]);
    send(&kafka, 0..10);
    let wrong = ended(&kafka, &["--url", &server.url(), "--key", "wrong"]);
    let told = plain_line(&String::from_utf8_lossy(&wrong.stderr));
    assert!(wrong.status.code() == Some(1) && told.contains("401"), "{told}");
    server.terminate();
    let server = served(&data).await;
    let consumer = consumer(&kafka, &["--url", &server.url()]);
    until_counted(&consumer, "Applied", 10).await;
    consumer.terminate();
    server.terminate();
}
