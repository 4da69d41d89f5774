use std::collections::BTreeMap;
use std::path::PathBuf;

use rstest::rstest;

use super::*;

/// Every file with its bytes.
pub(super) fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(snapshot(&path));
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    files
}

#[test]
fn folders_are_created_with_their_parents() {
    let folder = TempDir::new().unwrap();
    let deep = folder.path().join("a/b/c");
    drop(open(&deep));
    let marker = std::fs::read_to_string(deep.join("SALTERN")).unwrap();
    let lines: Vec<_> = marker.lines().map(|line| line.split_at(line.rfind(' ').unwrap())).collect();
    assert_eq!(lines.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["embedded format", "folder", "checksum"]);
    assert_eq!((lines[0].1, lines[1].1.len(), lines[2].1.len()), (" 1", 33, 17));
}

#[test]
fn a_folder_in_use_is_refused_and_its_holder_named() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    let process = std::process::id();
    let text = refused(folder.path()).to_string();
    assert!(text.contains(&format!("in use by process {process};")), "{text}");
    store.announce("http://127.0.0.1:8080").unwrap();
    let text = refused(folder.path()).to_string();
    assert!(text.contains(&format!("process {process} serving http://127.0.0.1:8080;")), "{text}");
    drop(store);
    drop(open(folder.path()));
}

#[rstest]
#[case("notes.txt", "mine")]
#[case("engine", "not ours either")]
#[case("SALTERN", "who knows")]
#[case("SALTERN", "embedded format 0")]
fn what_is_not_ours_is_not_touched(#[case] name: &str, #[case] content: &str) {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join(name), content).unwrap();
    let before = snapshot(folder.path());
    let error = refused(folder.path());
    assert!(matches!(error, OpenError::NotOurs(_)), "{error:?}");
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn a_newer_format_is_refused() {
    let folder = TempDir::new().unwrap();
    drop(open(folder.path()));
    let marker = checked_text::seal("embedded format 6\nwhatever that says\n".into());
    std::fs::write(folder.path().join("SALTERN"), marker).unwrap();
    let before = snapshot(folder.path());
    assert!(matches!(refused(folder.path()), OpenError::NewerFormat { format: 6, .. }));
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn a_file_in_the_place_of_the_folder_is_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(matches!(refused(&file), OpenError::Io { .. }));
}

/// A process that died while it created the folder has acknowledged nothing: the next one starts over.
#[rstest]
#[case("")]
#[case("embedded format 1\n")]
#[tokio::test]
async fn an_unfinished_folder_is_begun_again(#[case] marker: &str) {
    let folder = TempDir::new().unwrap();
    drop(open(&folder.path().join("other")));
    std::fs::write(folder.path().join("SALTERN.new"), marker).unwrap();
    std::fs::write(folder.path().join("LOCK"), "1\n").unwrap();
    std::fs::rename(folder.path().join("other/engine"), folder.path().join("engine")).unwrap();
    std::fs::remove_file(folder.path().join("engine/version")).unwrap();
    std::fs::rename(folder.path().join("other/log"), folder.path().join("log")).unwrap();
    std::fs::remove_dir_all(folder.path().join("other")).unwrap();
    let store = open(folder.path());
    append_all(&store, 1..=5).await;
    drop(store);
    assert_eq!(count(&open(folder.path())).await.unwrap(), 5);
}

/// Rows in the log, and rows in tables.
async fn filled(folder: &Path) {
    for round in 0..2 {
        let store = open(folder);
        append_all(&store, round * 20 + 1..=round * 20 + 20).await;
        if round == 0 {
            store.close().await.unwrap();
        }
    }
}

/// The line that a folder is refused with, which must be left as it is.
fn reason(folder: &Path) -> String {
    let without_lock = || {
        let mut files = snapshot(folder);
        files.remove(&folder.join("LOCK"));
        files
    };
    let before = without_lock();
    let line = match refused(folder) {
        OpenError::Damaged { source, .. } => source.to_string(),
        error => panic!("{error:?}"),
    };
    assert!(before == without_lock(), "files have changed");
    line
}

/// Whatever becomes of the marker: it never means another format, and never that the folder is empty.
#[tokio::test]
async fn every_changed_bit_of_the_marker_is_told() {
    let folder = TempDir::new().unwrap();
    filled(folder.path()).await;
    let path = folder.path().join("SALTERN");
    let marker = std::fs::read(&path).unwrap();
    let mut damaged: Vec<_> = (0..marker.len()).map(|length| marker[..length].to_vec()).collect();
    for bit in 0..marker.len() * 8 {
        let mut bytes = marker.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        damaged.push(bytes);
    }
    damaged.extend([vec![0; marker.len()], b"embedded format 5\n".to_vec(), [&marker[..], b"\n"].concat()]);
    for bytes in damaged {
        std::fs::write(&path, &bytes).unwrap();
        let line = reason(folder.path());
        assert!(line.contains("SALTERN is corrupt"), "{:?}: {line}", String::from_utf8_lossy(&bytes));
    }
    std::fs::write(&path, marker).unwrap();
    assert_eq!(count(&open(folder.path())).await.unwrap(), 40);
}

/// Without its marker, or with one that says that nothing has been acknowledged, a folder that holds data stays as it is.
#[tokio::test]
async fn data_beside_a_missing_or_unfinished_marker_is_damage() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    filled(folder.path()).await;
    let marker = std::fs::read(path("SALTERN")).unwrap();
    std::fs::remove_file(path("SALTERN")).unwrap();
    assert!(reason(folder.path()).contains("SALTERN is missing"));

    std::fs::write(path("SALTERN.new"), &marker).unwrap();
    assert!(reason(folder.path()).contains("never completed"));
    // Tables alone, and a log alone.
    std::fs::rename(path("log"), path("away")).unwrap();
    std::fs::rename(path("away"), folder.path().with_extension("away")).unwrap();
    assert!(reason(folder.path()).contains("engine/ holds tables"));
    std::fs::rename(folder.path().with_extension("away"), path("log")).unwrap();
    std::fs::rename(path("engine"), folder.path().with_extension("engine")).unwrap();
    assert!(reason(folder.path()).contains("never completed"));

    std::fs::rename(folder.path().with_extension("engine"), path("engine")).unwrap();
    std::fs::rename(path("SALTERN.new"), path("SALTERN")).unwrap();
    assert_eq!(count(&open(folder.path())).await.unwrap(), 40);
}

/// Deleting what looks like a left-over lets nobody else in.
#[tokio::test]
async fn a_deleted_lock_file_opens_nothing() {
    let folder = TempDir::new().unwrap();
    filled(folder.path()).await;
    let store = open(folder.path());
    std::fs::remove_file(folder.path().join("LOCK")).unwrap();
    let before = snapshot(&folder.path().join("log"));
    assert!(matches!(refused(folder.path()), OpenError::Locked { .. }));
    assert!(before == snapshot(&folder.path().join("log")), "files have changed");
    store.check_disk().unwrap();
    assert_eq!(count(&store).await.unwrap(), 40);
}
