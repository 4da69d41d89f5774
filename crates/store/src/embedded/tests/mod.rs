mod campaigns;
mod claims;
mod damage;
mod durability;
mod folder;
mod forged;
mod layers;
mod packs;
mod random_damage;
mod scan;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::Salt;
use saltern_core::message::{Body, Draft};
use saltern_core::page::Order;
use saltern_core::record::{Claim, MessageRow, Record};
use saltern_core::seq::SeqNo;
use tempfile::TempDir;

use super::*;
use crate::conformance;
use crate::port::{Condition, Consistency, Put, PutOutcome, Query, Store, StoreError, query_all};

fn open(folder: &Path) -> EmbeddedStore {
    EmbeddedStore::open(folder, EmbeddedOptions::default()).unwrap()
}

fn refused(folder: &Path) -> OpenError {
    EmbeddedStore::open(folder, EmbeddedOptions::default()).err().expect("must not open")
}

fn conversation() -> ConversationId {
    ConversationId::new("c").unwrap()
}

/// A claim and a row, as an append writes them.
fn append(seq: u64) -> Vec<Put> {
    let seq = SeqNo::clamped(seq);
    let body = Body {
        sender_id: ParticipantId::new("alice").unwrap(),
        receiver_id: None,
        content: format!("message {seq} ").repeat(10),
        timestamp: None,
    };
    let draft = Draft::new(MessageId::new(&format!("m{seq}")).unwrap(), body).unwrap();
    let claim = Record::Claim(Claim { seq, digest: draft.digest });
    let row = Record::Message(MessageRow::new(&draft, 0));
    let absent = |key, record| Put { key, record, condition: Condition::Absent };
    vec![
        absent(Key::claim(&conversation(), &draft.message_id), claim),
        absent(Key::row(&conversation(), Salt::Unsalted, seq), row),
    ]
}

/// Writes bytes that no codec would.
async fn plant(store: &EmbeddedStore, space: physical::Space, key: Vec<u8>, value: &[u8]) {
    let change = log::Change::put(space, key, value);
    store.commit(vec![commit::Write::new(change, commit::Premise::Nothing, None)]).await.unwrap();
}

async fn append_all(store: &EmbeddedStore, seqs: impl Iterator<Item = u64>) {
    for seq in seqs {
        assert_eq!(store.put_all(&append(seq)).await.unwrap(), [PutOutcome::Applied, PutOutcome::Applied]);
    }
}

/// Waits until the manifest says that all commits before this one have been synced.
async fn recorded(folder: &Path, next_commit: u64) {
    let patience = Instant::now() + Duration::from_secs(30);
    let line = format!(" commit {next_commit}\n");
    while !std::fs::read_to_string(folder.join("log/MANIFEST")).unwrap().contains(&line) {
        assert!(Instant::now() < patience, "the end of the log was never recorded");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How many appended messages are there, each with its claim.
async fn count(store: &dyn Store) -> Result<usize, StoreError> {
    let partition = PartitionKey::messages(&conversation(), Salt::Unsalted);
    let (from, to, consistency) = (0, u64::MAX, Consistency::Strong);
    let query = Query { partition, from, to, order: Order::Ascending, limit: usize::MAX, consistency };
    let rows = query_all(store, &query).await?;
    for (sort, record) in &rows {
        let puts = append(*sort);
        assert_eq!(*record, puts[1].record);
        let claims = store.get(std::slice::from_ref(&puts[0].key), Consistency::Strong).await?;
        assert_eq!(claims, [Some(puts[0].record.clone())]);
    }
    Ok(rows.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract() {
    let folder = TempDir::new().unwrap();
    conformance::all(Arc::new(open(folder.path()))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract_with_a_narrow_queue_and_thin_layers() {
    let folder = TempDir::new().unwrap();
    let options = EmbeddedOptions { queue_max: 1, batch_max: 2, layer_bytes: 64 * 1_024, ..EmbeddedOptions::default() };
    conformance::all(Arc::new(EmbeddedStore::open(folder.path(), options).unwrap())).await;
}

#[test]
fn metrics_count_commits() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    let mut registry = prometheus_client::registry::Registry::default();
    store.metrics().register(&mut registry);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(append_all(&store, 1..=3));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    assert!(text.contains("store_commits_total 3"), "{text}");
    assert!(text.contains("store_commit_seconds_count 3"), "{text}");
}
