use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

use rstest::rstest;

use super::durability::copy;
use super::folder::snapshot;
use super::*;

const ROWS: u64 = 400;

/// A store with rows in tables and rows in the log, as a killed process leaves it.
async fn killed(folder: &Path) -> PathBuf {
    let (live, killed) = (folder.join("live"), folder.join("killed"));
    let store = open(&live);
    append_all(&store, 1..=ROWS / 2).await;
    store.close().await.unwrap();
    drop(store);
    let store = open(&live);
    append_all(&store, ROWS / 2 + 1..=ROWS).await;
    recorded(&live, ROWS + 1).await;
    copy(&live, &killed);
    drop_unused(&killed.join("engine/0.jnl"));
    killed
}

/// The engine allocates its journal in advance.
pub(super) fn drop_unused(journal: &Path) {
    let bytes = std::fs::read(journal).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    std::fs::write(journal, &bytes[..used]).unwrap();
}

#[rstest]
#[case("engine")]
#[case("engine/version")]
#[case("engine/lock")]
#[case("engine/keyspaces")]
#[case("engine/keyspaces/0/current")]
#[case("engine/keyspaces/1/current")]
#[case("engine/keyspaces/2/current")]
#[case("engine/keyspaces/3/current")]
#[case("engine/0.jnl")]
#[case("log")]
#[case("log/MANIFEST")]
#[case("SALTERN")]
#[case("log/2.log")]
#[tokio::test]
async fn a_missing_part_is_damage_and_never_a_fresh_start(#[case] part: &str) {
    let folder = TempDir::new().unwrap();
    let store = killed(folder.path()).await;
    let path = store.join(part);
    if path.is_dir() {
        std::fs::remove_dir_all(path).unwrap();
    } else {
        std::fs::remove_file(path).unwrap();
    }
    let without_lock = || {
        let mut files = snapshot(&store);
        files.remove(&store.join("LOCK"));
        files
    };
    let before = without_lock();
    assert!(matches!(refused(&store), OpenError::Damaged { .. }));
    assert!(before == without_lock(), "files have changed");
}

/// Garbage in any file at any place: no panic, no wrong row, and with the file put back everything is there again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_is_told_and_destroys_nothing() {
    let folder = TempDir::new().unwrap();
    let original = killed(folder.path()).await;
    let case = folder.path().join("case");
    for (file, bytes) in snapshot(&original).into_iter().filter(|(file, _)| !file.ends_with("LOCK")) {
        let name = file.strip_prefix(&original).unwrap();
        for quarter in 0..=4 {
            let at = (bytes.len() * quarter / 4).min(bytes.len().saturating_sub(16));
            let mut bad = bytes.clone();
            bad.iter_mut().skip(at).take(16).for_each(|byte| *byte = 0xA7);
            copy(&original, &case);
            std::fs::write(case.join(name), &bad).unwrap();
            let result = outcome(&case, ROWS);
            eprintln!("{}, garbage at {at} of {}: {result}", name.display(), bytes.len());
            assert!(result == "all there" || result.starts_with("refused") || result.starts_with("failed"));
            std::fs::write(case.join(name), &bytes).unwrap();
            assert_eq!(outcome(&case, ROWS), "all there", "{} at {at}", name.display());
            std::fs::remove_dir_all(&case).unwrap();
        }
    }
}

pub(super) fn outcome(folder: &Path, expected: u64) -> String {
    let attempt = std::panic::catch_unwind(AssertUnwindSafe(|| {
        let store = match EmbeddedStore::open(folder, EmbeddedOptions::default()) {
            Ok(store) => store,
            Err(OpenError::Damaged { source, .. }) => return format!("refused: {source}"),
            Err(error) => return format!("refused: {error}"),
        };
        // As every start does in a thread of its own.
        let _ = store.view.engine.keys(physical::Space::Claims).find(Result::is_err);
        match tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(count(&store))) {
            Ok(rows) if rows as u64 == expected => "all there".into(),
            Ok(rows) => format!("lost {}", expected - rows as u64),
            Err(error) => format!("failed: {error}"),
        }
    }));
    attempt.unwrap_or_else(|_| "panicked".into())
}
