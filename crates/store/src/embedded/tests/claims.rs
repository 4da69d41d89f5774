//! A claim in a table is found by whoever comes again, whatever the filter knows at that time.

use rstest::rstest;

use super::*;

const CLAIMS: u64 = 300;

fn claim(i: u64) -> Put {
    append(i).remove(0)
}

fn excludes(store: &EmbeddedStore, i: u64) -> bool {
    let said = store.view.fresh.get(physical::Space::Claims, &physical::physical_key(&claim(i).key));
    matches!(said.value, Some(None))
}

async fn all_are_refused(store: &EmbeddedStore, claims: u64) {
    for i in 1..=claims {
        let put = claim(i);
        assert!(!excludes(store, i));
        assert_eq!(store.put(&put).await.unwrap(), PutOutcome::Refused(Some(put.record.clone())), "{i}");
        assert_eq!(store.get(&[put.key], Consistency::Strong).await.unwrap(), [Some(put.record)], "{i}");
    }
}

async fn recalled(store: &EmbeddedStore) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !excludes(store, u64::MAX) {
        assert!(Instant::now() < patience, "the claims in tables never became known");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[rstest]
#[tokio::test]
async fn claims_are_found_before_and_after_all_are_recalled(#[values(false, true)] is_clean: bool) {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    append_all(&store, 1..=CLAIMS).await;
    store.settle().await.unwrap();
    append_all(&store, CLAIMS + 1..=2 * CLAIMS).await;
    if is_clean {
        store.close().await.unwrap();
    }
    drop(store);

    let store = open(folder.path());
    all_are_refused(&store, 2 * CLAIMS).await;
    recalled(&store).await;
    all_are_refused(&store, 2 * CLAIMS).await;
    append_all(&store, 2 * CLAIMS + 1..=3 * CLAIMS).await;
    all_are_refused(&store, 3 * CLAIMS).await;
    store.settle().await.unwrap();
    all_are_refused(&store, 3 * CLAIMS).await;
    assert!(excludes(&store, u64::MAX));
}

/// Whoever stops right after the start does not wait until all claims are read.
#[tokio::test]
async fn a_start_can_be_cut_off() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    append_all(&store, 1..=CLAIMS).await;
    drop(store);
    for _ in 0..20 {
        drop(open(folder.path()));
    }
    all_are_refused(&open(folder.path()), CLAIMS).await;
}
