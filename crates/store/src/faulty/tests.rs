use std::sync::Arc;
use std::time::Duration;

use saltern_core::ids::ConversationId;
use saltern_core::key::Key;
use saltern_core::layout::Salt;
use saltern_core::page::Order;
use saltern_core::record::Record;
use saltern_core::seq::SeqNo;

use super::*;
use crate::conformance;
use crate::memory::MemoryStore;
use crate::port::{
    Capabilities, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError, query_all,
};

const SECOND: Duration = Duration::from_secs(1);

fn stores(seed: u64, plan: FaultPlan) -> (MemoryStore, Faulty) {
    let memory = MemoryStore::new(Capabilities { atomic_puts: true, exclusive: true });
    (memory.clone(), Faulty::new(Arc::new(memory), seed, plan))
}

fn void(sort: u64) -> Put {
    let conversation = ConversationId::new("c").unwrap();
    let key = Key::row(&conversation, Salt::Unsalted, SeqNo::clamped(sort));
    Put { key, record: Record::Void, condition: Condition::Absent }
}

fn everything(consistency: Consistency, order: Order) -> Query {
    Query { partition: void(1).key.partition, from: 1, to: 1_000, order, limit: 1_000, consistency }
}

#[tokio::test]
async fn without_a_plan_it_keeps_the_contract() {
    let (_, faulty) = stores(1, FaultPlan::default());
    conformance::all(Arc::new(faulty.clone())).await;
    assert!(faulty.calls() > 100);
    assert!(faulty.faults().is_empty());
}

#[tokio::test(start_paused = true)]
async fn each_write_fault_does_what_it_says() {
    let always = |writes: WriteFaults| FaultPlan { writes, late_max: SECOND, ..FaultPlan::default() };
    let none = WriteFaults::default();
    let cases = [
        (WriteFaults { lost: 1_000, ..none }, Fault::Lost, false, false),
        (WriteFaults { unknown: 1_000, ..none }, Fault::Unknown, true, true),
        (WriteFaults { late: 1_000, ..none }, Fault::Late, false, true),
        (WriteFaults { throttled: 1_000, ..none }, Fault::Throttled, false, false),
        (WriteFaults { unavailable: 1_000, ..none }, Fault::Unavailable, false, false),
    ];
    for (writes, fault, at_once, later) in cases {
        let (memory, faulty) = stores(1, always(writes));
        let answer = faulty.put_all(&[void(1), void(2)]).await;
        match fault {
            Fault::Throttled => assert!(matches!(answer, Err(StoreError::Throttled))),
            Fault::Unavailable => assert!(matches!(answer, Err(StoreError::Unavailable(_)))),
            _ => assert!(matches!(answer, Err(StoreError::Unknown(_)))),
        }
        assert_eq!(memory.rows().len(), if at_once { 2 } else { 0 }, "{fault:?}");
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(memory.rows().len(), if later { 2 } else { 0 }, "{fault:?}");
        assert_eq!(faulty.faults().into_iter().collect::<Vec<_>>(), [(fault, 1)]);
        assert_eq!((faulty.calls(), faulty.faulty_calls()), (1, 1));
    }
}

/// S4: a crashed server cannot take back what it has sent.
#[tokio::test(start_paused = true)]
async fn a_write_goes_on_when_its_caller_has_gone() {
    let (memory, faulty) = stores(3, FaultPlan { slow: 1_000, slow_max: SECOND, ..FaultPlan::default() });
    for sort in 1..=20 {
        let sent = tokio::time::timeout(Duration::from_nanos(1), faulty.put(&void(sort))).await;
        assert!(sent.is_err() || sent.is_ok_and(|answer| answer.is_ok()));
    }
    tokio::time::sleep(3 * SECOND).await;
    assert_eq!(memory.rows().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn partial_pages_lose_nothing_and_are_sometimes_empty() {
    let reads = ReadFaults { partial_page: 700, ..ReadFaults::default() };
    let (_, faulty) = stores(4, FaultPlan { reads, ..FaultPlan::default() });
    let places = [1, 2, 3, 50, 51, 700, 999];
    for sort in places {
        assert_eq!(faulty.put(&void(sort)).await.unwrap(), PutOutcome::Applied);
    }
    let mut empty = 0;
    for order in [Order::Ascending, Order::Descending] {
        for _ in 0..200 {
            let query = everything(Consistency::Strong, order);
            let QueryPage { rows, resume } = faulty.query(&query).await.unwrap();
            empty += u64::from(rows.is_empty() && resume.is_some());
            let mut all: Vec<_> = query_all(&faulty, &query).await.unwrap().into_iter().map(|(s, _)| s).collect();
            if order == Order::Descending {
                all.reverse();
            }
            assert_eq!(all, places);
        }
    }
    assert!(empty > 10);
    assert!(faulty.faults()[&Fault::PartialPage] > 100);
}

#[tokio::test(start_paused = true)]
async fn eventual_reads_lag_and_catch_up_and_strong_ones_never_lag() {
    let reads = ReadFaults { stale: 1_000, ..ReadFaults::default() };
    let (_, faulty) = stores(5, FaultPlan { reads, stale_max: SECOND, ..FaultPlan::default() });
    faulty.put(&void(1)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let eventual = everything(Consistency::Eventual, Order::Ascending);
    let mut missed = 0;
    for _ in 0..50 {
        missed += usize::from(faulty.query(&eventual).await.unwrap().rows.is_empty());
        missed += usize::from(faulty.get(&[void(1).key], Consistency::Eventual).await.unwrap()[0].is_none());
        assert_eq!(faulty.get(&[void(1).key], Consistency::Strong).await.unwrap(), [Some(Record::Void)]);
    }
    assert!(missed > 50);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(faulty.query(&eventual).await.unwrap().rows.len(), 1);
}

/// The same seed is the same run, fault by fault; a healed store is a good one.
#[tokio::test(start_paused = true)]
async fn a_seed_is_a_run() {
    let plan = FaultPlan {
        writes: WriteFaults { lost: 50, unknown: 50, late: 50, throttled: 50, unavailable: 50 },
        reads: ReadFaults { throttled: 50, unavailable: 50, partial_page: 100, stale: 100 },
        slow: 100,
        slow_max: SECOND,
        late_max: SECOND,
        stale_max: SECOND,
    };
    let mut runs = Vec::new();
    for seed in [7, 7, 8] {
        let (memory, faulty) = stores(seed, plan);
        let mut answers = String::new();
        for sort in 1..=300 {
            answers += &format!("{:?}", faulty.put(&void(sort)).await);
            answers += &format!("{:?}", faulty.query(&everything(Consistency::Eventual, Order::Ascending)).await);
        }
        assert!(faulty.faulty_calls() * 10 >= faulty.calls());
        assert_eq!(faulty.faults().len(), 8);
        faulty.set_plan(FaultPlan::default());
        tokio::time::sleep(3 * SECOND).await;
        let rows = query_all(&faulty, &everything(Consistency::Strong, Order::Ascending)).await.unwrap();
        assert_eq!(rows.len(), memory.rows().len());
        runs.push((answers, faulty.faults()));
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}
