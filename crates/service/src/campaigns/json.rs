//! Events as JSON: strictly, each mistake by its name.

use std::borrow::Cow;
use std::fmt;

use saltern_core::campaigns::{Moment, RawEvent};
use saltern_core::ids::TenantId;
use saltern_core::limits::ID_BYTES_MAX;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// Reasons are for people: what the parser quotes of an event is cut.
const REASON_CHARS_MAX: usize = 300;

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct EventJson {
    /// For tracing alone.
    #[serde(default)]
    event_id: Option<String>,
    tenant: String,
    partner_id: String,
    #[serde(default)]
    delivery_areas: Option<Vec<String>>,
    #[serde(default)]
    ended_areas: Option<Vec<String>>,
    #[serde(default)]
    boost_score: Option<f64>,
    #[serde(default)]
    days_of_week: Option<Vec<String>>,
    #[serde(default)]
    time_slots: Option<Vec<String>>,
    #[serde(default)]
    starts_at: Option<When>,
    #[serde(default)]
    ends_at: Option<When>,
    last_updated: i64,
}

/// A moment: RFC 3339 with its offset, or milliseconds since 1970.
struct When(i64);

impl<'de> Deserialize<'de> for When {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WhenVisitor;

        impl Visitor<'_> for WhenVisitor {
            type Value = When;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"2026-11-16T12:30:00+01:00\", or milliseconds since 1970")
            }

            fn visit_i64<E: Error>(self, ms: i64) -> Result<When, E> {
                Ok(When(ms))
            }

            fn visit_u64<E: Error>(self, ms: u64) -> Result<When, E> {
                i64::try_from(ms).map(When).map_err(|_| E::custom("a time is beyond the year 9999"))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<When, E> {
                Moment::parse(text).map(|moment| When(moment.as_ms())).map_err(E::custom)
            }
        }

        deserializer.deserialize_any(WhenVisitor)
    }
}

/// The event, or what is wrong with it.
pub(super) fn parse(event: &[u8]) -> Result<RawEvent, String> {
    // Derived structs would also take an array of their fields' values.
    if event.trim_ascii_start().first().is_some_and(|byte| *byte != b'{') {
        return Err("not an event: an object is expected".into());
    }
    let event: EventJson = serde_json::from_slice(event).map_err(|error| {
        let reason = format!("not an event: {error}");
        match reason.char_indices().nth(REASON_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &reason[..end]),
            None => reason,
        }
    })?;
    if event.event_id.as_ref().is_some_and(|id| id.len() > ID_BYTES_MAX) {
        return Err(format!("event_id is longer than {ID_BYTES_MAX} bytes"));
    }
    Ok(RawEvent {
        tenant: event.tenant,
        partner_id: event.partner_id,
        delivery_areas: event.delivery_areas.unwrap_or_default(),
        ended_areas: event.ended_areas.unwrap_or_default(),
        boost_score: event.boost_score,
        days_of_week: event.days_of_week.unwrap_or_default(),
        time_slots: event.time_slots.unwrap_or_default(),
        starts_at_ms: event.starts_at.map(|when| when.0),
        ends_at_ms: event.ends_at.map(|when| when.0),
        last_updated_ms: event.last_updated,
    })
}

/// The tenant that an event names, if it can be seen: the rest of it need not be right, nor be there.
pub(super) fn tenant(event: &str) -> Option<TenantId> {
    struct Names<'a>(&'a mut Option<TenantId>);

    impl<'de> Visitor<'de> for Names<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an event")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<Cow<'_, str>>()? {
                if name == "tenant" {
                    *self.0 = TenantId::new(&map.next_value::<String>()?).ok();
                    return Ok(());
                }
                map.next_value::<IgnoredAny>()?;
            }
            Ok(())
        }
    }

    let mut tenant = None;
    // What comes after it, or is missing, makes no difference to it.
    let _ = serde_json::Deserializer::from_str(event).deserialize_map(Names(&mut tenant));
    tenant
}

#[cfg(test)]
mod tests {
    use saltern_core::rng::SplitMix64;

    use super::*;

    const FULL: &str = r#"{"event_id":"e1","tenant":"de","partner_id":"10740321","delivery_areas":["*"],"ended_areas":[],
        "boost_score":1.5,"days_of_week":["monday"],"time_slots":["lunch"],"starts_at":null,"ends_at":null,
        "last_updated":1763200000000}"#;

    #[test]
    fn an_event_is_read_field_by_field() {
        let expected = RawEvent {
            tenant: "de".into(),
            partner_id: "10740321".into(),
            delivery_areas: vec!["*".into()],
            boost_score: Some(1.5),
            days_of_week: vec!["monday".into()],
            time_slots: vec!["lunch".into()],
            last_updated_ms: 1_763_200_000_000,
            ..RawEvent::default()
        };
        assert_eq!(parse(FULL.as_bytes()), Ok(expected));
    }

    #[test]
    fn the_tenant_is_seen_in_what_is_no_event() {
        let de = Some(TenantId::new("de").unwrap());
        for event in [
            FULL,
            r#"{"tenant":"de""#,
            r#"{"x":[1,{"tenant":"at"}],"tenant":"de","partner_id":7,"tenant":"at"}"#,
            r#" {"a":1e999,"tenant":"d\u0065", nonsense"#,
        ] {
            assert_eq!(tenant(event), de, "{event}");
        }
        for event in
            ["", "[]", "{", r#"{"tenant":7}"#, r#"{"tenant":""}"#, r#"{"tenant":"d"#, r#"["tenant","de"]"#, "de"]
        {
            assert_eq!(tenant(event), None, "{event}");
        }
    }

    /// The nearest double to the digits, as the standard library finds it, however many digits there are.
    #[test]
    fn scores_are_read_to_the_last_bit() {
        let mut rng = SplitMix64::new(7);
        let random = std::iter::repeat_with(|| f64::from_bits(rng.next_u64() >> 1)).filter(|score| score.is_finite());
        for score in random.take(10_000) {
            for digits in [format!("{score:e}"), format!("{score:.16e}"), format!("{score:.40e}")] {
                let event = FULL.replace("1.5", &digits);
                let read = parse(event.as_bytes()).unwrap().boost_score.unwrap();
                assert_eq!(read.to_bits(), score.to_bits(), "{digits}");
            }
        }
    }

    #[test]
    fn what_is_absent_or_null_is_empty() {
        let least = br#"{"tenant":"de","partner_id":"p","last_updated":1}"#;
        let nulls = br#"{"event_id":null,"tenant":"de","partner_id":"p","delivery_areas":null,"ended_areas":null,
            "boost_score":null,"days_of_week":null,"time_slots":null,"starts_at":null,"ends_at":null,"last_updated":1}"#;
        assert_eq!(parse(least), parse(nulls));
        assert!(parse(least).is_ok());
    }

    #[test]
    fn times_are_text_or_milliseconds() {
        let with = |time: &str| FULL.replace("\"starts_at\":null", &format!("\"starts_at\":{time}"));
        for time in ["1794828600000", "\"2026-11-16T12:30:00+01:00\"", "\"2026-11-16T11:30:00Z\""] {
            assert_eq!(parse(with(time).as_bytes()).unwrap().starts_at_ms, Some(1_794_828_600_000), "{time}");
        }
        for time in [
            "1.5",
            "\"20261116T123000Z\"",
            "\"2026-11-16T12:30:00Z[UTC]\"",
            "\"2026-11-16\"",
            "\"1794828600000\"",
            "true",
            "[]",
            "18446744073709551615",
        ] {
            assert!(parse(with(time).as_bytes()).is_err(), "{time}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let replaced = |from: &str, to: &str| FULL.replace(from, to);
        let cases = [
            (String::new(), "EOF"),
            (FULL[..60].to_owned(), "EOF"),
            ("[]".into(), "an object"),
            ("7".into(), "an object"),
            (r#"["e","de","p",[],[],1,[],[],null,null,1]"#.into(), "an object"),
            (format!("{FULL} x"), "trailing"),
            (replaced("\"tenant\":\"de\",", ""), "missing field `tenant`"),
            (replaced("\"last_updated\":1763200000000", "\"last_updated\":1.5"), "invalid type"),
            (replaced("\"last_updated\":1763200000000", "\"last_updated\":\"now\""), "invalid type"),
            (replaced("\"tenant\":\"de\"", "\"tenant\":7"), "invalid type"),
            (replaced("\"tenant\":\"de\"", "\"tenant\":\"de\",\"tenant\":\"de\""), "duplicate field `tenant`"),
            (replaced("event_id", "eventId"), "unknown field `eventId`"),
            (replaced("1.5", "1e400"), "out of range"),
            (replaced("1.5", "NaN"), "not an event"),
            (replaced("\"e1\"", &format!("\"{}\"", "x".repeat(257))), "event_id"),
        ];
        for (event, named) in cases {
            let reason = parse(event.as_bytes()).unwrap_err();
            assert!(reason.contains(named) && reason.chars().count() < 310, "{event}: {reason}");
        }
        assert!(parse(b"{\"tenant\":\"\xff\"}").is_err());
    }
}
