use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Zoned};
use proptest::prelude::*;
use rstest::rstest;

use super::super::days::Day;
use super::super::market::{Market, MarketModel};
use super::super::slot::{Slot, TimeOfDay};
use super::*;

fn market(zone: &str) -> Market {
    let slot = |start, end| Slot::new(TimeOfDay::parse(start).unwrap(), TimeOfDay::parse(end).unwrap()).unwrap();
    let slots = [
        ("lunch", slot("11:00", "15:00")),
        ("night", slot("22:00", "02:00")),
        ("small-hours", slot("02:00", "03:00")),
        ("half-hour", slot("01:30", "02:00")),
        ("one-to-four", slot("01:00", "04:00")),
        ("evening", slot("18:00", "24:00")),
    ];
    Market::new(MarketModel::Wildcard, zone, slots).unwrap()
}

fn schedule(days: &[Day], slots: &[&str]) -> Schedule {
    let slots = slots.iter().map(|name| SlotName::new(name).unwrap()).collect();
    Schedule::new(DaySet::new(days.iter().copied()), slots, Window::default())
}

fn active(zone: &str, schedule: &Schedule, at: &str) -> bool {
    let market = market(zone);
    schedule.is_active(&market.local_time(Moment::parse(at).unwrap()))
}

#[rstest]
#[case("2026-11-16T10:59:59.999+01:00", false)]
#[case("2026-11-16T11:00:00+01:00", true)]
#[case("2026-11-16T14:59:59.999+01:00", true)]
#[case("2026-11-16T15:00:00+01:00", false)]
#[case::tuesday("2026-11-17T12:00:00+01:00", false)]
#[case::the_same_hour_elsewhere("2026-11-16T12:00:00-05:00", false)]
#[case::as_utc("2026-11-16T11:30:00Z", true)]
fn lunch_on_monday(#[case] at: &str, #[case] expected: bool) {
    assert_eq!(active("Europe/Berlin", &schedule(&[Day::Monday], &["lunch"]), at), expected);
}

/// 2026-11-20 is a Friday.
#[rstest]
#[case("2026-11-20T01:59:00+01:00", false)]
#[case("2026-11-20T21:59:00+01:00", false)]
#[case("2026-11-20T22:00:00+01:00", true)]
#[case("2026-11-20T23:59:59+01:00", true)]
#[case("2026-11-21T00:00:00+01:00", true)]
#[case("2026-11-21T01:59:59+01:00", true)]
#[case("2026-11-21T02:00:00+01:00", false)]
#[case("2026-11-21T22:00:00+01:00", false)]
fn the_night_belongs_to_the_day_it_starts_on(#[case] at: &str, #[case] expected: bool) {
    assert_eq!(active("Europe/Berlin", &schedule(&[Day::Friday], &["night"]), at), expected);
}

/// The night from Sunday to Monday wraps around the week as well.
#[test]
fn a_week_has_no_seam() {
    let sunday = schedule(&[Day::Sunday], &["night"]);
    assert!(active("Europe/Berlin", &sunday, "2026-11-23T01:00:00+01:00"));
    assert!(!active("Europe/Berlin", &sunday, "2026-11-22T01:00:00+01:00"));
}

#[rstest]
// Berlin, 29 March 2026: 02:00 becomes 03:00.
#[case("Europe/Berlin", "one-to-four", "2026-03-29T00:59:59Z", true)]
#[case("Europe/Berlin", "one-to-four", "2026-03-29T01:00:00Z", true)]
#[case("Europe/Berlin", "one-to-four", "2026-03-29T01:59:59Z", true)]
#[case("Europe/Berlin", "one-to-four", "2026-03-29T02:00:00Z", false)]
#[case("Europe/Berlin", "small-hours", "2026-03-29T00:59:59Z", false)]
#[case("Europe/Berlin", "small-hours", "2026-03-29T01:00:00Z", false)]
#[case("Europe/Berlin", "lunch", "2026-03-28T10:00:00Z", true)]
#[case("Europe/Berlin", "lunch", "2026-03-29T09:00:00Z", true)]
#[case("Europe/Berlin", "lunch", "2026-03-29T08:59:59Z", false)]
// Berlin, 25 October 2026: 03:00 becomes 02:00, so that 02:30 comes twice.
#[case("Europe/Berlin", "small-hours", "2026-10-25T02:30:00+02:00", true)]
#[case("Europe/Berlin", "small-hours", "2026-10-25T02:30:00+01:00", true)]
#[case("Europe/Berlin", "small-hours", "2026-10-25T03:00:00+01:00", false)]
#[case("Europe/Berlin", "night", "2026-10-25T01:59:59+02:00", true)]
#[case("Europe/Berlin", "night", "2026-10-25T02:00:00+02:00", false)]
#[case("Europe/Berlin", "night", "2026-10-25T02:00:00+01:00", false)]
// New York, 8 March and 1 November 2026, each at 02:00.
#[case("America/New_York", "small-hours", "2026-03-08T06:59:59Z", false)]
#[case("America/New_York", "small-hours", "2026-03-08T07:00:00Z", false)]
#[case("America/New_York", "one-to-four", "2026-03-08T07:30:00Z", true)]
#[case("America/New_York", "half-hour", "2026-11-01T05:45:00Z", true)]
#[case("America/New_York", "half-hour", "2026-11-01T06:15:00Z", false)]
#[case("America/New_York", "half-hour", "2026-11-01T06:45:00Z", true)]
#[case("America/New_York", "half-hour", "2026-11-01T07:00:00Z", false)]
#[case("America/New_York", "lunch", "2026-10-31T15:00:00Z", true)]
#[case("America/New_York", "lunch", "2026-11-01T15:30:00Z", false)]
#[case("America/New_York", "lunch", "2026-11-01T16:00:00Z", true)]
// Lord Howe moves by half an hour: 4 October 2026 at 02:00 to 02:30, 5 April 2026 at 02:00 back to 01:30.
#[case("Australia/Lord_Howe", "half-hour", "2026-04-05T01:45:00+11:00", true)]
#[case("Australia/Lord_Howe", "half-hour", "2026-04-05T01:45:00+10:30", true)]
#[case("Australia/Lord_Howe", "half-hour", "2026-04-05T02:00:00+10:30", false)]
#[case("Australia/Lord_Howe", "small-hours", "2026-10-04T01:59:59+10:30", false)]
#[case("Australia/Lord_Howe", "small-hours", "2026-10-04T02:30:00+11:00", true)]
#[case("Australia/Lord_Howe", "small-hours", "2026-10-04T03:00:00+11:00", false)]
#[case("Australia/Lord_Howe", "lunch", "2026-10-03T11:00:00+10:30", true)]
#[case("Australia/Lord_Howe", "lunch", "2026-10-04T11:00:00+10:30", true)]
#[case("Australia/Lord_Howe", "lunch", "2026-10-04T15:00:00+11:00", false)]
fn clocks_change(#[case] zone: &str, #[case] slot: &str, #[case] at: &str, #[case] expected: bool) {
    assert_eq!(active(zone, &schedule(&[], &[slot]), at), expected);
}

/// Days are the market's own: on the date line two of them are a day apart at the same hour.
#[rstest]
#[case("Pacific/Kiritimati", Day::Monday, "2026-11-15T10:00:00Z", true)]
#[case("Pacific/Kiritimati", Day::Sunday, "2026-11-15T10:00:00Z", false)]
#[case("Pacific/Apia", Day::Monday, "2026-11-15T11:00:00Z", true)]
#[case("Pacific/Pago_Pago", Day::Monday, "2026-11-15T11:00:00Z", false)]
#[case("Pacific/Pago_Pago", Day::Sunday, "2026-11-15T11:00:00Z", true)]
fn days_are_local(#[case] zone: &str, #[case] day: Day, #[case] at: &str, #[case] expected: bool) {
    assert_eq!(active(zone, &schedule(&[day], &[ALL_DAY]), at), expected);
}

/// Zones that crossed the date line, and the day that they left out. The night of the day before it goes on into the day
/// after it; a night of the day that never was never starts.
#[rstest]
// From Thursday 29 to Saturday 31 December 2011.
#[case("Pacific/Apia", "2011-12-30T10:00:00Z", Day::Thursday, Day::Friday, Day::Saturday)]
#[case("Pacific/Fakaofo", "2011-12-30T11:00:00Z", Day::Thursday, Day::Friday, Day::Saturday)]
// From Friday 30 December 1994 to Sunday 1 January 1995.
#[case("Pacific/Kiritimati", "1994-12-31T10:00:00Z", Day::Friday, Day::Saturday, Day::Sunday)]
// From Friday 20 to Sunday 22 August 1993.
#[case("Pacific/Kwajalein", "1993-08-21T12:00:00Z", Day::Friday, Day::Saturday, Day::Sunday)]
fn a_day_that_never_was(
    #[case] zone: &str,
    #[case] midnight: &str,
    #[case] before: Day,
    #[case] skipped: Day,
    #[case] after: Day,
) {
    let midnight = Moment::parse(midnight).unwrap().as_ms();
    let at = |day, slots: &[&str], minutes: i64| {
        let moment = Moment::from_ms(midnight + minutes * 60_000).unwrap();
        schedule(&[day], slots).is_active(&market(zone).local_time(moment))
    };
    let active = |slots: &[&str], minutes| [before, skipped, after].map(|day| at(day, slots, minutes));
    for (minutes, expected) in [(-1_439, 0), (-1, 0), (0, 2), (1_439, 2)] {
        assert_eq!(active(&[], minutes), [0, 1, 2].map(|day| day == expected), "{minutes}");
    }
    for minutes in [-120, -1, 0, 119] {
        assert_eq!(active(&["night"], minutes), [true, false, false], "{minutes}");
    }
    for minutes in [-121, 120, 1_319] {
        assert_eq!(active(&["night"], minutes), [false; 3], "{minutes}");
    }
    for minutes in [1_320, 1_440, 1_559] {
        assert_eq!(active(&["night"], minutes), [false, false, true], "{minutes}");
    }
}

#[test]
fn the_window_is_half_open() {
    let window = Window {
        starts_at: Some(Moment::parse("2026-11-16T10:00:00Z").unwrap()),
        ends_at: Some(Moment::parse("2026-11-16T11:00:00Z").unwrap()),
    };
    let schedule = Schedule::new(DaySet::EVERY_DAY, Vec::new(), window);
    let cases = [("09:59:59.999", false), ("10:00:00", true), ("10:59:59.999", true), ("11:00:00", false)];
    for (time, expected) in cases {
        assert_eq!(active("Europe/Berlin", &schedule, &format!("2026-11-16T{time}Z")), expected, "{time}");
    }
}

#[test]
fn a_slot_that_the_market_no_longer_has_is_not_active() {
    let gone = schedule(&[], &["brunch"]);
    assert!(!active("Europe/Berlin", &gone, "2026-11-16T12:00:00+01:00"));
    let both = schedule(&[], &["brunch", "lunch"]);
    assert!(active("Europe/Berlin", &both, "2026-11-16T12:00:00+01:00"));
}

#[test]
fn what_means_the_same_is_the_same() {
    assert_eq!(schedule(&[], &["lunch", ALL_DAY]), schedule(&Day::ALL, &[]));
    assert_eq!(schedule(&[], &["night", "lunch", "night"]), schedule(&[], &["lunch", "night"]));
}

const ZONES: [&str; 6] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Kiritimati",
    "Pacific/Apia",
    "America/St_Johns",
];

proptest! {
    /// Against the clock and the calendar themselves: a slot over midnight is an evening on one of its days, and a morning
    /// after one. Half of the moments are around the time when Apia left out a day.
    #[test]
    fn a_night_is_its_evening_and_the_next_morning(
        zone in 0..ZONES.len(),
        ms in prop_oneof![0..4_102_444_800_000_i64, 1_325_000_000_000..1_325_500_000_000_i64],
        bits in 1..128_u8,
    ) {
        let slot = |start, end| Slot::new(TimeOfDay::parse(start).unwrap(), TimeOfDay::parse(end).unwrap()).unwrap();
        let slots = [("night", slot("22:00", "02:00"))];
        let market = Market::new(MarketModel::Zoned, ZONES[zone], slots).unwrap();
        let days = DaySet::from_bits(bits).unwrap();
        let night = Schedule::new(days, vec![SlotName::new("night").unwrap()], Window::default());
        let now = Timestamp::from_millisecond(ms).unwrap().to_zoned(TimeZone::get(ZONES[zone]).unwrap());
        // Hour by hour back to the last one of another day: no day is changed twice within a few hours.
        let is_another = |zoned: &Zoned| zoned.date() != now.date();
        let before = (1..).map(|hours| now.saturating_sub(hours.hours())).find(is_another).unwrap();
        let has = |zoned: &Zoned| days.contains(Day::ALL[usize::from(zoned.weekday().to_monday_zero_offset().unsigned_abs())]);
        let expected = (now.hour() >= 22 && has(&now)) || (now.hour() < 2 && has(&before));
        prop_assert_eq!(night.is_active(&market.local_time(Moment::from_ms(ms).unwrap())), expected, "{}", now);
    }

    /// Each moment has exactly one day, wherever it is.
    #[test]
    fn a_moment_has_one_day(zone in 0..ZONES.len(), ms in 0..4_102_444_800_000_i64) {
        let market = market(ZONES[zone]);
        let now = market.local_time(Moment::from_ms(ms).unwrap());
        let days = Day::ALL.into_iter().filter(|day| schedule(&[*day], &[]).is_active(&now));
        prop_assert_eq!(days.count(), 1);
    }
}
