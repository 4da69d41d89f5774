//! Campaigns over the memory store: what becomes of events, what lookups answer, and what happens when the store fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod market;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use market::{NOW_MS, apply, ended, event, query, service, service_with, shown, tenant};
use rstest::rstest;
use saltern_core::campaigns::{DeadLetter, LetterNo, Market, MarketModel, Moment};
use saltern_core::ids::PartnerId;
use saltern_core::limits::{CAMPAIGN_TIME_MIN_MS, DEAD_LETTER_BYTES_MAX};
use saltern_service::campaigns::{CampaignError, Campaigns, DeadLetterFilter, LookupError, MarketQuestion};
use saltern_store::campaigns::faulty::{CampaignFaultPlan, FaultyCampaigns};
use saltern_store::campaigns::memory::MemoryCampaigns;
use saltern_store::faulty::{ReadFaults, WriteFaults};
use serde_json::json;
use tokio::time::sleep;

/// A zoned market `de` and a wildcard market `at`.
async fn markets(campaigns: &Campaigns) {
    campaigns.put_market(&tenant("de"), &market::market(MarketModel::Zoned)).await.unwrap();
    campaigns.put_market(&tenant("at"), &market::market(MarketModel::Wildcard)).await.unwrap();
}

async fn ready() -> (MemoryCampaigns, Campaigns) {
    let store = MemoryCampaigns::default();
    let campaigns = service(Arc::new(store.clone()));
    markets(&campaigns).await;
    (store, campaigns)
}

#[tokio::test]
async fn a_wildcard_campaign_is_one_write() {
    let (store, campaigns) = ready().await;
    let full = json!({"event_id": "e1", "tenant": "at", "partner_id": "p", "delivery_areas": ["*"], "boost_score": 2,
        "days_of_week": ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"],
        "time_slots": ["lunch"], "last_updated": NOW_MS});
    assert_eq!(apply(&campaigns, &full).await, "applied");
    assert_eq!((store.rows().len(), campaigns.metrics().puts.get()), (1, 1));
    assert_eq!(apply(&campaigns, &full).await, "stale");
}

#[tokio::test]
async fn an_event_counts_once_whatever_its_areas_say() {
    let (_, campaigns) = ready().await;
    assert_eq!(apply(&campaigns, &event("de", "p", &["a", "b"], 0)).await, "applied");
    assert_eq!(apply(&campaigns, &event("de", "p", &["b", "c"], 0)).await, "applied");
    assert_eq!(apply(&campaigns, &event("de", "p", &["a", "b", "c"], 0)).await, "stale");
}

#[tokio::test]
async fn a_late_event_does_not_revive_an_ended_campaign() {
    let (_, campaigns) = ready().await;
    assert_eq!(apply(&campaigns, &event("de", "p", &["*"], -10)).await, "applied");
    assert_eq!(apply(&campaigns, &ended("de", "p", &["*"], -5)).await, "applied");
    let years = [CAMPAIGN_TIME_MIN_MS - i64::try_from(NOW_MS).unwrap(), -86_400_000 * 1_000, -11, -10, -6, -5];
    for at in years {
        assert_eq!(apply(&campaigns, &event("de", "p", &["*"], at)).await, "stale", "{at}");
    }
    let question = query("de", Some("a"), &["p"]);
    assert_eq!(shown(&campaigns.lookup(question.clone()).await.unwrap()), []);
    assert_eq!(apply(&campaigns, &event("de", "p", &["*"], -4)).await, "applied");
    assert_eq!(shown(&campaigns.lookup(question.clone()).await.unwrap()).len(), 1);
}

/// An end that comes before what it ends.
#[tokio::test]
async fn an_end_holds_even_if_it_comes_first() {
    let (_, campaigns) = ready().await;
    assert_eq!(apply(&campaigns, &ended("de", "p", &["a"], 0)).await, "applied");
    assert_eq!(apply(&campaigns, &event("de", "p", &["a", "b"], -1)).await, "applied");
    assert_eq!(shown(&campaigns.lookup(query("de", Some("a"), &["p"])).await.unwrap()), []);
    assert_eq!(shown(&campaigns.lookup(query("de", Some("b"), &["p"])).await.unwrap()).len(), 1);
}

#[tokio::test]
async fn a_backfill_of_campaigns_from_years_ago_works() {
    let (store, campaigns) = ready().await;
    let first = CAMPAIGN_TIME_MIN_MS - i64::try_from(NOW_MS).unwrap();
    let events: Vec<_> =
        (0..2_000).map(|i| event("at", &format!("p{i}"), &["*"], first + i * 1_000).to_string()).collect();
    let done = campaigns.apply(&events).await.unwrap();
    assert_eq!((done.applied, done.stale, done.rejected.len()), (2_000, 0, 0));
    assert_eq!(store.rows().len(), 2_000);
    assert_eq!(shown(&campaigns.lookup(query("at", None, &["p0", "p1999", "p2000"])).await.unwrap()).len(), 2);
}

#[tokio::test]
async fn bad_events_are_dead_letters_and_block_nothing() {
    let (store, campaigns) = ready().await;
    let events = [
        event("at", "p1", &["*"], 0).to_string(),
        "{\"tenant\":".to_owned(),
        event("at", "p2", &["VIE-1"], 0).to_string(),
        event("nowhere", "p3", &["*"], 0).to_string(),
        event("at", "p4", &["*"], 300_001).to_string(),
        event("at", "p5", &["*"], 0).to_string(),
    ];
    let done = campaigns.apply(&events).await.unwrap();
    assert_eq!((done.applied, done.stale), (2, 0));
    let reasons: Vec<_> = done.rejected.iter().map(|r| (r.index, r.reason.as_str())).collect();
    let named = ["EOF", "\"VIE-1\"", "tenant \"nowhere\" is not known", "5 minutes ahead"];
    assert_eq!(reasons.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [1, 2, 3, 4]);
    for ((_, reason), named) in reasons.iter().zip(named) {
        assert!(reason.contains(named), "{reason}");
    }
    assert_eq!(store.rows().len(), 2);
    let letters = letters(&campaigns).await;
    let told: BTreeSet<_> = letters.iter().map(|(_, letter)| (letter.event.clone(), letter.reason.clone())).collect();
    let expected = done.rejected.iter().map(|r| (events[r.index].clone(), r.reason.clone())).collect();
    assert_eq!(told, expected);
    assert!(letters.iter().all(|(_, letter)| letter.received_at.as_ms() == i64::try_from(NOW_MS).unwrap()));
}

#[tokio::test]
async fn dead_letters_are_taken_when_their_tenant_has_come() {
    let (_, campaigns) = ready().await;
    for (i, area) in [(1, "*"), (2, "ZRH"), (3, "*")] {
        assert_eq!(apply(&campaigns, &event("ch", &format!("p{i}"), &[area], 0)).await, "rejected");
    }
    campaigns.put_market(&tenant("ch"), &market::market(MarketModel::Wildcard)).await.unwrap();
    let done = campaigns.replay(&DeadLetterFilter::default(), None, 10).await.unwrap();
    assert_eq!((done.applied, done.stale, done.rejected.len()), (2, 0, 1));
    assert!(done.rejected[0].number == LetterNo(2) && done.rejected[0].reason.contains("ZRH"), "{done:?}");
    let left = letters(&campaigns).await;
    assert!(left.len() == 1 && left[0].1.event.contains("ZRH"), "{left:?}");
    assert_eq!(shown(&campaigns.lookup(query("ch", None, &["p1", "p2", "p3"])).await.unwrap()).len(), 2);
}

async fn letters(campaigns: &Campaigns) -> Vec<(LetterNo, DeadLetter)> {
    campaigns.dead_letters(&DeadLetterFilter::default(), None, 200).await.unwrap().letters
}

fn filter(reason: Option<&str>, of: Option<&str>) -> DeadLetterFilter {
    DeadLetterFilter { reason: reason.map(String::from), tenant: of.map(tenant) }
}

/// Every third of 700 can be taken now. The others are newer and older ones, and stand in nobody's way: each letter is met
/// once from the first call to the last.
#[tokio::test]
async fn replay_goes_through_all_letters_and_each_is_met_once() {
    let (_, campaigns) = ready().await;
    let area = |i: i32| if i % 3 == 0 { "*" } else { "ZRH" };
    let events: Vec<_> = (0..700).map(|i| event("ch", &format!("p{i}"), &[area(i)], 0).to_string()).collect();
    assert_eq!(campaigns.apply(&events).await.unwrap().rejected.len(), 700);
    campaigns.put_market(&tenant("ch"), &market::market(MarketModel::Wildcard)).await.unwrap();
    let (mut applied, mut met, mut after, mut calls) = (0, BTreeSet::new(), None, 0);
    loop {
        let done = campaigns.replay(&DeadLetterFilter::default(), after, 100).await.unwrap();
        applied += done.applied;
        assert!(done.rejected.iter().all(|again| met.insert(again.number)), "{done:?}");
        (after, calls) = (done.next_after, calls + 1);
        if after.is_none() {
            break;
        }
    }
    assert_eq!((applied, met.len(), calls), (234, 466, 7));
}

#[tokio::test]
async fn dead_letters_are_found_by_reason_and_tenant_and_number() {
    let (_, campaigns) = ready().await;
    let events = [
        event("at", "p1", &["VIE-1"], 0).to_string(),
        event("x1", "p2", &["*"], 0).to_string(),
        "{\"tenant\":\"x1\",".to_owned(),
        format!("{{\"tenant\":\"x1\",\"x\":\"{}\"}}", "x".repeat(DEAD_LETTER_BYTES_MAX)),
        event("x2", "p3", &["*"], 0).to_string(),
    ];
    for event in &events {
        campaigns.apply(std::slice::from_ref(event)).await.unwrap();
    }
    let found = async |reason, of, after: Option<u64>, limit| {
        let page = campaigns.dead_letters(&filter(reason, of), after.map(LetterNo), limit).await.unwrap();
        let numbers: Vec<_> = page.letters.iter().map(|(number, _)| number.0).collect();
        (numbers, page.next_after.map(|number| number.0))
    };
    assert_eq!(found(None, None, None, 5).await, (vec![5, 4, 3, 2, 1], None));
    assert_eq!(found(None, None, None, 2).await, (vec![5, 4], Some(4)));
    assert_eq!(found(None, None, Some(4), 2).await, (vec![3, 2], Some(2)));
    assert_eq!(found(None, None, Some(2), 2).await, (vec![1], None));
    assert_eq!(found(None, Some("x1"), None, 10).await, (vec![4, 3, 2], None));
    assert_eq!(found(None, Some("x1"), None, 1).await, (vec![4], Some(4)));
    assert_eq!(found(Some("is not known"), None, None, 10).await, (vec![5, 2], None));
    assert_eq!(found(Some("is not known"), Some("x1"), None, 10).await, (vec![2], None));
    assert_eq!(found(None, Some("nobody"), None, 10).await, (vec![], None));
    campaigns.put_market(&tenant("x1"), &market::market(MarketModel::Wildcard)).await.unwrap();
    let done = campaigns.replay(&filter(None, Some("x1")), None, 10).await.unwrap();
    let rejected: Vec<_> = done.rejected.iter().map(|again| again.number.0).collect();
    assert_eq!((done.applied, rejected, done.next_after), (1, vec![4, 3], None));
    assert!(done.rejected[0].reason.contains("too long to be kept whole"), "{done:?}");
    let done = campaigns.replay_these(&[1, 2, 5, 99].map(LetterNo)).await.unwrap();
    assert_eq!((done.applied, done.rejected.len(), done.missing), (0, 2, vec![LetterNo(2), LetterNo(99)]));
    campaigns.put_market(&tenant("x2"), &market::market(MarketModel::Wildcard)).await.unwrap();
    assert_eq!(campaigns.replay_these(&[LetterNo(5)]).await.unwrap().applied, 1);
    assert_eq!(found(None, None, None, 5).await, (vec![4, 3, 1], None));
}

/// What a page and a search may hold is bounded by bytes, too: pages come short, with their cursor.
#[tokio::test]
async fn large_letters_make_short_pages() {
    let (_, campaigns) = ready().await;
    let large = format!("{{\"tenant\":\"x\",\"x\":\"{}\"}}", "x".repeat(DEAD_LETTER_BYTES_MAX - 100));
    let events: Vec<_> = (0..300).map(|_| large.clone()).collect();
    campaigns.apply(&events).await.unwrap();
    let page = campaigns.dead_letters(&DeadLetterFilter::default(), None, 200).await.unwrap();
    assert!(
        page.letters.len() < 10 && page.next_after == Some(page.letters[page.letters.len() - 1].0),
        "{:?}",
        page.next_after
    );
    let mut after = None;
    for calls in 1.. {
        let page = campaigns.dead_letters(&filter(None, Some("other")), after, 1).await.unwrap();
        assert_eq!(page.letters, []);
        after = page.next_after;
        if after.is_none() {
            assert_eq!(calls, 2);
            break;
        }
    }
}

#[tokio::test]
async fn lookups_answer_in_the_order_of_the_question_and_once_for_each() {
    let (_, campaigns) = ready().await;
    let specific = json!({"tenant": "de", "partner_id": "both", "delivery_areas": ["a"], "boost_score": 3,
        "last_updated": NOW_MS});
    let off = json!({"tenant": "de", "partner_id": "off", "delivery_areas": ["a"], "boost_score": 4,
        "days_of_week": ["Friday"], "last_updated": NOW_MS});
    let events = [
        event("de", "both", &["*"], 0),
        event("de", "wild", &["*"], 0),
        event("de", "off", &["*"], 0),
        event("de", "elsewhere", &["b"], 0),
        specific,
        off,
    ];
    for event in &events {
        assert_eq!(apply(&campaigns, event).await, "applied");
    }
    let partners = ["wild", "nobody", "off", "both", "wild", "elsewhere", "both"];
    let answer = campaigns.lookup(query("de", Some("a"), &partners)).await.unwrap();
    let expected = [("wild", 1.5, "*"), ("off", 1.5, "*"), ("both", 3.0, "a")];
    assert_eq!(shown(&answer), expected.map(|(partner, score, area)| (partner.to_owned(), score, area.to_owned())));
    assert!(answer.unread().next().is_none());
    let metrics = campaigns.metrics();
    assert_eq!((metrics.lookup_keys.get(), metrics.lookup_calls.get()), (10, 1));
}

#[tokio::test]
async fn lookups_of_a_thousand_partners_are_ten_calls() {
    let (_, campaigns) = ready().await;
    let names: Vec<_> = (0..1_000).map(|i| format!("p{i}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let events: Vec<_> = names.iter().step_by(3).map(|name| event("at", name, &["*"], 0).to_string()).collect();
    campaigns.apply(&events).await.unwrap();
    let answer = campaigns.lookup(query("at", None, &names)).await.unwrap();
    let boosted: Vec<_> = answer.boosted().map(|boost| boost.partner.as_str()).collect();
    assert_eq!(boosted, names.iter().step_by(3).copied().collect::<Vec<_>>());
    assert_eq!(campaigns.metrics().lookup_calls.get(), 10);
}

#[tokio::test]
async fn what_the_market_cannot_answer_is_told() {
    let (_, campaigns) = ready().await;
    let answer = campaigns.lookup(query("xx", None, &["p"])).await;
    assert!(matches!(answer, Err(LookupError::UnknownTenant(unknown)) if unknown == tenant("xx")));
    let answer = campaigns.lookup(query("de", None, &["p"])).await;
    assert!(matches!(answer, Err(LookupError::Question(MarketQuestion::NoDistrict))));
    assert!(campaigns.lookup(query("at", Some("ignored"), &["p"])).await.is_ok());
}

fn faulty(plan: CampaignFaultPlan) -> (FaultyCampaigns, Campaigns) {
    let store = FaultyCampaigns::new(Arc::new(MemoryCampaigns::default()), 7, CampaignFaultPlan::default());
    let campaigns = service(Arc::new(store.clone()));
    store.set_plan(plan);
    (store, campaigns)
}

/// Keys left out of batches and throttled batches: asked for again, and every partner is answered for.
#[rstest]
#[case::unread_keys(CampaignFaultPlan { unread: 400, ..CampaignFaultPlan::default() })]
#[case::throttled(CampaignFaultPlan { reads: ReadFaults { throttled: 500, ..ReadFaults::default() }, ..CampaignFaultPlan::default() })]
#[case::flapping(CampaignFaultPlan { reads: ReadFaults { unavailable: 500, ..ReadFaults::default() }, unread: 200, ..CampaignFaultPlan::default() })]
#[tokio::test(start_paused = true)]
async fn what_is_left_out_is_asked_for_again(#[case] plan: CampaignFaultPlan) {
    let (store, campaigns) = faulty(CampaignFaultPlan::default());
    markets(&campaigns).await;
    let names: Vec<_> = (0..250).map(|i| format!("p{i}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let events: Vec<_> = names.iter().step_by(2).map(|name| event("de", name, &["*"], 0).to_string()).collect();
    campaigns.apply(&events).await.unwrap();
    store.set_plan(plan);
    let campaigns = service_with(Arc::new(store), |config| config.lookup_deadline = Duration::from_secs(10));
    for _ in 0..20 {
        let answer = campaigns.lookup(query("de", Some("a"), &names)).await.unwrap();
        assert_eq!((answer.boosted().count(), answer.unread().count()), (125, 0));
    }
    assert!(campaigns.metrics().store_retries.get() > 10);
}

/// I8: when time is up, what was not read is told, and only that.
#[tokio::test(start_paused = true)]
async fn what_stays_unread_is_told_and_never_answered_as_not_boosted() {
    let (store, campaigns) = faulty(CampaignFaultPlan::default());
    markets(&campaigns).await;
    let names: Vec<_> = (0..300).map(|i| format!("p{i}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let boosted: BTreeSet<_> = names.iter().copied().step_by(2).collect();
    let events: Vec<_> = boosted.iter().map(|name| event("at", name, &["*"], 0).to_string()).collect();
    campaigns.apply(&events).await.unwrap();
    // So often that a second is not enough for all of them.
    store.set_plan(CampaignFaultPlan { unread: 900, ..CampaignFaultPlan::default() });
    let mut unread_ever = 0;
    for _ in 0..10 {
        let answer = campaigns.lookup(query("at", None, &names)).await.unwrap();
        let told: BTreeSet<_> = answer.boosted().map(|boost| boost.partner.as_str()).collect();
        let unread: BTreeSet<_> = answer.unread().map(PartnerId::as_str).collect();
        assert!(told.is_disjoint(&unread) && told.is_subset(&boosted));
        assert!(boosted.iter().all(|name| told.contains(name) || unread.contains(name)));
        assert!(answer.unread().is_sorted_by_key(|partner| partner.as_str()[1..].parse::<u32>().unwrap()));
        unread_ever += unread.len();
    }
    assert!(unread_ever > 0);
    assert_eq!(campaigns.metrics().partners_unread.get(), unread_ever as u64);
    let all = ReadFaults { throttled: 1_000, ..ReadFaults::default() };
    store.set_plan(CampaignFaultPlan { reads: all, ..CampaignFaultPlan::default() });
    let answer = campaigns.lookup(query("at", None, &["p0", "p1"])).await.unwrap();
    assert_eq!((answer.boosted().count(), answer.unread().count()), (0, 2));
    let down = ReadFaults { unavailable: 1_000, ..ReadFaults::default() };
    store.set_plan(CampaignFaultPlan { reads: down, ..CampaignFaultPlan::default() });
    let answer = campaigns.lookup(query("at", None, &["p0", "p1"])).await;
    assert!(matches!(answer, Err(LookupError::Store(CampaignError::Unavailable(_)))), "{answer:?}");
}

/// Lost, late and doubled puts: retried until they are settled, and no event counts for more than it is.
#[tokio::test(start_paused = true)]
async fn puts_are_repeated_until_they_are_settled() {
    let writes = WriteFaults { lost: 150, unknown: 150, late: 100, throttled: 150, unavailable: 50 };
    let (store, campaigns) =
        faulty(CampaignFaultPlan { writes, late_max: Duration::from_secs(2), ..CampaignFaultPlan::default() });
    markets(&campaigns).await;
    let areas: Vec<_> = (0..200).map(|i| format!("a{i}")).collect();
    let areas: Vec<_> = areas.iter().map(String::as_str).collect();
    let (old, new) = (event("de", "p", &areas, -1).to_string(), ended("de", "p", &areas[..100], 0).to_string());
    let done = campaigns.apply(&[old.clone(), new.clone(), old, new, "{".into()]).await.unwrap();
    assert_eq!((done.applied + done.stale, done.rejected.len()), (4, 1));
    sleep(Duration::from_secs(3)).await;
    store.set_plan(CampaignFaultPlan::default());
    for (i, area) in areas.iter().enumerate() {
        let answer = campaigns.lookup(query("de", Some(area), &["p"])).await.unwrap();
        assert_eq!(answer.boosted().count(), usize::from(i >= 100), "{area}");
    }
    assert!(!letters(&campaigns).await.is_empty());
}

/// A store that is down is nobody's mistake: nothing is rejected for it.
#[tokio::test(start_paused = true)]
async fn an_outage_is_an_error_and_no_rejection() {
    let (store, campaigns) = faulty(CampaignFaultPlan::default());
    markets(&campaigns).await;
    let good = event("at", "p", &["*"], 0).to_string();
    let writes = WriteFaults { unavailable: 1_000, ..WriteFaults::default() };
    store.set_plan(CampaignFaultPlan { writes, ..CampaignFaultPlan::default() });
    for events in [[good.clone()], ["{".to_owned()]] {
        let done = campaigns.apply(&events).await;
        assert!(matches!(done, Err(CampaignError::Unavailable(_))), "{done:?}");
    }
    sleep(Duration::from_secs(60)).await;
    let reads = ReadFaults { unavailable: 1_000, ..ReadFaults::default() };
    store.set_plan(CampaignFaultPlan { reads, ..CampaignFaultPlan::default() });
    let done = campaigns.apply(std::slice::from_ref(&good)).await;
    assert!(matches!(done, Err(CampaignError::Unavailable(_))), "{done:?}");
    store.set_plan(CampaignFaultPlan::default());
    assert!(letters(&campaigns).await.is_empty());
    assert_eq!(campaigns.apply(&[good]).await.unwrap().applied, 1);
}

/// Two servers over one table: a changed market is seen within the stated time, and rejects nothing before.
#[tokio::test(start_paused = true)]
async fn markets_are_remembered_for_ten_seconds() {
    let store = MemoryCampaigns::default();
    let [one, other] = [1, 2].map(|_| service(Arc::new(store.clone())));
    let evenings = |zone: &str, slots: &[&str]| {
        let slot = market::market(MarketModel::Wildcard).slot("lunch").unwrap();
        Market::new(MarketModel::Wildcard, zone, slots.iter().map(|name| (*name, slot))).unwrap()
    };
    one.put_market(&tenant("at"), &evenings("Europe/Vienna", &["lunch"])).await.unwrap();
    let slotted = |slot: &str| {
        let mut event = event("at", slot, &["*"], 0);
        event["time_slots"] = json!([slot]);
        event
    };
    assert_eq!(apply(&other, &slotted("lunch")).await, "applied");
    let noon = Some(Moment::parse("2026-11-16T12:00:00+01:00").unwrap());
    let question = saltern_service::campaigns::LookupQuery { at: noon, ..query("at", None, &["lunch"]) };
    assert_eq!(other.lookup(question.clone()).await.unwrap().boosted().count(), 1);
    let read = other.metrics().markets_read.get();
    one.put_market(&tenant("at"), &evenings("Pacific/Apia", &["lunch", "dinner"])).await.unwrap();
    assert_eq!(one.lookup(question.clone()).await.unwrap().boosted().count(), 0);
    assert_eq!(other.lookup(question.clone()).await.unwrap().boosted().count(), 1);
    assert_eq!(other.metrics().markets_read.get(), read);
    // By a clock that stands still, nothing is ever older than anything.
    sleep(Duration::from_millis(1)).await;
    assert_eq!(apply(&other, &slotted("dinner")).await, "applied");
    sleep(Duration::from_secs(11)).await;
    assert_eq!(other.lookup(question.clone()).await.unwrap().boosted().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn markets_set_at_once_end_in_one_of_them() {
    let writes = WriteFaults { unknown: 200, lost: 200, throttled: 200, ..WriteFaults::default() };
    let (store, one) = faulty(CampaignFaultPlan { writes, ..CampaignFaultPlan::default() });
    let other = service_with(Arc::new(store), |config| config.jitter_seed = 9);
    let (zoned, wildcard) = (market::market(MarketModel::Zoned), market::market(MarketModel::Wildcard));
    let id = tenant("de");
    for _ in 0..20 {
        let (a, b) = tokio::join!(one.put_market(&id, &zoned), other.put_market(&id, &wildcard));
        a.unwrap();
        b.unwrap();
        let last = one.market(&id).await.unwrap().unwrap();
        assert!(last == zoned || last == wildcard);
        assert_eq!(other.market(&id).await.unwrap(), Some(last));
    }
}

#[tokio::test]
async fn too_many_lookups_are_told_to_come_back() {
    let campaigns = service_with(Arc::new(MemoryCampaigns::default()), |config| config.lookups_max = 0);
    let answer = campaigns.lookup(query("at", None, &["p"])).await;
    assert!(matches!(answer, Err(LookupError::Overloaded)), "{answer:?}");
}
