use super::*;
use crate::due::Due as _;
use crate::embedded::physical::{Space, physical_key};
use crate::scan::Scan as _;

#[tokio::test]
async fn can_be_scanned() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    conformance::finds_every_row_once(&store, &store).await;
}

/// A row that is not what was written is told by its key, and hides no other.
#[tokio::test]
async fn a_damaged_row_stands_for_itself() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    append_all(&store, 1..=3).await;
    let damaged = Key::row(&conversation(), Salt::Unsalted, SeqNo::clamped(2));
    plant(&store, Space::Rows, physical_key(&damaged), b"\xff").await;
    let page = store.scan(None, 100).await.unwrap();
    assert_eq!((page.rows.len(), page.resume), (6, None));
    for (key, record) in page.rows {
        assert_eq!(record.is_err(), key == damaged, "{key:?}");
    }
}

#[tokio::test]
async fn knows_what_is_due() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    conformance::names_what_is_due(&store, &store).await;
    store.close().await.unwrap();
    drop(store);
    // What a record has left behind is dropped when it is met, and stays out.
    let store = open(folder.path());
    assert_eq!(store.due(5_000, None, 100).await.unwrap().conversations.len(), 40);
    store.settle().await.unwrap();
    assert_eq!(store.view.engine.space(Space::Due).iter().count(), 40);
}
