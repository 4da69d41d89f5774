use saltern_core::campaigns::{Event, MarketModel};
use saltern_store::counted::{Counted, Counts};

use super::*;
use crate::fixtures::store;
use crate::markets::{Saltern, at, district, event, events, instants, market, partner, tenant, zoned_events};

const WEEK: &[&str] = &[];

fn v1(store: &Counted, model: MarketModel) -> CampaignV1 {
    CampaignV1::new(Arc::new(store.clone()), tenant(), market(model))
}

async fn apply(v1: &CampaignV1, event: &Event) -> Vec<BoostPut> {
    let mut outcomes = Vec::new();
    for (key, boost) in event.boosts() {
        outcomes.push(v1.apply(&key, &boost).await.unwrap());
    }
    outcomes
}

#[tokio::test]
async fn it_boosts_whom_saltern_boosts() {
    let asked: Vec<_> = (0..25).rev().map(partner).collect();
    let here = district("BER-01");
    for (model, here, events) in
        [(MarketModel::Wildcard, None, events()), (MarketModel::Zoned, Some(&here), zoned_events())]
    {
        let saltern = Saltern::with(model, &events).await;
        let (v1, mut found) = (v1(&store(), model), 0);
        for event in &events {
            apply(&v1, event).await;
        }
        for at in instants() {
            let boosted = v1.search(here, &asked, at).await.unwrap();
            assert_eq!(boosted, saltern.search(here, &asked, at).await, "{at}");
            found += boosted.len();
        }
        assert!(found > 100, "{found}");
    }
}

#[tokio::test]
async fn an_event_is_a_document_read_and_written_for_every_day_and_slot() {
    let store = store();
    let v1 = v1(&store, MarketModel::Wildcard);
    let slots: &[&str] = &["lunch", "dinner", "night"];
    let cases: [(&[&str], &[&str], u64); 4] =
        [(WEEK, &[], 7), (WEEK, slots, 21), (&["monday"], &["lunch"], 1), (&["monday", "friday"], slots, 6)];
    for (i, (days, slots, writes)) in (0..).zip(cases) {
        let before = store.counts();
        assert_eq!(apply(&v1, &event(i, days, slots)).await, [BoostPut::Applied]);
        let expected = Counts { gets: writes, puts: writes, ..Counts::default() };
        assert_eq!(Counts { rows_read: 0, ..store.counts().since(before) }, expected);
        let before = store.counts();
        assert_eq!(apply(&v1, &event(i, days, slots)).await, [BoostPut::Stale]);
        assert_eq!(store.counts(), before);
    }
}

#[tokio::test]
async fn a_search_reads_the_whole_market_in_four_queries() {
    const PARTNERS: u32 = 2_500;
    let store = store();
    let v1 = v1(&store, MarketModel::Wildcard);
    let slots = |i| if i % 2 == 0 { &[][..] } else { &["lunch", "dinner"][..] };
    let boosts: Vec<_> = (0..PARTNERS).flat_map(|i| event(i, WEEK, slots(i)).boosts().collect::<Vec<_>>()).collect();
    // 1,250 partners are two documents, for each of seven days, all day and in two slots.
    assert_eq!(v1.import(&boosts).await.unwrap(), 2 * 7 * 3);
    assert_eq!(store.counts().puts, 2 * 7 * 3);

    let before = store.counts();
    let asked: Vec<_> = (0..50).map(partner).collect();
    let found = v1.search(Some(&district("BER-01")), &asked, at(12)).await.unwrap();
    assert_eq!(found.len(), 50);
    let read = Counts { queries: 4, rows_read: 4, ..Counts::default() };
    assert_eq!(store.counts().since(before), read);

    // What was imported is known: it changes where it is, and what is new goes where there is room.
    let before = store.counts();
    apply(&v1, &event(PARTNERS, WEEK, &[])).await;
    let one = Counts { gets: 7, puts: 7, rows_read: 7, ..Counts::default() };
    assert_eq!(store.counts().since(before), one);
    for i in (0..PARTNERS).step_by(500) {
        assert_eq!(apply(&v1, &event(i, WEEK, slots(i))).await, [BoostPut::Stale]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_that_meet_in_a_document_lose_nothing() {
    const PARTNERS: u32 = 1_200;
    let v1 = Arc::new(v1(&store(), MarketModel::Wildcard));
    let write = |i| {
        let v1 = Arc::clone(&v1);
        tokio::spawn(async move {
            for i in (i..PARTNERS).step_by(8) {
                apply(&v1, &event(i, &["monday"], &[])).await;
            }
        })
    };
    for writer in (0..8).map(write).collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let asked: Vec<_> = (0..PARTNERS).map(partner).collect();
    assert_eq!(v1.search(None, &asked, at(12)).await.unwrap().len(), asked.len());
}
