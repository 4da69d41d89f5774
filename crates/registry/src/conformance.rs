//! What every registry must do, as functions that panic if it does not. Adapters are bound to them with one line.
//!
//! Each check uses conversations of its own, so that they also run against a registry that others use. Checks of
//! time hold in virtual and in real time alike, and take about four seconds. R4 permits rather than demands, so
//! nothing here checks it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use saltern_core::heat::Sample;
use saltern_core::ids::ConversationId;
use saltern_core::seq::SeqNo;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::port::{Registry, ThrottledRow, TicketRequest, Tickets};

/// Every check.
pub async fn all(registry: Arc<dyn Registry>) {
    tickets_are_distinct_under_concurrency(Arc::clone(&registry)).await;
    tickets_stay_distinct_while_the_horizon_moves(Arc::clone(&registry)).await;
    let registry = registry.as_ref();
    the_unknown_is_absent(registry).await;
    nothing_is_issued_at_the_horizon(registry).await;
    what_is_known_only_rises(registry).await;
    a_run_is_whole_or_not_issued(registry).await;
    the_last_seq_no_can_be_issued(registry).await;
    raising_never_creates(registry).await;
    conversations_do_not_mix(registry).await;
    throttled_rows_are_metered_by_their_epoch(registry).await;
    the_hottest_come_first(registry).await;
    load_is_metered_in_wcu(registry).await;
    load_is_metered_though_nothing_is_issued(registry).await;
    a_steady_rate_is_read_and_silence_noticed(registry).await;
}

/// R1, by many tasks at once, with runs of different lengths.
pub async fn tickets_are_distinct_under_concurrency(registry: Arc<dyn Registry>) {
    const TASKS: u64 = 64;
    const ASKS: u64 = 50;
    let conversation = fresh("distinct");
    install(registry.as_ref(), &conversation, 1, 100_000).await;
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (registry, conversation) = (Arc::clone(&registry), conversation.clone());
        tasks.spawn(async move {
            let mut mine = Vec::new();
            for ask in 0..ASKS {
                let count = 1 + (task + ask) % 4;
                match tickets(registry.as_ref(), &conversation, count, 1).await {
                    Tickets::Issued { first, .. } => mine.extend(first.get()..first.get() + count),
                    other => panic!("there is room for all, but: {other:?}"),
                }
            }
            mine
        });
    }
    let issued: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<u64> = issued.iter().copied().collect();
    assert_eq!(distinct.len(), issued.len(), "R1: a seq_no was issued twice");
    assert_eq!(distinct.last(), Some(&(issued.len() as u64)), "R1: seq_nos were left out");
}

/// R1, R2 and R3 together: others raise the horizon and install what is long out of date, as late servers do.
pub async fn tickets_stay_distinct_while_the_horizon_moves(registry: Arc<dyn Registry>) {
    const TASKS: u64 = 16;
    const WANTED: usize = 60;
    let conversation = fresh("moving");
    install(registry.as_ref(), &conversation, 1, 9).await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (registry, conversation) = (Arc::clone(&registry), conversation.clone());
        tasks.spawn(async move {
            let mut mine = Vec::new();
            while mine.len() < WANTED {
                match tickets(registry.as_ref(), &conversation, 1, 1).await {
                    Tickets::Issued { first, horizon } => {
                        assert!(first < horizon, "R2: {first} at or above {horizon}");
                        mine.push(first);
                    }
                    Tickets::Exhausted { next, horizon } => {
                        registry.raise(&conversation, horizon.plus(8)).await.expect("raise");
                        registry.install(&conversation, next.minus(20), horizon).await.expect("install");
                    }
                    Tickets::Absent => panic!("the conversation is known"),
                }
            }
            mine
        });
    }
    let issued: Vec<SeqNo> = tasks.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<SeqNo> = issued.iter().copied().collect();
    assert_eq!(distinct.len(), issued.len(), "R1: a seq_no was issued twice");
}

pub async fn the_unknown_is_absent(registry: &dyn Registry) {
    let conversation = fresh("unknown");
    assert_eq!(tickets(registry, &conversation, 1, 1).await, Tickets::Absent);
    throttled(registry, &conversation, ThrottledRow { wcu: 1, epoch: SeqNo::FIRST }).await;
    sample(registry, &conversation, SeqNo::FIRST).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, Tickets::Absent, "only install makes it known");
    assert_eq!(rate(registry, &fresh("never-heard-of")).await, 0.0);
}

/// R2.
pub async fn nothing_is_issued_at_the_horizon(registry: &dyn Registry) {
    let conversation = fresh("horizon");
    install(registry, &conversation, 5, 8).await;
    for expected in 5..8 {
        assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(expected, 8), "R2");
    }
    for _ in 0..3 {
        assert_eq!(tickets(registry, &conversation, 1, 1).await, exhausted(8, 8), "R2");
    }
    raise(registry, &conversation, 9).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(8, 9));
    assert_eq!(tickets(registry, &conversation, 1, 1).await, exhausted(9, 9), "R2");
}

/// R3.
pub async fn what_is_known_only_rises(registry: &dyn Registry) {
    let conversation = fresh("rises");
    install(registry, &conversation, 10, 20).await;
    install(registry, &conversation, 5, 15).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(10, 20), "R3: both stay");
    raise(registry, &conversation, 12).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(11, 20), "R3: raise does not lower");
    install(registry, &conversation, 15, 18).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(15, 20), "R3: next rises, the horizon stays");
    install(registry, &conversation, 2, 30).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(16, 30), "R3: the horizon rises, next stays");
    raise(registry, &conversation, 40).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(17, 40));
    install(registry, &conversation, 100, 200).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(100, 200));
}

/// R5.
pub async fn a_run_is_whole_or_not_issued(registry: &dyn Registry) {
    let conversation = fresh("runs");
    install(registry, &conversation, 1, 11).await;
    assert_eq!(tickets(registry, &conversation, 8, 8).await, issued(1, 11));
    assert_eq!(tickets(registry, &conversation, 3, 3).await, exhausted(9, 11), "R5: two are left");
    assert_eq!(tickets(registry, &conversation, 2, 2).await, issued(9, 11), "R5: nothing was taken in vain");
    assert_eq!(tickets(registry, &conversation, 1, 1).await, exhausted(11, 11));
}

/// Numbers up to 2^53 pass unharmed.
pub async fn the_last_seq_no_can_be_issued(registry: &dyn Registry) {
    let conversation = fresh("last");
    let end = SeqNo::END.get();
    install(registry, &conversation, end - 2, end - 1).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(end - 2, end - 1));
    raise(registry, &conversation, end).await;
    assert_eq!(tickets(registry, &conversation, 2, 1).await, exhausted(end - 1, end));
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(end - 1, end));
    assert_eq!(tickets(registry, &conversation, 1, 1).await, exhausted(end, end));
}

/// R6.
pub async fn raising_never_creates(registry: &dyn Registry) {
    let conversation = fresh("raised");
    raise(registry, &conversation, 100).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, Tickets::Absent, "R6");
    install(registry, &conversation, 1, 9).await;
    assert_eq!(tickets(registry, &conversation, 1, 1).await, issued(1, 9), "R6: the raise left nothing behind");
}

/// Ids that an adapter's keys might confuse.
pub async fn conversations_do_not_mix(registry: &dyn Registry) {
    let base = fresh("mix");
    let ends = ["", "#", "#0", ":", "{", "}", "{a}", "%23", " ", "\n", "\0", "🧂"];
    let conversations = ends.map(|end| ConversationId::new(&format!("{base}{end}")).expect("an id"));
    for (conversation, first) in conversations.iter().zip((1..).step_by(10)) {
        install(registry, conversation, first, first + 5).await;
    }
    for (conversation, first) in conversations.iter().zip((1..).step_by(10)) {
        assert_eq!(tickets(registry, conversation, 1, 1).await, issued(first, first + 5), "{conversation:?}");
    }
}

/// A row that was throttled tells of its own epoch's n, and of no other.
pub async fn throttled_rows_are_metered_by_their_epoch(registry: &dyn Registry) {
    let conversation = fresh("throttles");
    install(registry, &conversation, 1, 9).await;
    let [first, second, third] = [1, 40, 90].map(SeqNo::clamped);
    let metered = async |epoch| sample(registry, &conversation, epoch).await.throttled_wcu_per_s;
    assert_eq!(metered(first).await, 0.0);
    let row = |epoch| ThrottledRow { wcu: 5, epoch };
    for epoch in [first, second] {
        for _ in 0..1_000 {
            throttled(registry, &conversation, row(epoch)).await;
        }
        let late = ThrottledRow { wcu: 5_000, ..row(first) };
        if epoch > first {
            throttled(registry, &conversation, late).await;
        }
        for _ in 0..2 {
            // However long the calls took, a second's window holds some of them, and no more than all.
            let metered = metered(epoch).await;
            assert!(metered > 0.0 && metered <= 5_000.0, "{metered}");
        }
    }
    assert_eq!((metered(first).await, metered(third).await), (0.0, 0.0));
    assert_eq!(rate(registry, &conversation).await, 0.0, "what is throttled was metered with its ticket");
}

async fn throttled(registry: &dyn Registry, conversation: &ConversationId, row: ThrottledRow) {
    registry.throttled(conversation, row).await.expect("throttled");
}

/// Hottest first, idle ones not at all, never more than asked for.
pub async fn the_hottest_come_first(registry: &dyn Registry) {
    // Far apart, so that the time between the calls cannot change the order.
    let loads = [50_000, 0, 5_000_000, 500, 500_000];
    let conversations = loads.map(|load| (fresh(&format!("hot-{load}")), load));
    for (conversation, load) in &conversations {
        install(registry, conversation, 1, 9).await;
        tickets(registry, conversation, 1, *load).await;
    }
    throttled(registry, &conversations[0].0, ThrottledRow { wcu: 1, epoch: SeqNo::FIRST }).await;
    let hot = registry.hot(10_000).await.expect("hot");
    assert!(hot.is_sorted_by(|a, b| a.rate_wcu_per_s >= b.rate_wcu_per_s), "{hot:?}");
    assert!(hot.iter().all(|line| line.rate_wcu_per_s > 0.0), "{hot:?}");
    let mine = hot.iter().filter_map(|line| Some((conversations.iter().find(|c| c.0 == line.conversation)?.1, line)));
    let (order, lines): (Vec<_>, Vec<_>) = mine.unzip();
    assert_eq!(order, [5_000_000, 500_000, 50_000, 500]);
    assert_eq!(lines.iter().map(|line| line.throttles).collect::<Vec<_>>(), [0, 0, 1, 0]);
    assert_eq!(registry.hot(2).await.expect("hot").len(), 2);
    assert_eq!(registry.hot(0).await.expect("hot").len(), 0);
}

/// The rate counts what messages cost, not how many they are.
pub async fn load_is_metered_in_wcu(registry: &dyn Registry) {
    let conversation = fresh("wcu");
    install(registry, &conversation, 1, 1_000).await;
    for _ in 0..10 {
        tickets(registry, &conversation, 5, 100).await;
    }
    let rate = rate(registry, &conversation).await;
    assert!((500.0..=1_000.5).contains(&rate), "1,000 WCU just now, but a rate of {rate}");
    let sampled = sample(registry, &conversation, SeqNo::FIRST).await.rate_wcu_per_s;
    assert!((400.0..=1_000.5).contains(&sampled), "1,000 WCU just now, but a sample of {sampled}");
}

/// What cannot be served is wanted all the same, and heat is about what is wanted.
pub async fn load_is_metered_though_nothing_is_issued(registry: &dyn Registry) {
    let conversation = fresh("refused");
    install(registry, &conversation, 9, 9).await;
    for _ in 0..10 {
        assert_eq!(tickets(registry, &conversation, 1, 100).await, exhausted(9, 9));
    }
    let rate = rate(registry, &conversation).await;
    assert!((500.0..=1_000.5).contains(&rate), "1,000 WCU just now, but a rate of {rate}");
}

/// 400 WCU/s for two seconds, then nothing.
pub async fn a_steady_rate_is_read_and_silence_noticed(registry: &dyn Registry) {
    let conversation = fresh("steady");
    install(registry, &conversation, 1, 1_000).await;
    let began = Instant::now();
    let mut asked = 0.0;
    for _ in 0..40 {
        tickets(registry, &conversation, 1, 20).await;
        asked += 20.0;
        sleep(Duration::from_millis(50)).await;
    }
    let (steady, read) = (asked / began.elapsed().as_secs_f64(), rate(registry, &conversation).await);
    assert!((0.6 * steady..=1.4 * steady).contains(&read), "about {steady} WCU/s, but a rate of {read}");
    sleep(Duration::from_millis(2_200)).await;
    let read = rate(registry, &conversation).await;
    assert!(read < 0.05 * steady, "silence for two seconds, but a rate of {read}");
}

/// A conversation that no other check uses, nor any other process.
fn fresh(name: &str) -> ConversationId {
    static CHECKS: AtomicU64 = AtomicU64::new(0);
    let check = CHECKS.fetch_add(1, Ordering::Relaxed);
    ConversationId::new(&format!("conformance-{}-{check}-{name}", std::process::id())).expect("a short id")
}

async fn tickets(registry: &dyn Registry, conversation: &ConversationId, count: u64, wcu: u64) -> Tickets {
    registry.tickets(conversation, TicketRequest { count, wcu }).await.expect("tickets")
}

async fn install(registry: &dyn Registry, conversation: &ConversationId, next: u64, horizon: u64) {
    registry.install(conversation, SeqNo::clamped(next), SeqNo::clamped(horizon)).await.expect("install");
}

async fn raise(registry: &dyn Registry, conversation: &ConversationId, horizon: u64) {
    registry.raise(conversation, SeqNo::clamped(horizon)).await.expect("raise");
}

async fn rate(registry: &dyn Registry, conversation: &ConversationId) -> f64 {
    registry.rate_wcu_per_s(conversation).await.expect("rate")
}

async fn sample(registry: &dyn Registry, conversation: &ConversationId, epoch: SeqNo) -> Sample {
    registry.sample(conversation, epoch).await.expect("sample")
}

fn issued(first: u64, horizon: u64) -> Tickets {
    Tickets::Issued { first: SeqNo::clamped(first), horizon: SeqNo::clamped(horizon) }
}

fn exhausted(next: u64, horizon: u64) -> Tickets {
    Tickets::Exhausted { next: SeqNo::clamped(next), horizon: SeqNo::clamped(horizon) }
}
