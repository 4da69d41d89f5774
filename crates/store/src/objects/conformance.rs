//! The contract of the port as executable checks, one per promise. Each panics where an adapter breaks it.
//!
//! Every check keeps to a folder of its own and leaves it as it found it, so that one root, old or new, serves all of them
//! any number of times.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};

use super::port::{LIST_MAX, ObjectError, ObjectInfo, Objects};

/// Everything.
pub async fn all(objects: Arc<dyn Objects>) {
    objects_come_back_whole(&*objects).await;
    ranges_are_exact(&*objects).await;
    gets_see_answered_puts_and_deletes(&*objects).await;
    one_of_many_puts_stands_whole(Arc::clone(&objects)).await;
    lists_keep_to_the_folder_in_order(&*objects).await;
    lists_go_on_past_the_largest_page(&*objects).await;
}

/// Empty, small and large, under every kind of name (O1).
pub async fn objects_come_back_whole(objects: &dyn Objects) {
    let large = pattern(7, 5 * 1024 * 1024);
    let cases = [
        ("whole/empty", Bytes::new()),
        ("whole/one", Bytes::from_static(b"\0")),
        ("whole/day=2026-11-16/Part_0.1.zst", pattern(3, 10_000)),
        ("whole/-/=/_/..a/.b/c..", Bytes::from_static(b"odd")),
        ("whole/5-MiB", large.clone()),
    ];
    for (name, bytes) in &cases {
        put(objects, name, bytes.clone()).await;
        assert!(get(objects, name).await == bytes, "{name}");
    }
    let middle = objects.get("whole/5-MiB", Some(1_000_000..4_000_000)).await.expect("a part of it");
    assert!(middle == large.slice(1_000_000..4_000_000));
    put(objects, "whole/5-MiB", Bytes::from_static(b"small")).await;
    assert_eq!(get(objects, "whole/5-MiB").await, "small");
    clear(objects, "whole").await;
}

/// All the bytes that were asked for, or none.
pub async fn ranges_are_exact(objects: &dyn Objects) {
    let (name, empty) = ("ranges/digits", "ranges/empty");
    put(objects, name, Bytes::from_static(b"0123456789")).await;
    put(objects, empty, Bytes::new()).await;
    let within: [(Range<u64>, &str); 6] =
        [(0..10, "0123456789"), (0..1, "0"), (9..10, "9"), (3..6, "345"), (4..4, ""), (10..10, "")];
    for (range, expected) in within {
        assert_eq!(objects.get(name, Some(range)).await.expect("within the object"), expected);
    }
    assert_eq!(objects.get(empty, Some(0..0)).await.expect("nothing of nothing"), "");
    let beyond = [
        (name, 0..11),
        (name, 9..11),
        (name, 10..11),
        (name, 50..60),
        (name, 0..1 << 40),
        (name, 11..11),
        (empty, 0..1),
    ];
    for (name, range) in beyond {
        let answer = objects.get(name, Some(range.clone())).await;
        assert!(matches!(answer, Err(ObjectError::TooShort)), "{name} {range:?}: {answer:?}");
    }
    for range in [0..1, 0..0, 5..9] {
        let answer = objects.get("ranges/missing", Some(range)).await;
        assert!(matches!(answer, Err(ObjectError::Missing)), "{answer:?}");
    }
    clear(objects, "ranges").await;
}

/// Each get sees the last put or delete that was answered before it (O3, O4).
pub async fn gets_see_answered_puts_and_deletes(objects: &dyn Objects) {
    let name = "seen/x";
    objects.delete("seen/no-such-folder/x").await.expect("what is not there can be deleted");
    for round in 0..10 {
        assert!(is_missing(objects, name).await);
        for again in 0..3 {
            let bytes = Bytes::from(format!("{round} {again}"));
            put(objects, name, bytes.clone()).await;
            assert_eq!(get(objects, name).await, bytes);
            assert_eq!(names(objects, "seen", LIST_MAX).await, [name]);
        }
        objects.delete(name).await.expect("a delete is answered");
        assert!(is_missing(objects, name).await);
        assert_eq!(names(objects, "seen", LIST_MAX).await, [""; 0]);
        objects.delete(name).await.expect("a delete can be repeated");
    }
}

/// Puts of one name at the same time: whoever reads meanwhile, or after, has the whole of one of them (O1).
pub async fn one_of_many_puts_stands_whole(objects: Arc<dyn Objects>) {
    const PUTS: u8 = 12;
    let name = "raced/x";
    let bytes = |i: u8| pattern(i, 200_000 + usize::from(i));
    put(&*objects, name, bytes(0)).await;
    let puts = (1..PUTS).map(|i| {
        let (objects, bytes) = (Arc::clone(&objects), bytes(i));
        tokio::spawn(async move {
            put(&*objects, name, bytes).await;
            get(&*objects, name).await
        })
    });
    let puts: Vec<_> = puts.collect();
    let mut seen = Vec::new();
    for put in puts {
        seen.push(put.await.expect("no panic"));
    }
    seen.push(get(&*objects, name).await);
    for found in seen {
        assert!((0..PUTS).any(|i| found == bytes(i)), "{} bytes of no single put", found.len());
    }
    clear(&*objects, "raced").await;
}

/// Folders whose names begin alike, names whose order is not that of their folders, pages of any size (O5).
pub async fn lists_keep_to_the_folder_in_order(objects: &dyn Objects) {
    let all = [
        "list/a-b/1",
        "list/a.b/1",
        "list/a/1",
        "list/a/10",
        "list/a/2",
        "list/a/b/c/d",
        "list/a/b=1/x",
        "list/aa",
        "list/ab/1",
        "list/b",
    ];
    // In no order of their own.
    for i in [3, 9, 0, 7, 5, 1, 8, 2, 6, 4] {
        put(objects, all[i], Bytes::from(vec![b'x'; i])).await;
    }
    for limit in [1, 2, 3, 9, 10, 11, LIST_MAX] {
        assert_eq!(names(objects, "list", limit).await, all, "{limit} by {limit}");
        assert_eq!(names(objects, "list/a", limit).await, all[2..7]);
        assert_eq!(names(objects, "list/a/b", limit).await, all[5..6]);
    }
    assert_eq!(names(objects, "list/aa", 1).await, [""; 0]);
    assert_eq!(names(objects, "list/none", 1).await, [""; 0]);
    let everything = names(objects, "", LIST_MAX).await;
    assert!(everything.is_sorted() && all.iter().all(|&name| everything.iter().any(|found| found == name)));

    let page = objects.list("list", Some("list/a/3"), 2).await.expect("a page");
    assert_eq!(page.objects.iter().map(|info| &*info.name).collect::<Vec<_>>(), all[5..7]);
    assert_eq!(page.resume.as_deref(), Some(all[6]));
    let page = objects.list("list", Some(all[9]), LIST_MAX).await.expect("a page");
    assert_eq!((page.objects.len(), page.resume), (0, None));

    let now_ms = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970").as_millis();
    for (i, info) in objects.list("list", None, LIST_MAX).await.expect("a page").objects.iter().enumerate() {
        assert_eq!(info.bytes, i as u64);
        assert!(now_ms.abs_diff(u128::from(info.modified_at_ms)) < 3_600_000, "{info:?} and now {now_ms}");
    }
    clear(objects, "list").await;
}

/// One more than fits into any page.
pub async fn lists_go_on_past_the_largest_page(objects: &dyn Objects) {
    let expected: Vec<_> = (0..=LIST_MAX).map(|i| format!("many/{}/{i:04}", i / 300)).collect();
    stream::iter(&expected).for_each_concurrent(16, |name| put(objects, name, Bytes::from_static(b"x"))).await;
    let first = objects.list("many", None, usize::MAX).await.expect("a page");
    assert!(first.objects.len() <= LIST_MAX && first.resume.is_some());
    assert_eq!(names(objects, "many", LIST_MAX).await, expected);
    clear(objects, "many").await;
}

fn pattern(seed: u8, bytes: usize) -> Bytes {
    (0..=250_u8).cycle().map(|byte| seed.wrapping_add(byte)).take(bytes).collect()
}

async fn put(objects: &dyn Objects, name: &str, bytes: Bytes) {
    objects.put(name, bytes).await.expect("a put is answered");
}

async fn get(objects: &dyn Objects, name: &str) -> Bytes {
    objects.get(name, None).await.expect("an object that is there")
}

async fn is_missing(objects: &dyn Objects, name: &str) -> bool {
    matches!(objects.get(name, None).await, Err(ObjectError::Missing))
}

async fn list(objects: &dyn Objects, folder: &str, limit: usize) -> Vec<ObjectInfo> {
    let mut found: Vec<ObjectInfo> = Vec::new();
    let mut behind = None;
    loop {
        let page = objects.list(folder, behind.as_deref(), limit).await.expect("a page");
        assert!(page.objects.len() <= limit);
        found.extend(page.objects);
        match page.resume {
            Some(resume) => {
                assert_eq!(Some(&resume), found.last().map(|info| &info.name));
                behind = Some(resume);
            }
            None => return found,
        }
    }
}

async fn names(objects: &dyn Objects, folder: &str, limit: usize) -> Vec<String> {
    list(objects, folder, limit).await.into_iter().map(|info| info.name).collect()
}

async fn clear(objects: &dyn Objects, folder: &str) {
    let names = names(objects, folder, LIST_MAX).await;
    let delete = |name: String| async move { objects.delete(&name).await.expect("a delete is answered") };
    stream::iter(names).for_each_concurrent(16, delete).await;
    assert_eq!(list(objects, folder, LIST_MAX).await, []);
}
