use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use rstest::rstest;
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::Salt;
use saltern_core::message::{Body, Draft};
use saltern_core::page::Order;
use saltern_core::record::{MessageRow, Record};
use saltern_core::seq::SeqNo;

use super::*;
use crate::conformance;
use crate::memory::MemoryStore;
use crate::port::{Capabilities, Condition, Consistency, Put, PutOutcome, Query, Store, StoreError};

fn limits(physical_partitions: u32) -> PartitionLimits {
    PartitionLimits::without_burst(NonZeroU32::new(physical_partitions).unwrap())
}

fn over_memory(limits: PartitionLimits) -> Throttled {
    Throttled::new(Arc::new(MemoryStore::new(Capabilities { atomic_puts: true, exclusive: false })), limits)
}

fn conversation() -> ConversationId {
    ConversationId::new("tea").unwrap()
}

fn put(seq: u64, content_bytes: usize) -> Put {
    let body = Body {
        sender_id: ParticipantId::new("alice").unwrap(),
        receiver_id: None,
        content: "x".repeat(content_bytes),
        timestamp: None,
    };
    let draft = Draft::new(MessageId::new(&seq.to_string()).unwrap(), body).unwrap();
    let key = Key::row(&conversation(), Salt::Unsalted, SeqNo::clamped(seq));
    Put { key, record: Record::Message(MessageRow::new(&draft, 0)), condition: Condition::Absent }
}

fn query(consistency: Consistency, limit: usize) -> Query {
    let partition = PartitionKey::messages(&conversation(), Salt::Unsalted);
    Query { partition, from: 1, to: 1_000, order: Order::Ascending, limit, consistency }
}

/// Writes as fast as it can for a while; answers how many were taken.
async fn flood(store: &Throttled, content_bytes: usize, ms: u64) -> u64 {
    let mut taken = 0;
    for i in 0..ms * 4 {
        match store.put(&put(1 + i, content_bytes)).await {
            Ok(_) => taken += 1,
            Err(StoreError::Throttled) => {}
            Err(error) => panic!("{error}"),
        }
        tokio::time::advance(Duration::from_micros(250)).await;
    }
    taken
}

#[tokio::test(start_paused = true)]
async fn keeps_the_contract() {
    let mut ample = limits(7);
    (ample.write_units_per_s, ample.read_units_per_s) = (1e9, 1e9);
    conformance::all(Arc::new(over_memory(ample))).await;
}

#[rstest]
#[case(100, 1)]
#[case(2_000, 3)]
#[tokio::test(start_paused = true)]
async fn one_partition_takes_a_thousand_units_a_second(#[case] content_bytes: usize, #[case] units: u64) {
    let store = over_memory(limits(1));
    let taken = flood(&store, content_bytes, 5_000).await;
    // The second that was saved, and five more.
    assert!(taken * units >= 5_995 && taken * units <= 6_005, "{taken}");
    let load = store.loads()[0];
    assert_eq!((load.write_units, load.throttled_writes), (taken * units, 20_000 - taken));
}

#[tokio::test(start_paused = true)]
async fn what_is_throttled_did_not_happen() {
    let memory = MemoryStore::new(Capabilities { atomic_puts: false, exclusive: false });
    let store = Throttled::new(Arc::new(memory.clone()), limits(1));
    flood(&store, 100, 2_000).await;
    assert!(store.loads()[0].throttled_writes > 0);
    assert_eq!(memory.rows().len() as u64, store.loads()[0].write_units);
}

#[tokio::test(start_paused = true)]
async fn unused_capacity_is_saved_for_five_minutes_at_most() {
    let store = over_memory(PartitionLimits::dynamodb(NonZeroU32::MIN));
    tokio::time::advance(Duration::from_secs(3_600)).await;
    let taken = flood(&store, 64 * 1_024, 2_000).await;
    // 65 units each; 300 seconds saved, and two more.
    assert!((taken * 65).abs_diff(302_000) <= 65, "{taken}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_put_costs_what_stands_in_its_way() {
    let store = over_memory(limits(1));
    store.put(&put(1, 10_000)).await.unwrap();
    assert_eq!(store.loads()[0].write_units, 10);
    assert!(matches!(store.put(&put(1, 10)).await.unwrap(), PutOutcome::Refused(Some(_))));
    assert_eq!(store.loads()[0].write_units, 20);
}

#[rstest]
#[case(Consistency::Strong, 1.0)]
#[case(Consistency::Eventual, 0.5)]
#[tokio::test(start_paused = true)]
async fn reads_cost_by_the_bytes(#[case] consistency: Consistency, #[case] unit: f64) {
    let store = over_memory(limits(1));
    for seq in 1..=20 {
        store.put(&put(seq, 1_000)).await.unwrap();
    }
    let cost = async |before: f64| store.loads()[0].read_units - before;
    store.query(&query(consistency, 20)).await.unwrap();
    // 20 rows of a good 1,120 bytes.
    assert_eq!(cost(0.0).await, 6.0 * unit);
    store.query(&query(consistency, 1)).await.unwrap();
    assert_eq!(cost(6.0 * unit).await, unit);
    let keys = [put(1, 0).key, put(2, 0).key, put(900, 0).key];
    store.get(&keys, consistency).await.unwrap();
    assert_eq!(cost(7.0 * unit).await, 3.0 * unit);
}

#[tokio::test(start_paused = true)]
async fn a_read_partition_is_throttled_too() {
    let store = over_memory(limits(1));
    for seq in 1..=200 {
        store.put(&put(seq, 1_000)).await.unwrap();
    }
    let mut throttled = 0;
    for _ in 0..200 {
        throttled +=
            u32::from(matches!(store.query(&query(Consistency::Strong, 200)).await, Err(StoreError::Throttled)));
    }
    // 56 units each against 3,000.
    assert_eq!(throttled, 200 - 54);
    assert_eq!(store.loads()[0].throttled_reads, u64::from(throttled));
}

/// One hot partition does not slow another.
#[tokio::test(start_paused = true)]
async fn partitions_are_throttled_apart() {
    let store = over_memory(limits(50));
    flood(&store, 100, 3_000).await;
    let hot = store.physical(&put(1, 0).key.partition);
    for salt in 0..100 {
        let mut other = put(1, 100);
        other.key = Key::row(&conversation(), Salt::Of(salt), SeqNo::FIRST);
        let outcome = store.put(&other).await;
        assert_eq!(outcome.is_err(), store.physical(&other.key.partition) == hot, "{salt}");
    }
}

/// Every salt has its own physical partition as often as chance would have it.
#[test]
fn salts_are_spread_as_by_chance() {
    let store = over_memory(limits(50));
    let mut collisions = 0;
    for i in 0..1_000 {
        let id = ConversationId::new(&format!("conv_{i}")).unwrap();
        let mut places: Vec<_> =
            (0..10).map(|salt| store.physical(&PartitionKey::messages(&id, Salt::Of(salt)))).collect();
        places.sort_unstable();
        places.dedup();
        collisions += u32::from(places.len() < 10);
    }
    // 1 - 50!/40!/50^10 = 0.618
    assert!((570..=665).contains(&collisions), "{collisions}");
}
