//! Three servers of the real binary on DynamoDB Local and Redis, under load that does not give up, while everything that
//! can fail does, in turn. The judge of invariants watches every acknowledgement and every page.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

#[path = "../deployment/mod.rs"]
mod deployment;
mod load;
mod stage;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use stage::Stage;
use tokio::time::sleep;

/// How long the load runs in all; faults come in turn, again and again, until it is over.
const SECONDS_ENV: &str = "SALTERN_FAULT_SECONDS";
const SECONDS: u64 = 60;
/// Load between two faults.
const CALM: Duration = Duration::from_millis(1_500);
const REDIS_DOWN: Duration = Duration::from_secs(2);
const DYNAMODB_DOWN: Duration = Duration::from_secs(5);
/// The promise: appends work again this soon after what failed is back.
const WORKS_AGAIN: Duration = Duration::from_secs(5);
/// A ticket may be lost with its writer, or with a store out of reach, but not with each message.
const VOIDS_PER_THOUSAND_MAX: u64 = 50;

#[derive(Debug, Clone, Copy)]
enum Fault {
    ServerKilled,
    RedisKilledWithAof,
    RedisRestartedEmpty,
    RedisFlushed,
    LaggingReplicaPromoted,
    ThereAndBack,
    DynamoUnreachable,
    RepliesLost,
}

const FAULTS: [Fault; 8] = [
    Fault::ServerKilled,
    Fault::RedisKilledWithAof,
    Fault::RedisRestartedEmpty,
    Fault::RedisFlushed,
    Fault::LaggingReplicaPromoted,
    Fault::ThereAndBack,
    Fault::DynamoUnreachable,
    Fault::RepliesLost,
];

impl Fault {
    /// Happens, and is over when this returns.
    async fn happen(self, stage: &mut Stage) {
        match self {
            Self::ServerKilled => stage.kill_a_server().await,
            Self::RedisKilledWithAof => {
                stage.without_redis(REDIS_DOWN).await;
                stage.primary().restart();
            }
            Self::RedisRestartedEmpty => {
                stage.without_redis(REDIS_DOWN).await;
                stage.primary().start_empty();
            }
            Self::RedisFlushed => {
                stage.primary().ask(&["FLUSHALL"]);
            }
            Self::LaggingReplicaPromoted => {
                stage.replicate();
                // It gets nothing of what follows, and then it is all there is.
                stage.replica().promote();
                sleep(CALM).await;
                stage.primary().kill();
                stage.fail_over();
                stage.replica().start_empty();
            }
            Self::ThereAndBack => {
                stage.replicate();
                stage.replica().promote();
                // For a while one half of the servers takes tickets here, the other there.
                stage.fail_over_half();
                sleep(CALM).await;
                stage.cut();
                sleep(CALM).await;
                // Back to one that knows nothing of what was issued meanwhile.
                stage.fail_over();
            }
            Self::DynamoUnreachable => stage.without_dynamodb(DYNAMODB_DOWN).await,
            Self::RepliesLost => {
                let lost = stage.dynamodb.lost();
                stage.dynamodb.lose_replies(200);
                sleep(2 * CALM).await;
                stage.dynamodb.lose_replies(0);
                assert!(stage.dynamodb.lost() > lost, "no put lost its reply");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_hidden_or_doubled_whatever_fails() {
    let seconds = std::env::var(SECONDS_ENV).map_or(SECONDS, |seconds| seconds.parse().unwrap());
    let mut stage = Stage::open().await;
    let began = Instant::now();
    let mut faults = FAULTS.into_iter().cycle();
    let mut happened = 0;
    while began.elapsed() < Duration::from_secs(seconds) || happened < FAULTS.len() {
        let fault = faults.next().unwrap();
        sleep(CALM).await;
        fault.happen(&mut stage).await;
        let slowest = stage.works_again().await;
        let read = stage.examine().await;
        println!(
            "{fault:?}: appends work again after {:.2} s; {} acknowledged, {} voids",
            slowest.as_secs_f64(),
            read.acknowledged,
            read.voids
        );
        assert!(slowest < WORKS_AGAIN, "{fault:?}: appends work again only after {slowest:?}");
        happened += 1;
    }
    let read = stage.close().await;
    println!(
        "{} acknowledged and read back on each server, {} voids, n up to {}",
        read.acknowledged, read.voids, read.max_n
    );
    assert!(read.max_n > 1, "the hot conversation was never hot");
    assert!(read.voids * 1_000 < read.acknowledged * VOIDS_PER_THOUSAND_MAX, "too many voids: {read:?}");
}
