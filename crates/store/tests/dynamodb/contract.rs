use std::sync::Arc;
use std::time::{Duration, SystemTime};

use saltern_core::limits::CONTENT_BYTES_MAX;
use saltern_core::page::Order;
use saltern_store::dynamodb::DynamoStore;
use saltern_store::{Consistency, Put, PutOutcome, Query, Store, conformance, query_all};

use crate::fixtures::{put_claim, put_row, row_key};
use crate::local;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract() {
    conformance::all(Arc::new(local::store("conformance").await)).await;
}

#[tokio::test]
async fn can_be_scanned() {
    let store = local::store("scan").await;
    conformance::finds_every_row_once(&store, &store).await;
    conformance::names_what_is_due(&store, &store).await;
}

fn whole_partition(order: Order) -> Query {
    let partition = row_key(1).partition;
    Query { partition, from: 0, to: u64::MAX, order, limit: 1_000, consistency: Consistency::Strong }
}

async fn applied(store: &DynamoStore, puts: impl IntoIterator<Item = Put>) {
    for put in puts {
        assert_eq!(store.put(&put).await.unwrap(), PutOutcome::Applied);
    }
}

/// What the design counts with: a small message is two write units, its claim and its row, by DynamoDB's own count.
#[tokio::test]
async fn a_small_message_costs_two_write_units() {
    let store = local::store("capacity").await;
    applied(&store, [put_claim(1), put_row(1, "hey")]).await;
    assert_eq!((store.metrics().write_units(), store.metrics().calls("PutItem")), (2.0, 2));

    applied(&store, [put_row(2, &"x".repeat(2_500))]).await;
    assert_eq!(store.metrics().write_units(), 5.0);

    store.get(&[row_key(1)], Consistency::Strong).await.unwrap();
    assert_eq!(store.metrics().read_units(), 1.0);
    store.get(&[row_key(1)], Consistency::Eventual).await.unwrap();
    assert_eq!(store.metrics().read_units(), 1.5);
    store.get(&[row_key(1), row_key(2), row_key(1)], Consistency::Strong).await.unwrap();
    assert_eq!((store.metrics().read_units(), store.metrics().calls("BatchGetItem")), (3.5, 1));
    store.query(&whole_partition(Order::Ascending)).await.unwrap();
    assert_eq!((store.metrics().read_units(), store.metrics().calls("Query")), (4.5, 1));
    assert_eq!(store.metrics().throttles(), 0);
}

/// DynamoDB ends a page at a megabyte, whatever its limit.
#[tokio::test]
async fn a_long_query_is_followed_through_its_pages() {
    const ROWS: u64 = 40;
    let store = local::store("pages").await;
    let content = "x".repeat(CONTENT_BYTES_MAX);
    applied(&store, (1..=ROWS).map(|seq| put_row(seq, &content))).await;
    let everything: Vec<_> = (1..=ROWS).collect();
    let backwards: Vec<_> = (1..=ROWS).rev().collect();
    for (order, expected) in [(Order::Ascending, everything), (Order::Descending, backwards)] {
        let query = whole_partition(order);
        let page = store.query(&query).await.unwrap();
        assert!((10..20).contains(&page.rows.len()), "{} rows", page.rows.len());
        assert_eq!(page.resume, page.rows.last().map(|(seq, _)| *seq));
        let rows = query_all(&store, &query).await.unwrap();
        assert_eq!(rows.into_iter().map(|(seq, _)| seq).collect::<Vec<_>>(), expected);
    }
}

/// I2 holds for as long as claims are kept, and claims alone may go.
#[tokio::test]
async fn claims_expire_after_a_week_and_rows_never() {
    const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);
    let store = local::store("expiry").await;
    let a_week_from_now_s = || (SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap() + WEEK).as_secs();
    let earliest = a_week_from_now_s();
    applied(&store, [put_claim(1), put_row(1, "hey")]).await;
    let items = local::client().scan().table_name("expiry").send().await.unwrap().items.unwrap();
    let expiring: Vec<_> = items.iter().filter_map(|item| item.get("expires_at")).collect();
    let [expires_at] = expiring[..] else { panic!("{items:?}") };
    let expires_at: u64 = expires_at.as_n().unwrap().parse().unwrap();
    assert!((earliest..=a_week_from_now_s()).contains(&expires_at));
}
