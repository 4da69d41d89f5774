//! What the simulation does not look at: how much work an operation costs, and how it ends when time or room is out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use saltern_core::control::ControlRecord;
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::Key;
use saltern_core::layout::{Epoch, Layout, Salt};
use saltern_core::message::{Body, Draft};
use saltern_core::page::GapState;
use saltern_core::record::Record;
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_registry::Registry;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{AppendError, Config, Conversations, Lookup, ReadError};
use saltern_store::faulty::{FaultPlan, Faulty, WriteFaults};
use saltern_store::memory::MemoryStore;
use saltern_store::{Capabilities, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError};
use tokio::time::{Instant, sleep};

const EMBEDDED: Capabilities = Capabilities { atomic_puts: true, exclusive: true };
const CLOUD: Capabilities = Capabilities { atomic_puts: false, exclusive: false };

fn seq(n: u64) -> SeqNo {
    SeqNo::new(n).unwrap()
}

fn conversation() -> ConversationId {
    ConversationId::new("c").unwrap()
}

fn draft(name: &str, content: &str) -> Draft {
    let sender_id = ParticipantId::new("alice").unwrap();
    let body = Body { sender_id, receiver_id: None, content: content.into(), timestamp: None };
    Draft::new(MessageId::new(name).unwrap(), body).unwrap()
}

const NOW_MS: u64 = 1_700_000_000_000;

fn config() -> Config {
    Config::new(Arc::new(|| NOW_MS), 1)
}

fn service(store: &MemoryStore) -> Conversations {
    Conversations::new(Arc::new(store.clone()), Arc::new(LocalRegistry::new(100)), config())
}

async fn append(service: &Conversations, count: u64) {
    for i in 0..count {
        service.append(&conversation(), draft(&format!("m{i}"), "hey")).await.unwrap();
    }
}

/// A conversation as other servers may have left it: a layout, and rows up to `head`.
async fn plant(store: &MemoryStore, epochs: &[(u64, u16)], head: u64, row: impl Fn(u64) -> Option<Record>) -> Layout {
    let epochs = epochs.iter().map(|&(from, n)| Epoch { from: seq(from), n }).collect();
    let layout = Layout::from_parts(epochs, seq(head + 100)).unwrap();
    let control = ControlRecord { layout: layout.clone(), ..ControlRecord::create(1, 0) };
    put(store, Key::control(&conversation()), Record::Control(control)).await;
    for at in 1..=head {
        if let Some(record) = row(at) {
            put(store, Key::row(&conversation(), layout.salt(seq(at)).unwrap(), seq(at)), record).await;
        }
    }
    layout
}

async fn put(store: &MemoryStore, key: Key, record: Record) {
    store.put(&Put { key, record, condition: Condition::Absent }).await.unwrap();
}

fn message(at: u64) -> Option<Record> {
    Some(Record::Message(saltern_core::record::MessageRow::new(&draft(&format!("m{at}"), "hey"), 0)))
}

/// Partitions asked and rows read by what `work` does.
async fn cost<T>(service: &Conversations, work: impl Future<Output = T>) -> (T, u64, u64) {
    let metrics = service.metrics();
    let before = (metrics.read_partitions.get(), metrics.rows_read.get());
    let done = work.await;
    (done, metrics.read_partitions.get() - before.0, metrics.rows_read.get() - before.1)
}

#[tokio::test(start_paused = true)]
async fn a_new_conversation_starts_at_one_without_a_gap() {
    for capabilities in [EMBEDDED, CLOUD] {
        let service = service(&MemoryStore::new(capabilities));
        append(&service, 100).await;
        let page = service.older(&conversation(), None, 200).await.unwrap();
        let seqs: Vec<_> = page.messages.iter().map(|m| m.seq.get()).collect();
        assert_eq!(seqs, (1..=100).rev().collect::<Vec<_>>());
        assert_eq!((page.next_before, page.stable_through, page.gaps.len()), (None, 100, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn copies_sent_at_once_are_one_message_and_leave_no_void() {
    for capabilities in [EMBEDDED, CLOUD] {
        let store = MemoryStore::new(capabilities);
        // Slow, so that all copies are under way before the first has ended.
        let slow = FaultPlan { slow: 1_000, slow_max: Duration::from_millis(50), ..FaultPlan::default() };
        let slow = Arc::new(Faulty::new(Arc::new(store.clone()), 1, slow));
        let service = Conversations::new(slow, Arc::new(LocalRegistry::new(100)), config());
        let id = conversation();
        let copies = (0..50).map(|_| service.append(&id, draft("m", "hey")));
        let results = futures_util::future::join_all(copies).await;
        let firsts = results.iter().filter(|r| !r.as_ref().unwrap().replayed).count();
        assert_eq!(firsts, 1);
        assert!(results.iter().all(|r| r.as_ref().unwrap().seq == SeqNo::FIRST));
        assert!(!store.rows().iter().any(|(_, record)| *record == Record::Void));
        let other = service.append(&id, draft("m", "ho")).await;
        assert!(matches!(other, Err(AppendError::Conflict(SeqNo::FIRST))), "{other:?}");
        let page = service.older(&id, None, 20).await.unwrap();
        assert_eq!((page.messages.len(), page.messages[0].value.text()), (1, Some("hey")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_answers_for_each_message() {
    for capabilities in [EMBEDDED, CLOUD] {
        let service = service(&MemoryStore::new(capabilities));
        service.append(&conversation(), draft("old", "hey")).await.unwrap();
        let drafts = [("a", "1"), ("old", "hey"), ("b", "2"), ("a", "1"), ("a", "other"), ("old", "other")]
            .map(|(m, c)| draft(m, c));
        let results = service.append_batch(&conversation(), drafts.into()).await;
        let shown: Vec<_> = results
            .iter()
            .map(|r| match r {
                Ok(a) if a.replayed => format!("{} again", a.seq),
                Ok(a) => a.seq.to_string(),
                Err(error) => error.to_string(),
            })
            .collect();
        let used = |at: &str| format!("message_id is used by another message, at seq_no {at}");
        let (a, b) = (shown[0].clone(), shown[2].clone());
        assert_eq!(shown, [a.clone(), "1 again".into(), b.clone(), format!("{a} again"), used(&a), used("1")]);
        assert!(a.parse::<u64>().unwrap() < b.parse::<u64>().unwrap(), "in the order of the batch");
        let results = service.append_batch(&conversation(), vec![draft("old", "other"), draft("old", "hey")]).await;
        assert!(matches!(results[..], [Err(AppendError::Conflict(_)), Ok(there)] if there.replayed), "{results:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_page_of_an_unsalted_conversation_is_one_query() {
    let store = MemoryStore::new(CLOUD);
    plant(&store, &[(1, 1)], 500, message).await;
    let service = service(&store);
    for _ in 0..2 {
        let (page, partitions, rows) = cost(&service, service.older(&conversation(), None, 20)).await;
        assert_eq!(page.unwrap().messages.len(), 20);
        assert_eq!((partitions, rows), (1, 20));
    }
}

#[tokio::test(start_paused = true)]
async fn an_older_page_asks_for_its_own_rows_whatever_n_is() {
    for n in [1, 4, 10, 40] {
        let store = MemoryStore::new(CLOUD);
        plant(&store, &[(1, 1), (65, n)], 2_000, message).await;
        // Cold and warm: the first read of a server knows no head.
        let service = service(&store);
        for before in [1_500, 1_501, 1_333, 2_001, 500, 70] {
            let id = conversation();
            let read = service.older(&id, Some(seq(before)), 20);
            let (page, partitions, rows) = cost(&service, read).await;
            assert_eq!(page.unwrap().messages[0].seq, seq(before - 1));
            assert!(partitions <= 2 && rows == 20, "n = {n}, before {before}: {partitions} partitions, {rows} rows");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_newest_page_of_a_salted_conversation_is_one_round_and_reads_little_once_the_head_is_known() {
    let store = MemoryStore::new(CLOUD);
    plant(&store, &[(1, 10)], 2_000, message).await;
    let service = service(&store);
    service.older(&conversation(), None, 20).await.unwrap();
    let (page, partitions, rows) = cost(&service, service.older(&conversation(), None, 20)).await;
    assert_eq!(page.unwrap().messages[0].seq, seq(2_000));
    assert!(partitions <= 10 && rows <= 40, "{partitions} partitions, {rows} rows");
}

/// A store at a distance: every call takes a round trip, calls at the same time take one together.
struct Distant(MemoryStore);

const ROUND_TRIP: Duration = Duration::from_millis(10);

#[async_trait]
impl Store for Distant {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        sleep(ROUND_TRIP).await;
        self.0.put(put).await
    }

    async fn put_all(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        sleep(ROUND_TRIP).await;
        self.0.put_all(puts).await
    }

    async fn get(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        sleep(ROUND_TRIP).await;
        self.0.get(keys, consistency).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        sleep(ROUND_TRIP).await;
        self.0.query(query).await
    }
}

/// At any n, newest and older: control record and rows are asked for at once, and partitions too.
#[tokio::test(start_paused = true)]
async fn a_page_takes_one_round_trip() {
    for n in [1, 4, 10, 40] {
        let memory = MemoryStore::new(CLOUD);
        plant(&memory, &[(1, n)], 2_000, message).await;
        let mut cacheless = config();
        cacheless.cache_bytes_max = 0;
        let distant = Arc::new(Distant(memory.clone()));
        let service = Conversations::new(distant, Arc::new(LocalRegistry::new(100)), cacheless);
        service.older(&conversation(), None, 20).await.unwrap();
        for before in [None, Some(seq(1_500)), Some(seq(1_490)), None] {
            let began = Instant::now();
            service.older(&conversation(), before, 20).await.unwrap();
            assert_eq!(began.elapsed(), ROUND_TRIP, "n = {n}, before {before:?}");
        }
        // Another server has extended the horizon and written beyond the one known here: that takes another look.
        let other = Conversations::new(Arc::new(memory), Arc::new(LocalRegistry::new(100)), config());
        append(&other, 200).await;
        let began = Instant::now();
        let page = service.older(&conversation(), None, 20).await.unwrap();
        assert_eq!((page.messages[0].seq, began.elapsed()), (seq(2_200), 2 * ROUND_TRIP), "n = {n}");
    }
}

#[tokio::test(start_paused = true)]
async fn tailing_at_the_end_of_an_unsalted_conversation_is_one_query() {
    let store = MemoryStore::new(CLOUD);
    plant(&store, &[(1, 1)], 100, message).await;
    let service = service(&store);
    let (page, partitions, rows) = cost(&service, service.newer(&conversation(), 100, 20)).await;
    let page = page.unwrap();
    assert_eq!((page.next_after, page.at_end, partitions, rows), (100, true, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_long_run_of_voids_is_sealed_once_and_then_stepped_over() {
    let store = MemoryStore::new(CLOUD);
    let living = |at| if (100..1_100).contains(&at) { None } else { message(at) };
    plant(&store, &[(1, 3)], 1_200, living).await;
    let service = service(&store);
    let page = service.newer(&conversation(), 0, 200).await.unwrap();
    assert_eq!((page.messages.len(), page.next_after, page.at_end), (99, 99, false));
    assert_eq!(page.gaps[0].state, GapState::Pending);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let page = service.older(&conversation(), None, 120).await.unwrap();
    assert_eq!(page.messages.last().unwrap().seq, seq(81));
    let run = SeqRange::new(seq(100), seq(1_099)).unwrap();
    assert_eq!((page.gaps[0].range, page.gaps[0].state), (run, GapState::Void));
    let (_, _, rows) = cost(&service, service.older(&conversation(), Some(seq(1_110)), 20)).await;
    assert!(rows <= 20, "{rows} rows read");
    let (page, _, rows) = cost(&service, service.newer(&conversation(), 90, 20)).await;
    assert_eq!(page.unwrap().messages.last().unwrap().seq, seq(1_110));
    assert!(rows <= 20, "{rows} rows read");
}

/// Many writers that died at once hold nobody up for longer than a few: holes are not waited for one after the other.
#[tokio::test(start_paused = true)]
async fn many_holes_are_sealed_together() {
    let store = MemoryStore::new(CLOUD);
    let living = |at| if at < 3_000 && at % 7 == 0 { None } else { message(at) };
    plant(&store, &[(1, 1), (500, 4)], 3_000, living).await;
    let service = service(&store);
    let began = Instant::now();
    let mut after = 0;
    loop {
        let page = service.newer(&conversation(), after, 200).await.unwrap();
        if page.at_end {
            break;
        }
        if page.next_after == after {
            sleep(Duration::from_millis(100)).await;
        }
        after = page.next_after;
    }
    assert!(began.elapsed() < 3 * config().seal_after, "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_embedded_restart_seals_holes_at_the_first_touch() {
    let store = MemoryStore::new(EMBEDDED);
    plant(&store, &[(1, 1)], 9, |at| if at == 4 { None } else { message(at) }).await;
    let service = service(&store);
    let appended = service.append(&conversation(), draft("next", "hey")).await.unwrap();
    assert_eq!(appended.seq, seq(10));
    let page = service.newer(&conversation(), 0, 20).await.unwrap();
    assert_eq!((page.next_after, page.at_end, page.stable_through), (10, true, 10));
    assert_eq!(
        (page.gaps.len(), page.gaps[0].range, page.gaps[0].state),
        (1, SeqRange::single(seq(4)), GapState::Void)
    );
}

#[tokio::test(start_paused = true)]
async fn a_place_is_a_message_a_void_pending_or_beyond_the_head() {
    let store = MemoryStore::new(CLOUD);
    let rows = |at| match at {
        3 => Some(Record::Void),
        4 => None,
        at => message(at),
    };
    plant(&store, &[(1, 1)], 6, rows).await;
    let service = service(&store);
    let look = async |at| service.lookup(&conversation(), seq(at)).await.unwrap();
    assert!(matches!(look(2).await, Lookup::Message(row) if row.message_id.as_str() == "m2"));
    assert_eq!(look(3).await, Lookup::Void);
    assert_eq!(look(4).await, Lookup::Pending);
    assert_eq!(look(7).await, Lookup::BeyondHead);
    assert_eq!(look(1 << 50).await, Lookup::BeyondHead);
}

#[tokio::test(start_paused = true)]
async fn a_missing_row_that_must_exist_is_an_error_not_a_shorter_page() {
    let store = MemoryStore::new(CLOUD);
    let layout = plant(&store, &[(1, 1)], 50, |at| if at == 20 { None } else { message(at) }).await;
    let control = ControlRecord { ver: 2, layout, resolved: seq(51), ..ControlRecord::create(1, 0) };
    let key = Key::control(&conversation());
    store.put(&Put { key, record: Record::Control(control), condition: Condition::Version(1) }).await.unwrap();
    let service = service(&store);
    assert_eq!(service.older(&conversation(), None, 20).await.unwrap().messages.len(), 20);
    let older = service.older(&conversation(), Some(seq(30)), 20).await;
    assert!(matches!(older, Err(ReadError::Lost { seq: at, .. }) if at == seq(20)), "{older:?}");
    let newer = service.newer(&conversation(), 10, 20).await;
    assert!(matches!(newer, Err(ReadError::Lost { seq: at, .. }) if at == seq(20)), "{newer:?}");
    let one = service.lookup(&conversation(), seq(20)).await;
    assert!(matches!(one, Err(ReadError::Lost { .. })), "{one:?}");
    assert_eq!(service.metrics().rows_lost.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_lost_tail_is_not_taken_for_the_end() {
    for survivors in [0, 10] {
        let store = MemoryStore::new(CLOUD);
        let layout = plant(&store, &[(1, 1), (5, 2)], 50, |at| if at > survivors { None } else { message(at) }).await;
        let control = ControlRecord { ver: 2, layout, resolved: seq(51), ..ControlRecord::create(1, 0) };
        let key = Key::control(&conversation());
        store.put(&Put { key, record: Record::Control(control), condition: Condition::Version(1) }).await.unwrap();
        let service = service(&store);
        let newest = service.older(&conversation(), None, 20).await;
        assert!(matches!(newest, Err(ReadError::Lost { seq: at, .. }) if at == seq(50)), "{newest:?}");
        let tail = service.newer(&conversation(), 40, 20).await;
        assert!(matches!(tail, Err(ReadError::Lost { .. })), "{tail:?}");
        // Nothing may be written over what was lost.
        let append = service.append(&conversation(), draft("new", "hey")).await;
        assert!(append.is_err(), "{append:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn look_alike_conversations_are_apart_even_when_salted() {
    let store = MemoryStore::new(CLOUD);
    let names = ["a", "a#1", "a%231", "a#ctl", "a#id#x"].map(|name| ConversationId::new(name).unwrap());
    let control = ControlRecord {
        layout: Layout::from_parts(vec![Epoch { from: seq(1), n: 1 }, Epoch { from: seq(2), n: 3 }], seq(9)).unwrap(),
        ..ControlRecord::create(1, NOW_MS)
    };
    put(&store, Key::control(&names[0]), Record::Control(control)).await;
    let service = service(&store);
    for name in &names {
        for i in 0..40 {
            service.append(name, draft(&format!("x{i}"), name.as_str())).await.unwrap();
        }
    }
    for name in &names {
        let page = service.older(name, None, 200).await.unwrap();
        assert_eq!(page.messages.len(), 40, "{name}");
        assert!(page.messages.iter().all(|m| m.value.text() == Some(name.as_str())), "{name}");
    }
    let salted = store
        .rows()
        .iter()
        .filter(|(key, _)| key.partition == saltern_core::key::PartitionKey::messages(&names[0], Salt::Of(1)))
        .count();
    assert!(salted > 0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_silent_is_answered_in_time_and_the_message_may_be_sent_again() {
    let store = Arc::new(Faulty::new(Arc::new(MemoryStore::new(CLOUD)), 1, FaultPlan::default()));
    let service = Conversations::new(store.clone(), Arc::new(LocalRegistry::new(100)), config());
    append(&service, 3).await;
    store.set_plan(FaultPlan { writes: WriteFaults { lost: 1_000, ..WriteFaults::default() }, ..FaultPlan::default() });
    let began = tokio::time::Instant::now();
    let result = service.append(&conversation(), draft("late", "hey")).await;
    assert!(matches!(result, Err(AppendError::Unsettled(_))), "{result:?}");
    assert!(began.elapsed() <= config().append_deadline);
    store.set_plan(FaultPlan::default());
    let first = service.append(&conversation(), draft("late", "hey")).await.unwrap();
    let again = service.append(&conversation(), draft("late", "hey")).await.unwrap();
    assert_eq!((first.seq, again.seq, again.replayed), (again.seq, first.seq, true));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let page = service.newer(&conversation(), 0, 20).await.unwrap();
    assert_eq!((page.messages.len(), page.at_end, page.stable_through), (4, true, page.next_after));
}

#[tokio::test(start_paused = true)]
async fn without_the_registry_reads_go_on_and_appends_say_so() {
    let registry = Arc::new(saltern_registry::faulty::FaultyRegistry::new(
        Arc::new(LocalRegistry::new(100)),
        1,
        saltern_registry::faulty::RegistryFaultPlan::default(),
    ));
    let service =
        Conversations::new(Arc::new(MemoryStore::new(CLOUD)), registry.clone() as Arc<dyn Registry>, config());
    append(&service, 30).await;
    registry.set_down(true);
    assert_eq!(service.older(&conversation(), None, 20).await.unwrap().messages.len(), 20);
    assert_eq!(service.newer(&conversation(), 0, 20).await.unwrap().messages.len(), 20);
    assert_eq!(service.view(&conversation()).await.unwrap().unwrap().rate_wcu_per_s, None);
    let refused = service.append(&conversation(), draft("x", "hey")).await;
    assert!(matches!(refused, Err(AppendError::Registry(_))), "{refused:?}");
    registry.set_down(false);
    assert_eq!(service.append(&conversation(), draft("x", "hey")).await.unwrap().seq, seq(31));
}

#[tokio::test(start_paused = true)]
async fn too_much_at_once_is_refused_at_once() {
    let slow = FaultPlan { slow: 1_000, slow_max: Duration::from_secs(1), ..FaultPlan::default() };
    let store = Arc::new(Faulty::new(Arc::new(MemoryStore::new(EMBEDDED)), 1, slow));
    let config = Config { appends_max: 10, reads_max: 5, ..config() };
    let service = Conversations::new(store, Arc::new(LocalRegistry::new(100)), config);
    let id = conversation();
    let appends = (0..30).map(|i| service.append(&id, draft(&format!("m{i}"), "hey")));
    let results = futures_util::future::join_all(appends).await;
    let refused = results.iter().filter(|r| matches!(r, Err(AppendError::Overloaded))).count();
    assert_eq!((refused, results.iter().filter(|r| r.is_ok()).count()), (20, 10));
    let reads = (0..30).map(|i| service.newer(&id, i, 20));
    let results = futures_util::future::join_all(reads).await;
    assert_eq!(results.iter().filter(|r| matches!(r, Err(ReadError::Overloaded))).count(), 25);
}

#[tokio::test(start_paused = true)]
async fn an_append_outlives_its_caller_and_shutdown_waits_for_it() {
    let slow = FaultPlan { slow: 1_000, slow_max: Duration::from_secs(1), ..FaultPlan::default() };
    let memory = MemoryStore::new(EMBEDDED);
    let store = Arc::new(Faulty::new(Arc::new(memory.clone()), 1, slow));
    let service = Conversations::new(store, Arc::new(LocalRegistry::new(100)), config());
    let gone = tokio::time::timeout(Duration::from_millis(5), service.append(&conversation(), draft("m", "hey"))).await;
    assert!(gone.is_err());
    service.shut_down().await;
    let stored = memory.rows().iter().filter(|(_, r)| matches!(r, Record::Message(_))).count();
    assert_eq!(stored, 1);
    let late = service.append(&conversation(), draft("n", "hey")).await;
    assert!(matches!(late, Err(AppendError::Overloaded)), "{late:?}");
}
