use std::io::ErrorKind::NotFound;

use super::*;

pub(super) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            match std::fs::copy(entry.path(), target) {
                // It is renamed a little after commits pause.
                Err(error) if error.kind() == NotFound && entry.file_name() == "MANIFEST.new" => {}
                copied => drop(copied.unwrap()),
            }
        }
    }
}

/// S2: what is on disk right after an answer is what a killed process leaves behind.
#[tokio::test]
async fn acknowledged_rows_are_on_disk_while_the_store_is_open() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder.path().join("live"));
    for round in 0..3 {
        append_all(&store, round * 50 + 1..=round * 50 + 50).await;
        let killed = folder.path().join(format!("killed{round}"));
        copy(&folder.path().join("live"), &killed);
        assert_eq!(count(&open(&killed)).await.unwrap() as u64, round * 50 + 50);
    }
}

#[tokio::test]
async fn rows_survive_close_and_drop() {
    let folder = TempDir::new().unwrap();
    for (i, clean) in [true, false, true, false].into_iter().enumerate() {
        let store = open(folder.path());
        assert_eq!(count(&store).await.unwrap(), i * 20);
        append_all(&store, i as u64 * 20 + 1..=i as u64 * 20 + 20).await;
        if clean {
            store.close().await.unwrap();
        }
    }
    assert_eq!(count(&open(folder.path())).await.unwrap(), 80);
}

/// Each process begins a segment. They do not pile up, however often one is killed.
#[tokio::test]
async fn many_kills_leave_few_segments() {
    let folder = TempDir::new().unwrap();
    for seq in 1..=40 {
        let store = open(folder.path());
        append_all(&store, seq..=seq).await;
        drop(store);
        assert!(std::fs::read_dir(folder.path().join("log")).unwrap().count() <= 20);
    }
    assert_eq!(count(&open(folder.path())).await.unwrap(), 40);
}

#[tokio::test]
async fn a_closed_store_serves_no_more_and_says_so() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    append_all(&store, 1..=1).await;
    let failure = store.failure();
    store.close().await.unwrap();
    assert!(matches!(failure.await, EngineFailure::Closed));
    assert!(matches!(store.put_all(&append(2)).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(count(&store).await, Err(StoreError::Unavailable(_))));
    assert!(matches!(store.close().await, Err(EngineFailure::Closed)));
}

/// A caller that goes away neither blocks the store nor leaves half an atom.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_callers_leave_whole_atoms() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open(folder.path()));
    for seq in 1..=200 {
        let store = Arc::clone(&store);
        let task = tokio::spawn(async move { store.put_all(&append(seq)).await });
        if seq % 2 == 0 {
            tokio::task::yield_now().await;
        }
        task.abort();
    }
    append_all(&store, 1_000..=1_000).await;
    let rows = count(&*store).await.unwrap();
    for seq in 1..=200 {
        let puts = append(seq);
        let keys: Vec<_> = puts.iter().map(|put| put.key.clone()).collect();
        let there = store.get(&keys, Consistency::Strong).await.unwrap();
        assert_eq!(there[0].is_some(), there[1].is_some(), "half of {seq}");
    }
    assert!((1..=201).contains(&rows));
}
