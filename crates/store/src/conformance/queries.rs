//! S5 and S6: what reads see, and how pages follow each other.

use std::sync::Arc;

use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::Salt;
use saltern_core::limits::{CONTENT_BYTES_MAX, SEQ_NO_END};
use saltern_core::page::Order;
use saltern_core::record::Record;

use super::fixtures::{conversation, message, read, row_key, write};
use crate::port::{Consistency, Query, Store, query_all};

fn query(partition: &PartitionKey, from: u64, to: u64, order: Order, limit: usize) -> Query {
    Query { partition: partition.clone(), from, to, order, limit, consistency: Consistency::Strong }
}

async fn sorts(store: &dyn Store, query: Query) -> Vec<u64> {
    let rows = query_all(store, &query).await.expect("a query is answered");
    rows.into_iter().map(|(sort, _)| sort).collect()
}

/// S5: what was answered is seen, by whichever task reads next.
pub async fn strong_reads_see_answered_puts(store: Arc<dyn Store>) {
    let partition = row_key("strong", 1).partition;
    for sort in 1..=50 {
        let key = row_key("strong", sort);
        write(&*store, key.clone(), message("m", &sort.to_string())).await;
        let (store, partition) = (Arc::clone(&store), partition.clone());
        let reader = tokio::spawn(async move {
            assert!(read(&*store, &key).await.is_some());
            let newest = query(&partition, 0, u64::MAX, Order::Descending, 1);
            assert_eq!(sorts(&*store, newest).await, [sort]);
        });
        reader.await.expect("the row is there");
    }
}

/// S6: order, bounds and limits, over sort keys from one end to the other.
pub async fn pages_follow_order_bounds_and_limit(store: &dyn Store) {
    let places = [1, 2, 3, 255, 256, 1 << 32, (1 << 32) + 1, SEQ_NO_END - 1];
    for sort in places {
        write(store, row_key("pages", sort), message(&sort.to_string(), "")).await;
    }
    let partition = row_key("pages", 1).partition;
    let bounds = [(0, u64::MAX), (1, SEQ_NO_END - 1), (2, 256), (4, 254), (255, 255), (257, 1 << 32), (3, 2), (0, 0)];
    for (from, to) in bounds {
        for limit in [1, 2, 3, 8, 100] {
            let mut expected: Vec<_> = places.into_iter().filter(|sort| (from..=to).contains(sort)).collect();
            let ascending = query(&partition, from, to, Order::Ascending, limit);
            check_pages(store, ascending, &expected).await;
            expected.reverse();
            let descending = query(&partition, from, to, Order::Descending, limit);
            check_pages(store, descending, &expected).await;
        }
    }
}

/// One page is a prefix within the limit, and ends early only with a way to go on; all pages together are everything.
async fn check_pages(store: &dyn Store, query: Query, expected: &[u64]) {
    let page = store.query(&query).await.expect("a query is answered");
    let got: Vec<_> = page.rows.iter().map(|(sort, _)| *sort).collect();
    assert!(got.len() <= query.limit && expected.starts_with(&got), "{query:?}: {got:?}");
    assert!(got.len() == expected.len() || page.resume.is_some(), "{query:?}: {got:?} without resume");
    let limited = &expected[..expected.len().min(query.limit)];
    assert_eq!(sorts(store, query.clone()).await, limited, "{query:?}");
    for (sort, record) in page.rows {
        assert_eq!(record, message(&sort.to_string(), ""));
    }
}

/// I9, S6: partitions whose names begin alike share nothing.
pub async fn partitions_do_not_mix(store: &dyn Store) {
    let salted = |name: &str, salt: Salt| PartitionKey::messages(&conversation(name), salt);
    let partitions = [
        salted("mix", Salt::Unsalted),
        salted("mix", Salt::Of(0)),
        salted("mix", Salt::Of(1)),
        salted("mix", Salt::Of(10)),
        salted("mix#1", Salt::Unsalted),
        salted("mix ", Salt::Unsalted),
        salted("mix\0", Salt::Unsalted),
        salted("mixx", Salt::Unsalted),
    ];
    for (i, partition) in (1..).zip(&partitions) {
        for sort in [i, 100, SEQ_NO_END - 1] {
            write(store, Key { partition: partition.clone(), sort }, message(&format!("{partition:?}"), "")).await;
        }
    }
    for (i, partition) in (1..).zip(&partitions) {
        for order in [Order::Ascending, Order::Descending] {
            let whole = query(partition, 0, u64::MAX, order, 100);
            let rows = query_all(store, &whole).await.expect("a query is answered");
            let mut places: Vec<_> = rows.iter().map(|(sort, _)| *sort).collect();
            places.sort_unstable();
            assert_eq!(places, [i, 100, SEQ_NO_END - 1]);
            assert!(rows.iter().all(|(_, row)| *row == message(&format!("{partition:?}"), "")));
        }
    }
}

/// S6: neither the number nor the bytes of the rows hide any of them.
pub async fn queries_go_on_past_a_megabyte(store: &dyn Store) {
    const LARGE: u64 = 40;
    let content = "x".repeat(CONTENT_BYTES_MAX);
    let partition = row_key("megabyte", 1).partition;
    for sort in 1..=LARGE {
        let record = if sort % 5 == 0 { Record::Void } else { message(&sort.to_string(), &content) };
        write(store, row_key("megabyte", sort), record).await;
    }
    let everything: Vec<_> = (1..=LARGE).collect();
    let backwards: Vec<_> = (1..=LARGE).rev().collect();
    assert_eq!(sorts(store, query(&partition, 0, u64::MAX, Order::Ascending, 1_000)).await, everything);
    assert_eq!(sorts(store, query(&partition, 1, LARGE, Order::Descending, 1_000)).await, backwards);
    assert_eq!(sorts(store, query(&partition, 1, LARGE, Order::Ascending, 25)).await, everything[..25]);
}
