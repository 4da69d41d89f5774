use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use saltern_core::campaigns::{Area, Boost, BoostKey, DaySet, Look, Moment, Schedule, Score, State, Terms, Window};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_store::campaigns::conformance;
use saltern_store::{BoostPut, CampaignStore, Consistency, StoreError};

use crate::failing::{http, refusal, server};
use crate::local;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract_of_campaigns() {
    conformance::all(Arc::new(local::store("campaigns").await)).await;
}

#[tokio::test]
async fn dead_letters_are_bounded() {
    conformance::dead_letters_are_bounded(&local::store_keeping("shelf", 7).await, 7).await;
}

fn key(partner: &str) -> BoostKey {
    let (tenant, partner) = (TenantId::new("de").unwrap(), PartnerId::new(partner).unwrap());
    BoostKey::new(&tenant, &Area::Wildcard, &partner)
}

fn boost() -> Boost {
    Boost { state: State::Ended, last_updated: Moment::from_ms(1_763_200_000_000).unwrap() }
}

/// The design's own arithmetic: a campaign in one area is one write, and a search for fifty partners one call.
#[tokio::test]
async fn one_write_for_a_campaign_and_one_call_for_a_search() {
    let store = local::store("cost").await;
    assert_eq!(store.put_boost(&key("p0"), &boost()).await.unwrap(), BoostPut::Applied);
    assert_eq!((store.metrics().write_units(), store.metrics().calls("PutItem")), (1.0, 1));
    let keys: Vec<_> = (0..50).map(|i| key(&format!("p{i}"))).collect();
    let looks = store.boosts(&keys, Consistency::Eventual).await.unwrap();
    assert_eq!((looks.len(), &looks[0], &looks[49]), (50, &Look::Found(boost().into()), &Look::Absent));
    assert_eq!(store.metrics().calls("BatchGetItem"), 1);
}

fn active(score: f64) -> Boost {
    let schedule = Schedule::new(DaySet::EVERY_DAY, Vec::new(), Window::default());
    Boost { state: State::Active(Terms { score: Score::new(score).unwrap(), schedule }), ..boost() }
}

/// I8, a sample: boosts that tie in time, in every order, end in the same row.
#[tokio::test]
async fn every_order_ends_in_the_same_row() {
    let store = local::store("orders").await;
    let later = Boost { last_updated: Moment::from_ms(1_763_200_000_001).unwrap(), ..active(9.0) };
    for (name, boosts) in [("ended", [active(1.0), boost(), active(2.0)]), ("later", [active(1.0), later, boost()])] {
        let highest = boosts.iter().max_by_key(|boost| boost.rank()).unwrap();
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let key = key(&format!("{name} {order:?}"));
            for i in order.into_iter().chain(order) {
                store.put_boost(&key, &boosts[i]).await.unwrap();
            }
            let looks = store.boosts(&[key], Consistency::Strong).await.unwrap();
            assert_eq!(looks, [Look::Found(highest.clone().into())], "{order:?}");
        }
    }
}

const PATIENT: Duration = Duration::from_secs(20);

/// C4: keys that a busy table leaves out are unread, not absent.
#[tokio::test]
async fn keys_left_out_of_a_batch_are_unread() {
    let body = r#"{"Responses":{"saltern-campaigns":[]},"UnprocessedKeys":{"saltern-campaigns":{"Keys":[
        {"pk":{"S":"de#*"},"sk":{"S":"p2"}}]}}}"#;
    let answer = http(200, body);
    let endpoint = server(move |stream| stream.write_all(answer.as_bytes()).unwrap());
    let store = local::store_at(endpoint, PATIENT).await;
    let looks = store.boosts(&[key("p1"), key("p2"), key("p3")], Consistency::Strong).await.unwrap();
    assert_eq!(looks, [Look::Absent, Look::Unread, Look::Absent]);
}

#[tokio::test]
async fn throttled_is_told_apart_from_unknown() {
    for (status, code, throttled) in
        [(400, "ProvisionedThroughputExceededException", true), (500, "InternalServerError", false)]
    {
        let answer = http(status, &refusal(code));
        let endpoint = server(move |stream| stream.write_all(answer.as_bytes()).unwrap());
        let store = local::store_at(endpoint, PATIENT).await;
        let put = store.put_boost(&key("p"), &boost()).await;
        assert_eq!(matches!(put, Err(StoreError::Throttled)), throttled, "{put:?}");
        assert_eq!(matches!(put, Err(StoreError::Unknown(_))), !throttled, "{put:?}");
        assert_eq!(
            matches!(store.boosts(&[key("p")], Consistency::Strong).await, Err(StoreError::Throttled)),
            throttled
        );
    }
}
