//! Campaigns on the wire: events, questions and answers.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use saltern_core::campaigns::{Area, DeadLetter, DistrictId, LetterNo, Moment};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_core::limits::{LOOKUP_PARTNERS_MAX, PAGE_LIMIT_MAX, SEQ_NO_END};
use saltern_service::campaigns::{Boosts, DeadLetters, LookupQuery, RejectedAgain, Replayed};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use utoipa::ToSchema;

use super::json::Json;
use super::plain::Plain;
use super::schema;

/// The whole truth about a partner in the areas that it lists, and only in those.
// A description alone: the service reads events itself, whichever way they come.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CampaignEvent {
    /// For tracing.
    #[schema(max_length = 256)]
    event_id: Option<String>,
    #[schema(min_length = 1, max_length = 256)]
    tenant: String,
    #[schema(min_length = 1, max_length = 256)]
    partner_id: String,
    /// Where the campaign is active: districts, or `*`. Together with `ended_areas` 1 to 5,000, each once.
    #[schema(schema_with = schema::areas)]
    delivery_areas: Option<Vec<String>>,
    /// Where it is over.
    #[schema(schema_with = schema::areas)]
    ended_areas: Option<Vec<String>>,
    /// Finite and above 0. Needed where `delivery_areas` are named.
    #[schema(exclusive_minimum = 0.0)]
    boost_score: Option<f64>,
    /// `monday` to `sunday`, in any case; none means every day.
    #[schema(schema_with = schema::days)]
    days_of_week: Option<Vec<String>>,
    /// Slots of the market; none means `all-day`.
    #[schema(schema_with = schema::slot_names)]
    time_slots: Option<Vec<String>>,
    /// RFC 3339 with its offset, or milliseconds since 1970.
    #[schema(schema_with = schema::time)]
    starts_at: Option<String>,
    /// The first moment that is too late; as `starts_at`.
    #[schema(schema_with = schema::time)]
    ends_at: Option<String>,
    /// Milliseconds since 1970, from the year 2000 on. What is said later counts.
    #[schema(minimum = 946684800000i64, maximum = 253402300799999i64)]
    last_updated: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "a description")]
pub(crate) enum CampaignEvents {
    One(Box<CampaignEvent>),
    Many(Vec<CampaignEvent>),
}

/// What became of the events, each counted once.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventsAnswer {
    pub(crate) applied: u64,
    /// All that they said was known already, or overtaken.
    pub(crate) stale: u64,
    /// Now dead letters. The first 1,000 of them.
    pub(crate) rejected: Vec<RejectedBody>,
    /// How many there are, where that is more than are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) rejected_total: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Rejected)]
pub(crate) struct RejectedBody {
    /// Of the event, or of its line, counted from 0.
    pub(crate) index: usize,
    pub(crate) reason: String,
}

/// Which of these partners are boosted?
#[derive(serde::Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BoostQuery<'a> {
    #[serde(borrow)]
    #[schema(min_length = 1, max_length = 256)]
    tenant: Cow<'a, str>,
    /// Needed in a zoned market; in a wildcard market it makes no difference. Not `*`.
    #[serde(borrow, default)]
    #[schema(min_length = 1, max_length = 256)]
    district: Option<Cow<'a, str>>,
    #[serde(deserialize_with = "partner_ids")]
    #[schema(schema_with = schema::partner_ids)]
    partner_ids: Vec<PartnerId>,
    /// RFC 3339 with its offset; now if absent.
    #[serde(borrow, default)]
    #[schema(format = DateTime, examples("2026-11-16T12:30:00+01:00"))]
    at: Option<Cow<'a, str>>,
}

impl<'a> BoostQuery<'a> {
    /// If it is of the usual shape and nothing is wrong with it.
    pub(crate) fn plain(body: &'a str) -> Option<Self> {
        let (mut tenant, mut district, mut at, mut partner_ids) = (None, None, None, Vec::new());
        Plain::new(body).object(|name, value| match name {
            "tenant" if tenant.is_none() => value.string().map(|text| tenant = Some(text)),
            "district" if district.is_none() => value.string().map(|text| district = Some(text)),
            "at" if at.is_none() => value.string().map(|text| at = Some(text)),
            "partner_ids" if partner_ids.is_empty() => {
                partner_ids.reserve(USUAL_PARTNERS);
                value.strings(|text| {
                    partner_ids.push(PartnerId::new(text).ok()?);
                    (partner_ids.len() <= LOOKUP_PARTNERS_MAX).then_some(())
                })?;
                (!partner_ids.is_empty()).then_some(())
            }
            _ => None,
        })?;
        let [district, at] = [district, at].map(|text: Option<&str>| text.map(Cow::Borrowed));
        let is_asked = !partner_ids.is_empty();
        is_asked.then_some(Self { tenant: Cow::Borrowed(tenant?), district, partner_ids, at })
    }

    /// The question, or what is wrong with it, for people.
    pub(crate) fn question(self) -> Result<LookupQuery, String> {
        let district = self.district.map(|text| DistrictId::new(&text).map_err(|error| format!("district {error}")));
        let at = self.at.map(|text| Moment::parse(&text).map_err(|error| format!("at {error}")));
        Ok(LookupQuery {
            tenant: TenantId::new(&self.tenant).map_err(|error| format!("tenant {error}"))?,
            district: district.transpose()?,
            partners: self.partner_ids,
            at: at.transpose()?,
        })
    }
}

struct PartnerText(PartnerId);

impl<'de> Deserialize<'de> for PartnerText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = PartnerText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id in partner_ids as a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<PartnerText, E> {
                PartnerId::new(text)
                    .map(PartnerText)
                    .map_err(|error| E::custom(format!("an id in partner_ids {error}")))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// As many as a page of search results has, and some: room for them is made at once.
const USUAL_PARTNERS: usize = 64;

/// Stops at the first id too many.
fn partner_ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PartnerId>, D::Error> {
    struct Ids;

    impl<'de> Visitor<'de> for Ids {
        type Value = Vec<PartnerId>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("partner_ids as an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut ids = Vec::with_capacity(USUAL_PARTNERS);
            while let Some(PartnerText(id)) = seq.next_element()? {
                if ids.len() == LOOKUP_PARTNERS_MAX {
                    return Err(A::Error::custom(format!("partner_ids holds more than {LOOKUP_PARTNERS_MAX}")));
                }
                ids.push(id);
            }
            if ids.is_empty() {
                return Err(A::Error::custom("partner_ids is empty"));
            }
            Ok(ids)
        }
    }

    deserializer.deserialize_seq(Ids)
}

/// In the order of the question.
#[derive(ToSchema)]
#[schema(as = Boosts)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct BoostAnswer {
    boosts: Vec<BoostBody>,
    /// Partners of whom it is not known whether they are boosted; ask again.
    #[schema(schema_with = schema::ids)]
    unread: Vec<String>,
}

#[derive(ToSchema)]
#[schema(as = Boost)]
#[expect(dead_code, reason = "a description")]
pub(crate) struct BoostBody {
    #[schema(min_length = 1, max_length = 256)]
    partner_id: String,
    #[schema(exclusive_minimum = 0.0)]
    boost_score: f64,
    /// Whose boost it is: the district, or `*`.
    area: String,
}

impl BoostAnswer {
    pub(crate) fn write(answer: &Boosts, json: &mut Json) -> serde_json::Result<()> {
        json.raw(r#"{"boosts":"#).list(answer.boosted(), |boost, json| {
            json.raw(r#"{"partner_id":"#).text(boost.partner.as_str())?;
            json.raw(r#","boost_score":"#).number(boost.score.get())?;
            match boost.area {
                Area::Wildcard => json.raw(r#","area":"*"}"#),
                Area::District(district) => {
                    json.raw(r#","area":"#).text(district.as_str())?;
                    json.raw("}")
                }
            };
            Ok(())
        })?;
        json.raw(r#","unread":"#).list(answer.unread(), |partner, json| json.text(partner.as_str()))?;
        json.raw("}");
        Ok(())
    }
}

/// Newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetters)]
pub(crate) struct DeadLetterList<'a> {
    dead_letters: Vec<DeadLetterBody<'a>>,
    /// Where the next page goes on; null if there are no more.
    #[schema(required, minimum = 1)]
    next_after: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct DeadLetterBody<'a> {
    /// What it is named by. Later ones have higher numbers, and no number is given twice.
    #[schema(minimum = 1)]
    number: u64,
    /// RFC 3339.
    #[schema(format = DateTime)]
    received_at: String,
    reason: &'a str,
    /// As it came.
    event: &'a str,
    /// The event was too long to be kept whole.
    cut: bool,
}

impl<'a> DeadLetterList<'a> {
    pub(crate) fn new(page: &'a DeadLetters) -> Self {
        let letter = |(number, letter): &'a (LetterNo, DeadLetter)| DeadLetterBody {
            number: number.0,
            received_at: letter.received_at.to_string(),
            reason: &letter.reason,
            event: &letter.event,
            cut: letter.cut,
        };
        let next_after = page.next_after.map(|number| number.0);
        Self { dead_letters: page.letters.iter().map(letter).collect(), next_after }
    }
}

/// Which dead letters to take up once more.
#[derive(serde::Deserialize, ToSchema)]
#[schema(as = ReplayOrder)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayOrder {
    /// Their numbers. If absent, those that the query parameters name.
    #[schema(schema_with = schema::letters)]
    #[serde(default, deserialize_with = "present")]
    ids: Option<Vec<u64>>,
}

/// What is there is not null.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl ReplayOrder {
    /// Each of them once, or what is wrong with them, for people.
    pub(crate) fn ids(self) -> Result<Option<Vec<LetterNo>>, String> {
        let Some(mut ids) = self.ids else { return Ok(None) };
        if ids.len() > PAGE_LIMIT_MAX {
            return Err(format!("ids holds {}; at most {PAGE_LIMIT_MAX} are allowed", ids.len()));
        }
        if let Some(wrong) = ids.iter().find(|id| !(1..SEQ_NO_END).contains(*id)) {
            return Err(format!("ids holds {wrong}, which is the number of no dead letter"));
        }
        let mut seen = HashSet::new();
        ids.retain(|id| seen.insert(*id));
        Ok(Some(ids.into_iter().map(LetterNo).collect()))
    }
}

/// What became of the dead letters, each counted once.
#[derive(Serialize, ToSchema)]
#[schema(as = Replayed)]
pub(crate) struct ReplayAnswer<'a> {
    applied: u64,
    /// All that they said was known already, or overtaken.
    stale: u64,
    /// These are dead letters still.
    rejected: Vec<RejectedAgainBody<'a>>,
    /// Of the `ids`, those that are no dead letters (any more).
    #[schema(schema_with = schema::letters)]
    missing: Vec<u64>,
    /// Where the next call goes on; null if there are no more.
    #[schema(required, minimum = 1)]
    next_after: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RejectedAgain)]
pub(crate) struct RejectedAgainBody<'a> {
    #[schema(minimum = 1)]
    number: u64,
    reason: &'a str,
}

impl<'a> ReplayAnswer<'a> {
    pub(crate) fn new(done: &'a Replayed) -> Self {
        let again = |again: &'a RejectedAgain| RejectedAgainBody { number: again.number.0, reason: &again.reason };
        Self {
            applied: done.applied,
            stale: done.stale,
            rejected: done.rejected.iter().map(again).collect(),
            missing: done.missing.iter().map(|number| number.0).collect(),
            next_after: done.next_after.map(|number| number.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Object;
    use super::*;

    fn plain(body: &str) -> Option<Result<LookupQuery, String>> {
        BoostQuery::plain(body).map(BoostQuery::question)
    }

    fn serde(body: &str) -> Result<LookupQuery, String> {
        let Object(query) = serde_json::from_str::<Object<BoostQuery<'_>>>(body).map_err(|error| error.to_string())?;
        query.question()
    }

    #[test]
    fn questions_of_the_usual_shape_are_read_in_one_pass() {
        for body in [
            r#"{"tenant":"de","partner_ids":["1"]}"#,
            "\n{ \"partner_ids\" : [ \"1\" ,\t\"ü👩‍👩‍👧\"\r\n] , \"tenant\" : \"d#e\" , \"district\":\"B/1\"} \n",
            r#"{"at":"2026-11-16T12:30:00+01:00","tenant":"de","district":"x","partner_ids":["1","2","2"]}"#,
            r#"{"tenant":"de","partner_ids":["1"],"at":"never"}"#,
        ] {
            assert_eq!(plain(body), Some(serde(body)), "{body}");
        }
    }

    #[test]
    fn all_else_is_left_to_serde() {
        let many = format!(r#"{{"tenant":"de","partner_ids":[{}"1"]}}"#, r#""1","#.repeat(LOOKUP_PARTNERS_MAX));
        for body in [
            "",
            "{}",
            r#"["de",null,["1"],null]"#,
            r#"{"tenant":"de","partner_ids":[]}"#,
            r#"{"tenant":"de","partner_ids":[],"partner_ids":["1"]}"#,
            r#"{"tenant":"de","partner_ids":["1"],"partner_ids":["1"]}"#,
            r#"{"tenant":"de","tenant":"de","partner_ids":["1"]}"#,
            r#"{"tenant":"de","partner_ids":["1",]}"#,
            r#"{"tenant":"de","partner_ids":["1"],}"#,
            r#"{"tenant":"de","partner_ids":["1"]}x"#,
            "{\"tenant\":\"de\",\"partner_ids\":[\"1\"]}\u{c}",
            "{\"tenant\":\"d\ne\",\"partner_ids\":[\"1\"]}",
            "{\"tenant\":\"de\n\",\"partner_ids\":[\"1\"]}",
            "{\"tenant\":\"de\",\"partner_ids\":[\"1",
            r#"{"tenant":"de","partner_ids":["1"],"district":null}"#,
            r#"{"tenant":"de","partner_ids":["\u0031"]}"#,
            r#"{"tenant":"de","partner_ids":[""]}"#,
            r#"{"tenant":"de","partner_ids":[1]}"#,
            r#"{"tenant":"de","partner_ids":["1"],"more":"x"}"#,
            r#"{"tenant":"de"}"#,
            &many,
        ] {
            assert_eq!(plain(body), None, "{body}");
        }
    }

    proptest! {
        /// Whatever is read in one pass is what serde would have read.
        #[test]
        fn one_pass_reads_what_serde_reads(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", "[", "]", ",", ":", "\"", "\\", " ", "\n", "\u{c}", "1", "null", "ü", "\"de\"", "\"1\"", "\"\"",
                    "\"tenant\":\"de\"", "\"district\":\"a\"", "\"partner_ids\":[\"1\"]", "\"partner_ids\":[", "\"at\":",
                ]),
                0..12,
            ),
            framed in any::<bool>(),
        ) {
            let inner = pieces.concat();
            let framed_text = format!("{{\"tenant\":\"de\",\"partner_ids\":[\"1\",\"2\"]{inner}}}");
            let body = if framed { framed_text } else { inner };
            if let Some(read) = plain(&body) {
                prop_assert_eq!(read, serde(&body));
            }
        }
    }
}
