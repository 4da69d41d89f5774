//! Rows in tables: several to an entry, each in one only.

use super::*;
use crate::embedded::physical::Space;
use crate::scan::Scan as _;

fn entries(store: &EmbeddedStore) -> Vec<Vec<u8>> {
    store.view.engine.space(Space::Rows).iter().map(|entry| entry.value().unwrap().to_vec()).collect()
}

fn holds(entry: &[u8], text: &str) -> bool {
    entry.windows(text.len()).any(|window| window == text.as_bytes())
}

/// The row of `append`, in place of what is there.
async fn replace(store: &EmbeddedStore, seq: u64, record: Record) {
    let put = append(seq).pop().unwrap();
    let put = Put { record, condition: Condition::Version(0), ..put };
    assert_eq!(store.put(&put).await.unwrap(), PutOutcome::Applied);
}

#[tokio::test]
async fn rows_of_a_stripe_that_move_together_are_one_entry() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    append_all(&store, 1..=100).await;
    store.settle().await.unwrap();
    assert_eq!(entries(&store).len(), 4);
    append_all(&store, 101..=130).await;
    store.settle().await.unwrap();
    assert_eq!(entries(&store).len(), 6);
    assert_eq!(count(&store).await.unwrap(), 130);
}

#[tokio::test]
async fn large_rows_stand_alone() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    for seq in 1..=6 {
        let mut puts = append(seq);
        let Record::Message(row) = &mut puts[1].record else { unreachable!() };
        row.content = saltern_core::record::Content::Here("x".repeat(if seq == 4 { 60_000 } else { 7_000 }));
        store.put_all(&puts).await.unwrap();
    }
    store.settle().await.unwrap();
    let lengths: Vec<_> = entries(&store).iter().map(|entry| entry.len() / 7_000).collect();
    assert_eq!(lengths, [2, 1, 8, 2]);
}

/// Also when it came later than its neighbours, and entries of a stripe interleave.
#[tokio::test]
async fn what_replaces_a_row_takes_its_place_in_its_entry() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    for seqs in [[1, 3, 5], [2, 4, 7]] {
        append_all(&store, seqs.into_iter()).await;
        store.settle().await.unwrap();
    }
    assert_eq!(entries(&store).len(), 2);
    assert_eq!(count(&store).await.unwrap(), 6);

    replace(&store, 3, Record::Void).await;
    append_all(&store, 6..=6).await;
    store.settle().await.unwrap();
    let there = entries(&store);
    assert_eq!(there.len(), 3);
    assert!(there.iter().all(|entry| !holds(entry, "message 3")));
    for seq in [1, 2, 4, 5, 6, 7] {
        let text = format!("message {seq}");
        assert_eq!(there.iter().filter(|entry| holds(entry, &text)).count(), 1, "{text}");
    }
    let page = store.scan(None, 100).await.unwrap();
    let sorts: Vec<_> = page.rows.iter().map(|(key, _)| key.sort).take(7).collect();
    assert_eq!(sorts, [1, 2, 3, 4, 5, 6, 7]);
}

/// A process may be killed when rows are in tables and still in the log: with more behind them, and some of them replaced.
#[tokio::test]
async fn rows_that_move_once_more_are_in_one_entry() {
    let folder = TempDir::new().unwrap();
    let (live, killed) = (folder.path().join("live"), folder.path().join("killed"));
    let store = open(&live);
    append_all(&store, 1..=10).await;
    durability::copy(&live, &killed);
    store.settle().await.unwrap();
    drop(store);
    layers::replace(&live.join(layers::ROWS), &killed.join(layers::ROWS));

    let store = open(&killed);
    append_all(&store, 11..=20).await;
    replace(&store, 5, Record::Void).await;
    store.settle().await.unwrap();
    let there = entries(&store);
    assert_eq!(there.len(), 2);
    assert!(there.iter().all(|entry| !holds(entry, "message 5")));
    let page = store.scan(None, 100).await.unwrap();
    assert_eq!(page.rows.len(), 20 + 20);
}

/// Rows that moved one by one are entries of their own.
#[tokio::test]
async fn rows_that_moved_alone_are_read_and_replaced() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    for seq in 1..=5 {
        append_all(&store, seq..=seq).await;
        store.settle().await.unwrap();
    }
    assert_eq!(entries(&store).len(), 5);
    append_all(&store, 6..=9).await;
    assert_eq!(count(&store).await.unwrap(), 9);
    replace(&store, 2, Record::Void).await;
    store.settle().await.unwrap();
    let there = entries(&store);
    assert_eq!(there.len(), 6);
    assert!(there.iter().all(|entry| !holds(entry, "message 2")));
}
