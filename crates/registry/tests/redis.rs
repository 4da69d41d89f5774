//! The registry over Redis, against real servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod servers;

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use saltern_backends::{Address, Redis, wait_until};
use saltern_core::ids::ConversationId;
use saltern_core::meter::{Meter, WINDOW_MS};
use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use saltern_registry::redis::{RedisOptions, RedisRegistry};
use saltern_registry::{Registry, RegistryError, ThrottledRow, TicketRequest, Tickets, conformance};
use servers::{Cluster, ask, keys, options, patient, registry};
use tokio::task::JoinSet;

/// The time limit of a call, which is a second, and what a busy machine adds to it.
const IN_TIME: Duration = Duration::from_secs(2);
const ONE: TicketRequest = TicketRequest { count: 1, wcu: 1 };

fn id(text: &str) -> ConversationId {
    ConversationId::new(text).unwrap()
}

fn seq(n: u64) -> SeqNo {
    SeqNo::new(n).unwrap()
}

fn issued(first: u64, horizon: u64) -> Tickets {
    Tickets::Issued { first: seq(first), horizon: seq(horizon) }
}

async fn install(registry: &RedisRegistry, conversation: &ConversationId, next: u64, horizon: u64) {
    registry.install(conversation, seq(next), seq(horizon)).await.unwrap();
}

async fn ticket(registry: &RedisRegistry, conversation: &ConversationId) -> Tickets {
    registry.tickets(conversation, ONE).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_on_a_single_server() {
    let server = Redis::start();
    conformance::all(Arc::new(patient(options(server.url())).await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_on_a_primary_with_a_replica() {
    let (primary, replica) = (Redis::start(), Redis::start());
    replica.follow(&primary);
    conformance::all(Arc::new(patient(options(primary.url())).await)).await;
    wait_until("the replica has it all", || keys(&primary) == keys(&replica));
}

#[tokio::test(flavor = "multi_thread")]
async fn conforms_on_a_cluster() {
    let cluster = Cluster::start();
    conformance::all(Arc::new(patient(cluster.options()).await)).await;
    assert!(cluster.nodes.iter().all(|node| keys(node) > 0), "conversations are spread");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_behind_one_address_is_followed() {
    let (first, second) = (Redis::start(), Redis::start());
    let address = Address::of(first.port()).await;
    let timeout = Duration::from_millis(300);
    let options = RedisOptions { urls: vec![address.url()], timeout, ..RedisOptions::default() };
    let registry = RedisRegistry::connect(options).await.unwrap();
    second.follow(&first);
    install(&registry, &id("a"), 1, 9).await;
    assert_eq!(ticket(&registry, &id("a")).await, issued(1, 9));
    assert_eq!(first.ask(&["WAIT", "1", "5000"]), "1");

    // The old primary lives on as a replica, and so does the connection to it.
    second.ask(&["REPLICAOF", "NO", "ONE"]);
    first.follow(&second);
    address.move_to(second.port());
    assert_eq!(ticket(&registry, &id("a")).await, issued(2, 9));
    assert_eq!(second.ask(&["WAIT", "1", "5000"]), "1");

    // It falls silent, without a word to its connections.
    second.signal("STOP");
    first.ask(&["REPLICAOF", "NO", "ONE"]);
    address.move_to(first.port());
    registry.tickets(&id("a"), ONE).await.unwrap_err();
    assert_eq!(ticket(&registry, &id("a")).await, issued(3, 9));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_primary_that_was_demoted_is_an_error_until_it_is_back() {
    let (server, other) = (Redis::start(), Redis::start());
    let registry = registry(&server).await;
    install(&registry, &id("a"), 1, 9).await;
    server.ask(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]);
    registry.tickets(&id("a"), ONE).await.unwrap_err();
    registry.install(&id("a"), seq(1), seq(9)).await.unwrap_err();
    server.ask(&["REPLICAOF", "NO", "ONE"]);
    install(&registry, &id("a"), 4, 9).await;
    assert!(matches!(ticket(&registry, &id("a")).await, Tickets::Issued { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_flushed_is_absent() {
    let server = Redis::start();
    let registry = registry(&server).await;
    install(&registry, &id("a"), 1, 9).await;
    server.ask(&["FLUSHALL"]);
    assert_eq!(ticket(&registry, &id("a")).await, Tickets::Absent);
    install(&registry, &id("a"), 3, 9).await;
    assert_eq!(ticket(&registry, &id("a")).await, issued(3, 9));
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_were_flushed_are_loaded_again() {
    let (server, cluster) = (Redis::start(), Cluster::start());
    let registries = [registry(&server).await, cluster.registry().await];
    for registry in &registries {
        for i in 0..20 {
            install(registry, &id(&format!("{i}")), 1, 9).await;
            ticket(registry, &id(&format!("{i}"))).await;
        }
    }
    for node in cluster.nodes.iter().chain([&server]) {
        node.ask(&["SCRIPT", "FLUSH"]);
    }
    for registry in &registries {
        for i in 0..20 {
            assert_eq!(ticket(registry, &id(&format!("{i}"))).await, issued(2, 9));
        }
    }
}

fn chain(error: &RegistryError) -> String {
    let mut links = vec![error.to_string()];
    let mut link = error.source();
    while let Some(cause) = link {
        links.push(cause.to_string());
        link = cause.source();
    }
    links.join(": ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_died_is_an_error_in_time_and_works_when_it_is_back() {
    let mut server = Redis::start();
    let registry = registry(&server).await;
    install(&registry, &id("a"), 1, 9).await;
    server.kill();
    for _ in 0..3 {
        let began = Instant::now();
        let error = registry.tickets(&id("a"), ONE).await.unwrap_err();
        assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
        assert!(chain(&error).starts_with("registry unavailable: redis failed: "), "{}", chain(&error));
        registry.hot(10).await.unwrap_err();
    }
    server.restart();
    assert_eq!(ticket(&registry, &id("a")).await, Tickets::Absent);
    // Nobody used the connection while it broke.
    server.restart();
    assert_eq!(ticket(&registry, &id("a")).await, Tickets::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_an_error_in_time() {
    let server = Redis::start();
    let timeout = Duration::from_millis(200);
    let registry = RedisRegistry::connect(RedisOptions { timeout, ..options(server.url()) }).await.unwrap();
    install(&registry, &id("a"), 1, 9).await;
    server.signal("STOP");
    let mut tasks = JoinSet::new();
    for _ in 0..2_000 {
        let registry = registry.clone();
        tasks.spawn(async move {
            let began = Instant::now();
            let error = registry.tickets(&id("a"), ONE).await.unwrap_err();
            (began.elapsed(), chain(&error))
        });
    }
    for (took, error) in tasks.join_all().await {
        assert!(took >= timeout && took < IN_TIME, "{took:?}");
        assert_eq!(error, "registry unavailable: redis did not answer within 200ms");
    }
    server.signal("CONT");
    // What had been sent may still be answered before this.
    assert_ne!(ticket(&registry, &id("a")).await, Tickets::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_starts_before_its_server() {
    let mut server = Redis::reserved();
    let registry = registry(&server).await;
    registry.tickets(&id("a"), ONE).await.unwrap_err();
    server.restart();
    assert_eq!(ticket(&registry, &id("a")).await, Tickets::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_one_node_goes_on_when_it_is_back() {
    let mut cluster = Cluster::start();
    let registry = cluster.registry().await;
    let conversations: Vec<_> = (0..20).map(|i| id(&format!("conv_{i}"))).collect();
    for conversation in &conversations {
        install(&registry, conversation, 1, 100).await;
    }
    cluster.nodes[1].kill();
    let mut failed = 0;
    for conversation in &conversations {
        let began = Instant::now();
        failed += u32::from(registry.tickets(conversation, ONE).await.is_err());
        assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    }
    assert!(failed > 0, "one of three nodes is gone");
    cluster.nodes[1].restart();
    cluster.wait_until_ok();
    let began = Instant::now();
    for conversation in &conversations {
        while registry.tickets(conversation, ONE).await.is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "still failing");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registry_starts_before_its_cluster() {
    let mut cluster = Cluster::start();
    cluster.nodes.iter_mut().for_each(Redis::kill);
    let registry = cluster.registry().await;
    for _ in 0..3 {
        let began = Instant::now();
        registry.tickets(&id("a"), ONE).await.unwrap_err();
        assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    }
    cluster.nodes.iter_mut().for_each(Redis::restart);
    cluster.wait_until_ok();
    let began = Instant::now();
    while registry.tickets(&id("a"), ONE).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(20), "still failing");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_exact_up_to_the_last() {
    let server = Redis::start();
    let registry = registry(&server).await;
    let end = SeqNo::END.get();
    for first in [1 << 31, 99_999_999_999_999, end - 3] {
        let conversation = id(&format!("from {first}"));
        install(&registry, &conversation, first, first + 3).await;
        for n in first..first + 3 {
            assert_eq!(ticket(&registry, &conversation).await, issued(n, first + 3));
        }
        let exhausted = Tickets::Exhausted { next: seq(first + 3), horizon: seq(first + 3) };
        assert_eq!(ticket(&registry, &conversation).await, exhausted);
    }
    let huge = TicketRequest { count: u64::MAX, wcu: u64::MAX };
    install(&registry, &id("all"), 1, end).await;
    assert!(matches!(registry.tickets(&id("all"), huge).await.unwrap(), Tickets::Exhausted { .. }));
    let rest = TicketRequest { count: end - 1, wcu: u64::MAX };
    assert_eq!(registry.tickets(&id("all"), rest).await.unwrap(), issued(1, end));
    assert!(registry.rate_wcu_per_s(&id("all")).await.unwrap() > 1e15);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_seq_no_is_refused() {
    let server = Redis::start();
    let registry = registry(&server).await;
    install(&registry, &id("a"), 1, 9).await;
    let keys: Vec<String> = ask(&server, &["KEYS", "*"]);
    let script = "return redis.call('HSET', KEYS[1], 'state', struct.pack('>I8I8I8I8I8', ARGV[1], ARGV[2], 0, 0, 0))";
    for (next, horizon) in [("1", "9007199254740994"), ("0", "9")] {
        server.ask(&["EVAL", script, "1", &keys[0], next, horizon]);
        let error = registry.tickets(&id("a"), ONE).await.unwrap_err();
        assert!(chain(&error).ends_with("which is no seq_no"), "{}", chain(&error));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_never_meet() {
    let (server, cluster) = (Redis::start(), Cluster::start());
    let longest = "x".repeat(256);
    let texts = [
        "a",
        "a#",
        "a%23",
        "a%",
        "{a}",
        "{}a",
        "}a{",
        "{",
        "}",
        "a\n",
        "a\0",
        "a%0A",
        "🧂",
        "{🧂}",
        "hot:0:0",
        ":",
        "a:",
        &longest,
        &longest[1..],
    ];
    for registry in [registry(&server).await, cluster.registry().await] {
        for (text, first) in texts.iter().zip((1..).step_by(10)) {
            install(&registry, &id(text), first, first + 5).await;
        }
        for (text, first) in texts.iter().zip((1..).step_by(10)) {
            assert_eq!(ticket(&registry, &id(text)).await, issued(first, first + 5), "{text:?}");
        }
        let hot: BTreeSet<String> =
            registry.hot(100).await.unwrap().iter().map(|line| line.conversation.to_string()).collect();
        assert_eq!(hot, texts.iter().map(ToString::to_string).collect());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_share_tickets_and_heat() {
    let server = Redis::start();
    let registries = [registry(&server).await, registry(&server).await];
    install(&registries[0], &id("shared"), 1, 100_000).await;
    let mut tasks = JoinSet::new();
    for task in 0..32 {
        let registry = registries[task % 2].clone();
        tasks.spawn(async move {
            let mut mine = Vec::new();
            for _ in 0..50 {
                let request = TicketRequest { count: 3, wcu: 7 };
                match registry.tickets(&id("shared"), request).await.unwrap() {
                    Tickets::Issued { first, .. } => mine.extend(first.get()..first.get() + 3),
                    other => panic!("{other:?}"),
                }
            }
            mine
        });
    }
    let issued: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
    assert_eq!(issued.iter().collect::<BTreeSet<_>>().len(), 32 * 50 * 3);
    install(&registries[0], &id("warm"), 1, 9).await;
    for registry in &registries {
        registry.tickets(&id("warm"), TicketRequest { count: 1, wcu: 1_000 }).await.unwrap();
    }
    for registry in &registries {
        let rate = registry.rate_wcu_per_s(&id("warm")).await.unwrap();
        assert!(rate > 1_000.0 && rate <= 2_000.0, "each has metered 1,000, but together they know of {rate}");
        let hot = registry.hot(10).await.unwrap();
        assert!(hot.iter().any(|line| line.conversation == id("warm")), "{hot:?}");
    }
}

/// The script's meter is the core's, whatever the clock does.
#[test]
fn the_scripts_meter_as_the_core_does() {
    let server = Redis::start();
    let code = "local m = add({ ARGV[1], ARGV[2], ARGV[3] }, tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])) \
                return { m.window, m.before, m.present, m.turned }";
    let script = format!("{}{code}", include_str!("../src/redis/meter.lua"));
    let (mut rng, mut now_ms) = (SplitMix64::new(7), 1_763_200_000_000);
    let mut meter = Meter::default();
    for _ in 0..1_000 {
        now_ms = now_ms + rng.below(900) + 2_000 * rng.below(10) / 9 - rng.below(300);
        let (before, wcu) = (meter, rng.below(100_000));
        meter.add(now_ms, wcu);
        let words = [before.window, before.before, before.present, wcu, WINDOW_MS, now_ms].map(|n| n.to_string());
        let mut command = vec!["EVAL", &script, "0"];
        command.extend(words.iter().map(String::as_str));
        let (window, earlier, present, turned): (u64, u64, u64, Option<bool>) = ask(&server, &command);
        assert_eq!(Meter { window, before: earlier, present }, meter, "{before:?} and {wcu} WCU at {now_ms}");
        assert_eq!(turned == Some(true), meter.window > before.window);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_prefixes_are_other_registries() {
    let server = Redis::start();
    let registry = registry(&server).await;
    let other =
        RedisRegistry::connect(RedisOptions { prefix: "other".to_owned(), ..options(server.url()) }).await.unwrap();
    install(&registry, &id("a"), 1, 9).await;
    ticket(&registry, &id("a")).await;
    assert_eq!(ticket(&other, &id("a")).await, Tickets::Absent);
    assert_eq!((registry.hot(9).await.unwrap().len(), other.hot(9).await.unwrap().len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_idle_expires_and_use_alone_keeps_it() {
    let server = Redis::start();
    let idle_expiry = Duration::from_millis(60_000);
    let registry = RedisRegistry::connect(RedisOptions { idle_expiry, ..options(server.url()) }).await.unwrap();
    install(&registry, &id("a"), 1, 9).await;
    let keys: Vec<String> = ask(&server, &["KEYS", "*"]);
    let left = || server.ask(&["PTTL", &keys[0]]).parse::<i64>().unwrap();
    let age = || server.ask(&["PEXPIRE", &keys[0], "30000"]);
    assert!((50_000..=60_000).contains(&left()));
    age();
    registry.raise(&id("a"), seq(20)).await.unwrap();
    registry.throttled(&id("a"), ThrottledRow { wcu: 1, epoch: seq(1) }).await.unwrap();
    registry.sample(&id("a"), seq(1)).await.unwrap();
    assert!(left() <= 30_000, "looking at it does not keep it");
    ticket(&registry, &id("a")).await;
    assert!(left() > 30_000);
    registry.hot(1).await.unwrap();
    let keys: Vec<String> = ask(&server, &["KEYS", "*"]);
    assert_eq!(keys.len(), 2, "{keys:?}");
    assert!(
        keys.iter().all(|key| server.ask(&["PTTL", key]).parse::<i64>().unwrap() > 0),
        "everything expires in the end"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_cannot_work_are_refused() {
    let sound = RedisOptions::default();
    let refused = [
        RedisOptions { urls: Vec::new(), ..sound.clone() },
        RedisOptions { urls: Vec::new(), cluster: true, ..sound.clone() },
        RedisOptions { urls: vec!["redis://127.0.0.1".to_owned(); 2], ..sound.clone() },
        RedisOptions { urls: vec!["http://127.0.0.1".to_owned()], ..sound.clone() },
        RedisOptions { prefix: "{salt}".to_owned(), ..sound.clone() },
        RedisOptions { timeout: Duration::ZERO, ..sound.clone() },
        RedisOptions { idle_expiry: Duration::from_micros(1), ..sound.clone() },
    ];
    for options in refused {
        assert!(RedisRegistry::connect(options.clone()).await.is_err(), "{options:?}");
    }
}
