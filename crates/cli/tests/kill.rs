//! Kill -9 of the real binary in the middle of concurrent load, again and again. The judge of invariants watches every
//! acknowledgement and every page, over all restarts.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

#[cfg(feature = "cloud")]
mod deployment;
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use serde_json::Value;
use support::client::Lost;
use support::watched::Watched;
use support::{Client, Server, append_body, run};
use tempfile::TempDir;
use tokio::task::JoinSet;

const CYCLES_ENV: &str = "SALTERN_KILL_CYCLES";
const CYCLES: u64 = 20;
const SEED: u64 = 7;
const WRITERS: usize = 8;
const BATCH: usize = 5;
const CONVERSATIONS: [&str; 4] = ["tea", "tea#1", "coffee", "salt 🧂"];
/// Looks like a commit of the log, with a checksum that would be right if commits had no secret. Clients may send it.
const FORGED: &str = "SLTB\u{10}\0\0\0        \u{18}P#]rH*)\0\u{1}\0\u{8}\0\0\0k46788470";
const FORGERIES: usize = 4;
/// A hole that a dead writer left must be closed well before this.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);
/// "At once", on a machine that may be busy with other tests.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A client that does not give up on a message: what was not acknowledged is sent again, under the same id.
struct Writer {
    index: usize,
    written: usize,
    pending: Vec<String>,
    conversation: usize,
}

impl Writer {
    fn new(index: usize) -> Self {
        Self { index, written: 0, pending: Vec::new(), conversation: 0 }
    }

    /// The next messages to send: single ones, and now and then a batch.
    fn fill(&mut self) {
        if !self.pending.is_empty() {
            return;
        }
        self.written += 1;
        self.conversation = (self.index + self.written) % CONVERSATIONS.len();
        let count = if self.written.is_multiple_of(8) { BATCH } else { 1 };
        self.pending = (0..count).map(|i| format!("w{}-{}-{i}{FORGED}", self.index, self.written)).collect();
    }

    /// Sends what is pending until all of it is acknowledged.
    async fn settle(&mut self, client: &mut Client, watched: &[Watched]) -> Result<(), Lost> {
        while !self.pending.is_empty() {
            let watched = &watched[self.conversation];
            let bodies: Vec<_> = self.pending.iter().map(|id| append_body(id, &id.repeat(FORGERIES))).collect();
            let answers: Vec<Value> = if bodies.len() == 1 {
                let answer = client.append(&watched.name, &bodies[0]).await?;
                assert!(matches!(answer.status, 200 | 201 | 503), "{} {}", answer.status, answer.json);
                vec![answer.json]
            } else {
                let answer = client.batch(&watched.name, &bodies).await?;
                assert!(matches!(answer.status, 200 | 503), "{} {}", answer.status, answer.json);
                answer.json["results"].as_array().cloned().unwrap_or_default()
            };
            for answer in answers {
                if let (Some(id), Some(seq)) = (answer["message_id"].as_str(), answer["seq_no"].as_u64()) {
                    watched.acknowledge(id, SeqNo::new(seq).unwrap());
                    self.pending.retain(|pending| pending != id);
                }
            }
        }
        Ok(())
    }

    /// Writes until the server is gone.
    async fn write(mut self, addr: SocketAddr, watched: Arc<[Watched]>) -> Self {
        if let Ok(mut client) = Client::connect(addr).await {
            loop {
                self.fill();
                if self.settle(&mut client, &watched).await.is_err() {
                    break;
                }
            }
        }
        self
    }
}

/// Follows a conversation's tail until the server is gone; answers where it got to.
async fn tail(addr: SocketAddr, watched: Arc<[Watched]>, index: usize, mut after: u64) -> (usize, u64) {
    let Ok(mut client) = Client::connect(addr).await else { return (index, after) };
    while let Ok(reached) = watched[index].read_on(&mut client, after).await {
        after = reached.after;
        if watched[index].read_older(&mut client, None).await.is_err() {
            break;
        }
    }
    (index, after)
}

/// After a restart: everything acknowledged is there, nothing is pending for ever, and the next append works at once.
async fn examine(server: &Server, watched: &[Watched], writers: &mut [Writer], cycle: u64) {
    let mut client = Client::connect(server.addr).await.unwrap();
    for watched in watched {
        let started = Instant::now();
        let probe = format!("probe-{cycle}");
        let answer = client.append(&watched.name, &append_body(&probe, &probe)).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.json);
        assert!(started.elapsed() < AT_ONCE, "the first append took {:?}", started.elapsed());
        watched.acknowledge(&probe, answer.seq());
    }
    for writer in writers {
        writer.settle(&mut client, watched).await.unwrap();
    }
    for watched in watched {
        let (started, mut after) = (Instant::now(), 0);
        loop {
            let reached = watched.read_on(&mut client, after).await.unwrap();
            if reached.at_end {
                break;
            }
            if reached.after == after {
                assert!(started.elapsed() < SETTLED_WITHIN, "{}: a gap behind {after} stays pending", watched.name);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            after = reached.after;
        }
    }
}

/// Kills servers under load, each as often as the cycles say.
async fn survive(cycles: u64, start: impl AsyncFn() -> Server) {
    let watched: Arc<[Watched]> = CONVERSATIONS.into_iter().map(Watched::new).collect();
    let mut writers: Vec<_> = (0..WRITERS).map(Writer::new).collect();
    let mut tails = [0; CONVERSATIONS.len()];
    let mut rng = SplitMix64::new(SEED);
    for cycle in 0..cycles {
        let server = start().await;
        examine(&server, &watched, &mut writers, cycle).await;
        let mut writing = JoinSet::new();
        for writer in writers.drain(..) {
            writing.spawn(writer.write(server.addr, Arc::clone(&watched)));
        }
        let mut reading = JoinSet::new();
        for (index, after) in tails.into_iter().enumerate() {
            reading.spawn(tail(server.addr, Arc::clone(&watched), index, after));
        }
        tokio::time::sleep(Duration::from_millis(20 + rng.below(300))).await;
        server.kill();
        writers = writing.join_all().await;
        writers.sort_by_key(|writer| writer.index);
        for (index, after) in reading.join_all().await {
            tails[index] = after;
        }
    }
    let server = start().await;
    examine(&server, &watched, &mut writers, cycles).await;
    server.terminate();
    let acknowledged: usize = watched.iter().map(Watched::acknowledged).sum();
    println!("{acknowledged} acknowledgements over {cycles} kills");
    assert!(acknowledged as u64 > cycles * WRITERS as u64, "hardly any load: {acknowledged}");
}

fn cycles() -> u64 {
    std::env::var(CYCLES_ENV).map_or(CYCLES, |cycles| cycles.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_or_doubled() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    // So that kills come while the log moves into tables, and between.
    let config = folder.path().join("thin.toml");
    std::fs::write(&config, "[limits]\nlog_mib = 1\n").unwrap();
    let config = ["--config", config.to_str().unwrap()];
    survive(cycles(), async || Server::start_with(&data, &config)).await;
    let output = run(folder.path(), &["verify", "--data", data.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// A quarter of the cycles: here another server may hold the ticket of a hole, so each is waited for.
#[cfg(feature = "cloud")]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_or_doubled_in_the_cloud() {
    let (dynamodb, redis) = (saltern_backends::DynamoLocal::start(), saltern_backends::Redis::start());
    let deployment = deployment::Deployment::on(dynamodb.endpoint(), redis.url());
    deployment.init(&[]);
    survive(cycles().div_ceil(4), async || deployment.serve_ready().await).await;
    deployment.verify();
}
