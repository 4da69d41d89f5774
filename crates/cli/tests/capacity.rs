//! What DynamoDB is asked for and what it charges, as servers of the real binary count it on DynamoDB Local.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod deployment;
mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Sub;
use std::time::{Duration, Instant};

use deployment::Deployment;
use saltern_backends::{DynamoLocal, Redis};
use serde_json::Value;
use support::client::path;
use support::{Client, PATIENCE, Server, append_body, saltern};

const CONVERSATION: &str = "tea #1";
const MESSAGES: u64 = 200;
const PAGE: u64 = 20;

/// Nothing is read from memory, and no call is cut short and made again because the machine is slow.
fn serve(deployment: &Deployment) -> Server {
    let mut command = deployment.command("serve");
    command.args(["--listen", "127.0.0.1:0"]).env("SALTERN_LIMITS_CACHE_MIB", "0");
    for limit in ["DYNAMODB_CALL_MS", "REDIS_CALL_MS", "TIMEOUTS_APPEND_MS", "TIMEOUTS_READ_MS"] {
        command.env(format!("SALTERN_{limit}"), PATIENCE.as_millis().to_string());
    }
    Server::spawn(command).unwrap_or_else(|output| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// What a server has asked of DynamoDB so far, or from one moment to another.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Asked {
    puts: f64,
    gets: f64,
    queries: f64,
    batches: f64,
    write_units: f64,
    read_units: f64,
    /// Control records written to move a horizon on.
    extensions: f64,
    /// Control records looked for, since the registry did not know the conversation.
    syncs: f64,
    retries: f64,
    voids: f64,
}

impl Sub for Asked {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            puts: self.puts - before.puts,
            gets: self.gets - before.gets,
            queries: self.queries - before.queries,
            batches: self.batches - before.batches,
            write_units: self.write_units - before.write_units,
            read_units: self.read_units - before.read_units,
            extensions: self.extensions - before.extensions,
            syncs: self.syncs - before.syncs,
            retries: self.retries - before.retries,
            voids: self.voids - before.voids,
        }
    }
}

fn asked(server: &Server) -> Asked {
    let metrics = metrics(server);
    let figure = |name: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0.0, |figure| figure.trim().parse().unwrap())
    };
    let calls = |operation: &str| figure(&format!("saltern_dynamodb_calls_total{{operation=\"{operation}\"}}"));
    Asked {
        puts: calls("PutItem"),
        gets: calls("GetItem"),
        queries: calls("Query"),
        batches: calls("BatchGetItem"),
        write_units: figure("saltern_dynamodb_write_units_total"),
        read_units: figure("saltern_dynamodb_read_units_total"),
        extensions: figure("saltern_extensions_total"),
        syncs: figure("saltern_syncs_total"),
        retries: figure("saltern_store_retries_total"),
        voids: figure("saltern_voids_written_total"),
    }
}

fn metrics(server: &Server) -> String {
    let mut stream = TcpStream::connect(server.addr).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\nsaltern_dynamodb_write_units_total "), "{answer}");
    answer
}

/// Leases are extended in the background: waits until every one that was begun is done.
async fn asked_once_settled(server: &Server, settled: impl Fn(&Asked) -> bool) -> Asked {
    let began = Instant::now();
    loop {
        let asked = asked(server);
        if settled(&asked) {
            return asked;
        }
        assert!(began.elapsed() < PATIENCE, "never as expected: {asked:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn append_all(server: &Server) {
    let mut client = Client::connect(server.addr).await.unwrap();
    for i in 1..=MESSAGES {
        let answer = client.append(CONVERSATION, &append_body(&format!("m{i}"), "hey")).await.unwrap();
        assert_eq!((answer.status, answer.seq().get()), (201, i), "{}", answer.json);
    }
}

/// A page, and what it took.
async fn page(server: &Server, cursor: &str) -> (Value, Asked) {
    let before = asked(server);
    let mut client = Client::connect(server.addr).await.unwrap();
    let answer = client.get(&format!("{}/messages?limit={PAGE}{cursor}", path(CONVERSATION))).await.unwrap();
    assert_eq!((answer.status, &answer.json["gaps"]), (200, &Value::Array(Vec::new())), "{}", answer.json);
    (answer.json, asked(server) - before)
}

fn seq_nos(page: &Value) -> Vec<u64> {
    page["messages"].as_array().unwrap().iter().map(|message| message["seq_no"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn an_append_is_a_claim_and_a_row_and_a_page_is_a_query() {
    let (dynamodb, redis) = (DynamoLocal::start(), Redis::start());
    let cloud = Deployment::on(dynamodb.endpoint(), redis.url());
    cloud.init(&[]);
    let writer = serve(&cloud);
    append_all(&writer).await;
    let leases = |asked: &Asked| 1.0 + asked.extensions;
    let written = |asked: &Asked| 2.0 * MESSAGES as f64 + leases(asked);
    // A claim and a row for each message and one control record for each lease: the first finds no record, the others
    // look whether another server has moved the horizon.
    let asked = asked_once_settled(&writer, |a| a.puts == written(a) && a.gets == leases(a)).await;
    let expected = Asked {
        puts: written(&asked),
        // One more for the index of what is due, in which a new conversation gets its place.
        write_units: written(&asked) + 1.0,
        gets: leases(&asked),
        // A conversation begins with the question whether it has rows.
        queries: 1.0,
        // DynamoDB Local charges nothing for a query that finds nothing.
        read_units: leases(&asked),
        syncs: 1.0,
        extensions: asked.extensions,
        ..Asked::default()
    };
    assert_eq!(asked, expected);
    // 8 places, then twice as many each time, as long as a lease lasts less than half a second.
    assert!((3.0..=MESSAGES as f64 / 8.0).contains(&leases(&asked)), "{asked:?}");

    let reader = serve(&cloud);
    let one_query = |took: Asked| {
        assert_eq!(took, Asked { queries: 1.0, read_units: took.read_units, ..Asked::default() });
        assert!(took.read_units <= 2.0, "{took:?}");
    };
    // On a server that knows nothing of the conversation, and once more on one that does.
    for _ in 0..2 {
        let (newest, took) = page(&reader, "").await;
        assert_eq!(seq_nos(&newest), (MESSAGES - PAGE + 1..=MESSAGES).rev().collect::<Vec<_>>());
        assert_eq!(took.gets, 1.0, "{took:?}");
        one_query(Asked { gets: 0.0, read_units: took.read_units - 1.0, ..took });
    }
    let mut before = MESSAGES - PAGE + 1;
    while before > 1 {
        let (older, took) = page(&reader, &format!("&before_seq={before}")).await;
        assert_eq!(seq_nos(&older), (before - PAGE..before).rev().collect::<Vec<_>>());
        one_query(took);
        before -= PAGE;
    }
    let read = self::asked(&reader);
    assert_eq!((read.puts, read.voids), (0.0, 0.0), "reading writes nothing");
}

/// The line of an operation at an n, with what its operations have asked for together.
fn line(report: &Value, operation: &str, n: u64) -> impl Fn(&str) -> f64 {
    let is_it = |line: &&Value| line["operation"] == operation && line["n"] == n;
    let line = report["lines"].as_array().unwrap().iter().find(is_it).unwrap().clone();
    move |figure| line[figure].as_f64().unwrap()
}

#[test]
fn the_bench_counts_the_same_and_tells_what_five_partitions_cost() {
    let mut bench = saltern();
    let local = std::env::var_os("SALTERN_DYNAMODB_LOCAL").expect("run scripts/test, which sets it");
    bench.env("SALTERN_DYNAMODB_LOCAL", local);
    let output = bench.args(["bench", "requests", "--messages", "200", "--pages", "40", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for n in [1, 5] {
        for (operation, messages) in [("append", 1.0), ("append_batch", 10.0)] {
            let append = line(&report, operation, n);
            let written = 2.0 * messages * append("operations") + append("leases");
            assert_eq!((append("puts"), append("write_units")), (written, written), "{report}");
            // A new server looks for the highest row, in every partition that may hold it.
            assert_eq!((append("gets"), append("queries")), (1.0 + append("leases"), n as f64), "{report}");
        }
        for operation in ["newest_page", "first_newest_page"] {
            let newest = line(&report, operation, n);
            let partitions = newest("queries") / newest("operations");
            assert_eq!((newest("puts"), newest("gets")), (0.0, newest("operations")), "{report}");
            assert!((1.0..=n as f64).contains(&partitions), "{report}");
        }
        let older = line(&report, "older_page", n);
        let partitions = older("queries") / older("operations");
        assert_eq!((older("puts"), older("gets")), (0.0, 0.0), "{report}");
        assert!((1.0..=2.0).contains(&partitions) && (n > 1 || partitions == 1.0), "{report}");
    }
}
