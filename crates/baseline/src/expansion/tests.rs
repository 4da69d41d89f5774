use saltern_core::campaigns::{BoostKey, Event, MarketModel};
use saltern_store::counted::{Counted, Counts};

use super::*;
use crate::fixtures::store;
use crate::markets::{Saltern, at, district, event, events, instants, market, partner, tenant};

fn expansion(store: &Counted) -> Expansion {
    Expansion::new(Arc::new(store.clone()), tenant(), market(MarketModel::Wildcard))
}

fn districts(count: u32) -> Vec<DistrictId> {
    (0..count).map(|i| district(&format!("d{i}"))).collect()
}

fn boosts(event: &Event) -> impl Iterator<Item = (PartnerId, Boost)> {
    event.boosts().map(|(key, boost): (BoostKey, _)| (PartnerId::new(key.sort()).unwrap(), boost))
}

#[tokio::test]
async fn it_boosts_whom_saltern_boosts_in_the_districts_served() {
    let events = events();
    let saltern = Saltern::with(MarketModel::Wildcard, &events).await;
    let (expansion, served) = (expansion(&store()), districts(3));
    for (partner, boost) in events.iter().flat_map(boosts) {
        expansion.apply(&partner, &boost, &served).await.unwrap();
    }
    let asked: Vec<_> = (0..12).map(partner).collect();
    let mut found = 0;
    for at in instants() {
        let boosted = expansion.search(&served[1], &asked, at).await.unwrap();
        let here = |boosted| Boosted { area: Area::District(served[1].clone()), ..boosted };
        let expected: Vec<_> = saltern.search(None, &asked, at).await.into_iter().map(here).collect();
        assert_eq!(boosted, expected, "{at}");
        found += boosted.len();
        assert_eq!(expansion.search(&district("elsewhere"), &asked, at).await.unwrap(), []);
    }
    assert!(found > 100, "{found}");
}

#[tokio::test]
async fn an_event_is_a_row_for_every_district_and_a_search_reads_its_bucket() {
    let store = store();
    let expansion = expansion(&store);
    let all = districts(100);
    for i in 0..60 {
        let served = if i < 10 { &all[..] } else { &all[..15] };
        let before = store.counts();
        for (partner, boost) in boosts(&event(i, &[], &[])) {
            assert_eq!(expansion.apply(&partner, &boost, served).await.unwrap(), BoostPut::Applied);
            let puts = Counts { puts: served.len() as u64, ..Counts::default() };
            assert_eq!(store.counts().since(before), puts);
            assert_eq!(expansion.apply(&partner, &boost, served).await.unwrap(), BoostPut::Stale);
        }
    }
    let asked: Vec<_> = (0..50).map(partner).collect();
    for (district, bucket) in [(&all[3], 60), (&all[50], 10)] {
        let before = store.counts();
        let found = expansion.search(district, &asked, at(12)).await.unwrap();
        assert_eq!(found.len() as u64, bucket.min(50));
        let read = Counts { queries: 1, rows_read: bucket, ..Counts::default() };
        assert_eq!(store.counts().since(before), read);
    }
}
