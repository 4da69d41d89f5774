//! What is particular to memory and folders.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tempfile::TempDir;

use super::{LIST_MAX, ObjectError, ObjectRoot, Objects, conformance};

fn folder(path: &Path) -> ObjectRoot {
    ObjectRoot::folder(path).unwrap()
}

async fn names(objects: &ObjectRoot) -> Vec<String> {
    let page = objects.list("", None, LIST_MAX).await.unwrap();
    page.objects.into_iter().map(|info| info.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_keeps_the_contract() {
    conformance::all(Arc::new(ObjectRoot::in_memory())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_keeps_the_contract() {
    let temporary = TempDir::new().unwrap();
    conformance::all(Arc::new(folder(temporary.path()))).await;
}

#[tokio::test]
async fn a_folder_is_created_and_found_again() {
    let temporary = TempDir::new().unwrap();
    let path = temporary.path().canonicalize().unwrap().join("not/yet there");
    let objects = folder(&path);
    assert_eq!(objects.root(), "archive", "clients do not see the folder's path");
    assert_eq!(names(&objects).await, [""; 0]);
    objects.put("a/b", Bytes::from_static(b"kept")).await.unwrap();
    assert_eq!(std::fs::read(path.join("a/b")).unwrap(), b"kept");
    drop(objects);
    assert_eq!(folder(&path).get("a/b", None).await.unwrap(), "kept");
    // A file where the folder should be.
    assert!(ObjectRoot::folder(&path.join("a/b")).is_err());
}

/// What a crash in the middle of puts leaves behind is no object, and hinders none (O1).
#[tokio::test]
async fn half_a_put_is_no_object() {
    let temporary = TempDir::new().unwrap();
    let objects = folder(temporary.path());
    objects.put("a/whole", Bytes::from_static(b"whole")).await.unwrap();
    for half in ["a/whole#1", "a/whole#2", "a/new#1", "a/new#17"] {
        std::fs::write(temporary.path().join(half), b"hal").unwrap();
    }
    assert_eq!(names(&objects).await, ["a/whole"]);
    assert_eq!(objects.get("a/whole", None).await.unwrap(), "whole");
    assert!(matches!(objects.get("a/new", None).await, Err(ObjectError::Missing)));
    for half in ["a/whole#1", "a/new#17"] {
        objects.get(half, None).await.unwrap_err();
        objects.get(half, Some(0..1)).await.unwrap_err();
    }
    for name in ["a/whole", "a/new"] {
        objects.put(name, Bytes::from_static(b"whole again")).await.unwrap();
        assert_eq!(objects.get(name, None).await.unwrap(), "whole again");
    }
    assert_eq!(names(&objects).await, ["a/new", "a/whole"]);
    let now_ms = || u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap();
    assert_eq!(objects.remove_unfinished(now_ms() - 60_000).await.unwrap(), 0);
    assert!(objects.remove_unfinished(now_ms() + 1_000).await.unwrap() >= 4);
    assert!(!temporary.path().join("a/whole#1").exists() && temporary.path().join("a/whole").exists());
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_unavailable() {
    let temporary = TempDir::new().unwrap();
    let objects = folder(temporary.path());
    objects.put("a", Bytes::new()).await.unwrap();
    let answer = objects.put("a/b", Bytes::new()).await;
    assert!(matches!(answer, Err(ObjectError::Unavailable(_))), "{answer:?}");
    assert!(objects.get("a/b", None).await.is_err());
}
