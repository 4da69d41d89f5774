//! I8 through the service: every order and number of deliveries of the same events ends in the same rows and answers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, reason = "each test binary uses its part of the fixtures")]

mod market;

use std::sync::Arc;

use futures_util::future::join_all;
use market::{NOW_MS, query, service, shown, tenant};
use saltern_core::campaigns::{Area, BoostKey, Look, MarketModel};
use saltern_core::ids::PartnerId;
use saltern_core::rng::SplitMix64;
use saltern_service::campaigns::Campaigns;
use saltern_store::campaigns::memory::MemoryCampaigns;
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore};
use saltern_store::{CampaignStore, Consistency};
use serde_json::{Value, json};
use tempfile::TempDir;

const AREAS: [&str; 4] = ["*", "a", "b", "c"];
const PARTNERS: [&str; 2] = ["p", "q"];

/// Few partners, areas, times and scores, so that nearly everything ties with something.
fn events(rng: &mut SplitMix64, count: u64) -> Vec<Value> {
    let mut pick = |n: u64| rng.below(n);
    let one = |_| {
        let mut event = json!({"partner_id": PARTNERS[usize::try_from(pick(2)).unwrap()],
            "delivery_areas": [], "ended_areas": [], "boost_score": 1 + pick(2), "last_updated": NOW_MS - pick(3)});
        for area in AREAS {
            match pick(3) {
                0 => event["delivery_areas"].as_array_mut().unwrap().push(json!(area)),
                1 => event["ended_areas"].as_array_mut().unwrap().push(json!(area)),
                _ => {}
            }
        }
        if pick(3) == 0 {
            let day = if pick(2) == 0 { "monday" } else { "friday" };
            event["days_of_week"] = json!([day]);
        }
        if pick(3) == 0 {
            event["time_slots"] = json!(["lunch"]);
        }
        if event["delivery_areas"] == json!([]) && event["ended_areas"] == json!([]) {
            event["ended_areas"] = json!(["*"]);
        }
        event
    };
    (0..count).map(one).collect()
}

/// Every order, by Heap's algorithm.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    fn step(k: usize, order: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        if k <= 1 {
            return all.push(order.clone());
        }
        for i in 0..k {
            step(k - 1, order, all);
            order.swap(if k.is_multiple_of(2) { i } else { 0 }, k - 1);
        }
    }
    let mut all = Vec::new();
    step(count, &mut (0..count).collect(), &mut all);
    all
}

/// What a tenant's table and its lookups are in the end.
type Ending = (Vec<Look>, Vec<Vec<(String, f64, String)>>);

async fn ending(store: &dyn CampaignStore, campaigns: &Campaigns, name: &str) -> Ending {
    let keys = PARTNERS.iter().flat_map(|partner| {
        AREAS.map(|area| BoostKey::new(&tenant(name), &Area::new(area).unwrap(), &PartnerId::new(partner).unwrap()))
    });
    let rows = store.boosts(&keys.collect::<Vec<_>>(), Consistency::Strong).await.unwrap();
    let mut answers = Vec::new();
    for district in ["a", "b", "c", "d"] {
        answers.push(shown(&campaigns.lookup(query(name, Some(district), &PARTNERS)).await.unwrap()));
    }
    (rows, answers)
}

/// Delivers events to a tenant of their own, one after the other, each as often as it is named.
async fn deliver(store: &dyn CampaignStore, campaigns: &Campaigns, name: String, events: Vec<Value>) -> Ending {
    campaigns.put_market(&tenant(&name), &market::market(MarketModel::Zoned)).await.unwrap();
    for mut event in events {
        event["tenant"] = json!(name);
        let done = campaigns.apply(&[event.to_string()]).await.unwrap();
        assert!(done.rejected.is_empty(), "{done:?}");
    }
    ending(store, campaigns, &name).await
}

async fn every_order_ends_alike(store: Arc<dyn CampaignStore>, seeds: u64) {
    let campaigns = service(Arc::clone(&store));
    for seed in 0..seeds {
        let mut rng = SplitMix64::new(seed);
        let events = events(&mut rng, 2 + seed % 4);
        let mut orders = permutations(events.len());
        for _ in 0..20 {
            let mut doubled = orders[usize::try_from(rng.below(orders.len() as u64)).unwrap()].clone();
            for _ in 0..=rng.below(4) {
                let (at, which) = (rng.below(doubled.len() as u64 + 1), rng.below(events.len() as u64));
                doubled.insert(usize::try_from(at).unwrap(), usize::try_from(which).unwrap());
            }
            orders.push(doubled);
        }
        let endings = join_all(orders.iter().enumerate().map(|(i, order)| {
            let events = order.iter().map(|i| events[*i].clone()).collect();
            deliver(&*store, &campaigns, format!("t{seed}-{i}"), events)
        }));
        let endings = endings.await;
        for (order, ending) in orders.iter().zip(&endings) {
            assert_eq!(*ending, endings[0], "seed {seed}, order {order:?} of {events:#?}");
        }
        // All at once is an order, too.
        let name = format!("t{seed}-at-once");
        campaigns.put_market(&tenant(&name), &market::market(MarketModel::Zoned)).await.unwrap();
        let all = events.iter().chain(&events).map(|event| {
            let mut event = event.clone();
            event["tenant"] = json!(name);
            event.to_string()
        });
        campaigns.apply(&all.collect::<Vec<_>>()).await.unwrap();
        assert_eq!(ending(&*store, &campaigns, &name).await, endings[0], "seed {seed}");
    }
}

#[tokio::test]
async fn every_order_ends_alike_in_memory() {
    every_order_ends_alike(Arc::new(MemoryCampaigns::default()), 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_order_ends_alike_in_a_folder() {
    let folder = TempDir::new().unwrap();
    let store = EmbeddedStore::open(folder.path(), EmbeddedOptions::default()).unwrap();
    every_order_ends_alike(Arc::new(store), 16).await;
}
