use rstest::rstest;

use super::super::slot::{Slot, TimeOfDay};
use super::*;
use crate::limits::ID_BYTES_MAX;

const NOW_MS: i64 = 1_763_200_000_000;

fn market(model: MarketModel) -> Market {
    let time = |text| TimeOfDay::parse(text).unwrap();
    let lunch = Slot::new(time("11:00"), time("15:00")).unwrap();
    Market::new(model, "Europe/Berlin", [("lunch", lunch)]).unwrap()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn good() -> RawEvent {
    RawEvent {
        tenant: "de".into(),
        partner_id: "10740321".into(),
        delivery_areas: texts(&["BER-01"]),
        boost_score: Some(1.5),
        last_updated_ms: NOW_MS,
        ..RawEvent::default()
    }
}

fn check(raw: &RawEvent) -> Result<Event, Rejection> {
    Event::new(raw, &market(MarketModel::Zoned), Moment::from_ms(NOW_MS).unwrap())
}

#[rstest]
#[case::no_tenant(RawEvent { tenant: String::new(), ..good() }, "tenant must not be empty")]
#[case::no_partner(RawEvent { partner_id: String::new(), ..good() }, "partner_id must not be empty")]
#[case::long_partner(RawEvent { partner_id: "x".repeat(257), ..good() }, "partner_id is 257 bytes")]
#[case::no_area(RawEvent { delivery_areas: vec![], ..good() }, "no area")]
#[case::empty_area(RawEvent { delivery_areas: texts(&[""]), ..good() }, "delivery_areas must not be empty")]
#[case::long_area(RawEvent { ended_areas: vec!["x".repeat(300)], ..good() }, "ended_areas is 300 bytes")]
#[case::twice(RawEvent { delivery_areas: texts(&["a", "b", "a"]), ..good() }, "\"a\" more than once")]
#[case::both(RawEvent { ended_areas: texts(&["BER-01"]), ..good() }, "\"BER-01\" more than once")]
#[case::wildcard_twice(RawEvent { delivery_areas: texts(&["*"]), ended_areas: texts(&["*"]), ..good() }, "\"*\" more than once")]
#[case::no_score(RawEvent { boost_score: None, ..good() }, "boost_score is needed")]
#[case::zero(RawEvent { boost_score: Some(0.0), ..good() }, "finite number above 0, not 0")]
#[case::negative(RawEvent { boost_score: Some(-1.5), ..good() }, "not -1.5")]
#[case::nan(RawEvent { boost_score: Some(f64::NAN), ..good() }, "not NaN")]
#[case::infinite(RawEvent { boost_score: Some(f64::INFINITY), ..good() }, "not inf")]
#[case::day(RawEvent { days_of_week: texts(&["monday", "funday"]), ..good() }, "unknown day \"funday\"")]
#[case::slot(RawEvent { time_slots: texts(&["lunch", "brunch"]), ..good() }, "\"brunch\", which the market")]
#[case::slots_have_case(RawEvent { time_slots: texts(&["Lunch"]), ..good() }, "\"Lunch\", which the market")]
#[case::backwards(RawEvent { starts_at_ms: Some(NOW_MS), ends_at_ms: Some(NOW_MS - 1), ..good() }, "ends_at is not after")]
#[case::no_time(RawEvent { starts_at_ms: Some(NOW_MS), ends_at_ms: Some(NOW_MS), ..good() }, "ends_at is not after")]
#[case::seconds(RawEvent { last_updated_ms: NOW_MS / 1_000, ..good() }, "last_updated 1970-01-21T09:46:40Z is before the year 2000")]
#[case::starts_in_seconds(RawEvent { starts_at_ms: Some(NOW_MS / 1_000), ..good() }, "starts_at 1970")]
#[case::ends_in_seconds(RawEvent { ends_at_ms: Some(NOW_MS / 1_000), ..good() }, "ends_at 1970")]
#[case::negative_time(RawEvent { last_updated_ms: -1, ..good() }, "before the year 2000")]
#[case::microseconds(RawEvent { last_updated_ms: NOW_MS * 1_000, ..good() }, "beyond the year 9999")]
#[case::no_such_time(RawEvent { ends_at_ms: Some(i64::MAX), ..good() }, "beyond the year 9999")]
#[case::ahead(RawEvent { last_updated_ms: NOW_MS + 300_001, ..good() }, "more than 5 minutes ahead")]
fn bad_events_are_told_why(#[case] raw: RawEvent, #[case] reason: &str) {
    let rejection = check(&raw).unwrap_err().to_string();
    assert!(rejection.contains(reason), "{rejection}");
}

#[rstest]
#[case::plain(good())]
#[case::on_the_edge_of_ahead(RawEvent { last_updated_ms: NOW_MS + 300_000, ..good() })]
#[case::years_ago(RawEvent { last_updated_ms: CAMPAIGN_TIME_MIN_MS, ..good() })]
#[case::only_ending_needs_no_score(RawEvent { delivery_areas: vec![], ended_areas: texts(&["*"]), boost_score: None, ..good() })]
#[case::days_in_any_case(RawEvent { days_of_week: texts(&["MONDAY", "monday", "Tuesday"]), ..good() })]
#[case::all_day_beside_others(RawEvent { time_slots: texts(&["all-day", "lunch"]), ..good() })]
#[case::longest_ids(RawEvent { partner_id: "🧂".repeat(64), delivery_areas: vec!["x".repeat(ID_BYTES_MAX)], ..good() })]
#[case::over_in_the_past(RawEvent { ends_at_ms: Some(CAMPAIGN_TIME_MIN_MS), ..good() })]
fn good_events_pass(#[case] raw: RawEvent) {
    check(&raw).unwrap();
}

#[test]
fn areas_are_bounded_together() {
    let names = |prefix: &str, count: usize| (0..count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let event =
        |delivered, ended| RawEvent { delivery_areas: names("d", delivered), ended_areas: names("e", ended), ..good() };
    assert_eq!(check(&event(2_500, 2_500)).unwrap().boosts().count(), 5_000);
    for (delivered, ended) in [(5_001, 0), (0, 5_001), (2_500, 2_501)] {
        assert_eq!(check(&event(delivered, ended)), Err(Rejection::TooManyAreas(5_001)));
    }
}

#[test]
fn a_wildcard_market_has_no_districts() {
    let check = |raw: &RawEvent| Event::new(raw, &market(MarketModel::Wildcard), Moment::from_ms(NOW_MS).unwrap());
    let refused = Err(Rejection::DistrictInWildcardMarket("BER-01".into()));
    assert_eq!(check(&good()), refused);
    assert_eq!(check(&RawEvent { delivery_areas: texts(&["*"]), ended_areas: texts(&["BER-01"]), ..good() }), refused);
    assert!(check(&RawEvent { delivery_areas: texts(&["*"]), ..good() }).is_ok());
}

#[test]
fn an_event_is_one_row_for_each_area() {
    let raw = RawEvent { delivery_areas: texts(&["a", "*"]), ended_areas: texts(&["b"]), ..good() };
    let rows: Vec<_> = check(&raw).unwrap().boosts().collect();
    let shown: Vec<_> = rows.iter().map(|(key, boost)| (format!("{key:?}"), boost.state == State::Ended)).collect();
    let expected = [("de#a/10740321", false), ("de#*/10740321", false), ("de#b/10740321", true)];
    assert_eq!(shown, expected.map(|(key, ended)| (key.to_owned(), ended)));
}
