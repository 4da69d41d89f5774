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
    assert_eq!(std::fs::read_to_string(deep.join("SALTERN")).unwrap(), "embedded format 5\n");
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
    std::fs::write(folder.path().join("SALTERN"), "embedded format 6\n").unwrap();
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
#[tokio::test]
async fn an_unfinished_folder_is_begun_again() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("SALTERN.new"), "embedded format 1\n").unwrap();
    std::fs::write(folder.path().join("LOCK"), "1\n").unwrap();
    std::fs::create_dir_all(folder.path().join("engine/keyspaces/0")).unwrap();
    std::fs::write(folder.path().join("engine/0.jnl"), "half").unwrap();
    let store = open(folder.path());
    append_all(&store, 1..=5).await;
    drop(store);
    assert_eq!(count(&open(folder.path())).await.unwrap(), 5);
}
