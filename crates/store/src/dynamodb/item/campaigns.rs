//! Rows of the campaigns table as items. What stands here is persisted.

use aws_sdk_dynamodb::types::AttributeValue;
use saltern_core::campaigns::{
    ALL_DAY, Boost, BoostKey, Day, DaySet, DeadLetter, LetterNo, Market, MarketModel, Moment, Schedule, Score, Slot,
    SlotName, State, TENANT_SORT, Terms, TimeOfDay, Window, tenant_partition,
};
use saltern_core::ids::TenantId;

use super::fields::{Fields, digest, number, signed, text, texts};
use super::{Damage, Item, PK, SK};
use crate::campaigns::MarketRecord;

pub(in crate::dynamodb) const STATE: &str = "state";
pub(in crate::dynamodb) const LAST_UPDATED: &str = "last_updated";
pub(in crate::dynamodb) const DIGEST: &str = "digest";
pub(in crate::dynamodb) const REVISION: &str = "revision";
pub(in crate::dynamodb) const NUMBER: &str = "number";

/// In this order they outrank each other.
const ACTIVE: &str = "active";
const ENDED: &str = "ended";

/// What DynamoDB's numbers reach, with room to spare.
const NUMBERS: std::ops::RangeInclusive<f64> = 1e-120..=1e120;

pub(in crate::dynamodb) fn keyed(partition: &str, sort: &str) -> Item {
    Item::from([(PK.into(), text(partition)), (SK.into(), text(sort))])
}

pub(in crate::dynamodb) fn of_boost(key: &BoostKey) -> Item {
    keyed(key.partition(), key.sort())
}

pub(in crate::dynamodb) fn of_tenant(tenant: &TenantId) -> Item {
    keyed(&tenant_partition(tenant), TENANT_SORT)
}

/// Both halves of an item's key.
pub(in crate::dynamodb) fn key(item: &mut Item) -> Result<(String, String), Damage> {
    let mut fields = Fields::of(item);
    Ok((fields.text(PK)?, fields.text(SK)?))
}

pub(in crate::dynamodb) fn state(boost: &Boost) -> AttributeValue {
    text(match boost.state {
        State::Active(_) => ACTIVE,
        State::Ended => ENDED,
    })
}

pub(in crate::dynamodb) fn encode_boost(key: &BoostKey, boost: &Boost) -> Item {
    let mut item = of_boost(key);
    let mut set = |name: &str, value: AttributeValue| {
        item.insert(name.to_owned(), value);
    };
    set(STATE, state(boost));
    set(LAST_UPDATED, signed(boost.last_updated.as_ms()));
    set(DIGEST, digest(boost.rank().digest));
    if let State::Active(Terms { score, schedule }) = &boost.state {
        let digits = score.get().to_string();
        let reaches = NUMBERS.contains(&score.get());
        set("boost_score", if reaches { AttributeValue::N(digits) } else { AttributeValue::S(digits) });
        set("days_of_week", texts(schedule.days().days().map(Day::as_str)));
        set(
            "time_slots",
            match schedule.slots() {
                [] => texts([ALL_DAY]),
                slots => texts(slots.iter().map(SlotName::as_str)),
            },
        );
        if let Some(starts_at) = schedule.window().starts_at {
            set("starts_at", signed(starts_at.as_ms()));
        }
        if let Some(ends_at) = schedule.window().ends_at {
            set("ends_at", signed(ends_at.as_ms()));
        }
    }
    item
}

pub(in crate::dynamodb) fn decode_boost(mut item: Item) -> Result<Boost, Damage> {
    let mut fields = Fields::of(&mut item);
    let last_updated = moment(&mut fields, LAST_UPDATED)?;
    let state = match fields.text(STATE)?.as_str() {
        ACTIVE => State::Active(terms(&mut fields)?),
        ENDED => State::Ended,
        _ => return Err(Damage::Wrong(STATE)),
    };
    Ok(Boost { state, last_updated })
}

fn terms(fields: &mut Fields<'_>) -> Result<Terms, Damage> {
    const DAYS: &str = "days_of_week";
    const SLOTS: &str = "time_slots";
    let score = Score::new(fields.float("boost_score")?).map_err(|_| Damage::Wrong("boost_score"))?;
    let days = fields.texts(DAYS)?;
    let days =
        days.iter().map(|day| Day::parse(day)).collect::<Result<Vec<_>, _>>().map_err(|_| Damage::Wrong(DAYS))?;
    let slots = fields.texts(SLOTS)?;
    let slots = slots.iter().map(|name| SlotName::new(name).ok_or(Damage::Wrong(SLOTS))).collect::<Result<_, _>>()?;
    let window = Window { starts_at: maybe_moment(fields, "starts_at")?, ends_at: maybe_moment(fields, "ends_at")? };
    Ok(Terms { score, schedule: Schedule::new(DaySet::new(days), slots, window) })
}

fn moment(fields: &mut Fields<'_>, name: &'static str) -> Result<Moment, Damage> {
    Moment::from_ms(fields.signed(name)?).map_err(|_| Damage::Wrong(name))
}

fn maybe_moment(fields: &mut Fields<'_>, name: &'static str) -> Result<Option<Moment>, Damage> {
    if fields.has(name) { moment(fields, name).map(Some) } else { Ok(None) }
}

pub(in crate::dynamodb) fn encode_market(tenant: &TenantId, record: &MarketRecord) -> Item {
    let mut item = of_tenant(tenant);
    let time = |time: TimeOfDay| text(&time.to_string());
    let slot = |slot: Slot| AttributeValue::L(vec![time(slot.start()), time(slot.end())]);
    let slots = record.market.slots().map(|(name, one)| (name.as_str().to_owned(), slot(one))).collect();
    item.insert(REVISION.into(), number(record.revision));
    item.insert("model".into(), text(record.market.model().as_str()));
    item.insert("time_zone".into(), text(record.market.time_zone()));
    item.insert("time_slots".into(), AttributeValue::M(slots));
    item
}

pub(in crate::dynamodb) fn decode_market(mut item: Item) -> Result<MarketRecord, Damage> {
    const SLOTS: &str = "time_slots";
    let mut fields = Fields::of(&mut item);
    let model = match fields.text("model")?.as_str() {
        "wildcard" => MarketModel::Wildcard,
        "zoned" => MarketModel::Zoned,
        _ => return Err(Damage::Wrong("model")),
    };
    let zone = fields.text("time_zone")?;
    let slots = fields.map(SLOTS)?;
    let slots = slots.iter().map(|(name, value)| Some((name.as_str(), slot(value)?)));
    let slots = slots.collect::<Option<Vec<_>>>().ok_or(Damage::Wrong(SLOTS))?;
    Ok(MarketRecord { market: Market::new(model, &zone, slots)?, revision: fields.number(REVISION)? })
}

fn slot(value: &AttributeValue) -> Option<Slot> {
    let time = |value: &AttributeValue| TimeOfDay::parse(value.as_s().ok()?).ok();
    match value.as_l().ok()?.as_slice() {
        [start, end] => Slot::new(time(start)?, time(end)?).ok(),
        _ => None,
    }
}

pub(in crate::dynamodb) fn encode_letter(mut item: Item, number_: LetterNo, letter: &DeadLetter) -> Item {
    item.insert(NUMBER.into(), number(number_.0));
    item.insert("received_at".into(), signed(letter.received_at.as_ms()));
    item.insert("reason".into(), text(&letter.reason));
    item.insert("event".into(), text(&letter.event));
    item.insert("cut".into(), AttributeValue::Bool(letter.cut));
    item
}

pub(in crate::dynamodb) fn decode_letter(mut item: Item) -> Result<(LetterNo, DeadLetter), Damage> {
    let mut fields = Fields::of(&mut item);
    let letter = DeadLetter {
        received_at: moment(&mut fields, "received_at")?,
        reason: fields.text("reason")?,
        event: fields.text("event")?,
        cut: fields.flag("cut")?,
    };
    Ok((LetterNo(fields.number(NUMBER)?), letter))
}

/// The number that a counter has come to.
pub(in crate::dynamodb) fn counted(mut item: Item) -> Result<u64, Damage> {
    Fields::of(&mut item).number(NUMBER)
}

#[cfg(test)]
mod tests {
    use saltern_core::campaigns::Area;
    use saltern_core::ids::PartnerId;

    use super::*;

    fn boost(score: f64) -> (BoostKey, Boost) {
        let (tenant, partner) = (TenantId::new("de").unwrap(), PartnerId::new("p").unwrap());
        let slots = vec![SlotName::new("lunch").unwrap()];
        let window = Window { starts_at: None, ends_at: Some(Moment::from_ms(9).unwrap()) };
        let schedule = Schedule::new(DaySet::new([Day::Monday]), slots, window);
        let terms = Terms { score: Score::new(score).unwrap(), schedule };
        let boost = Boost { state: State::Active(terms), last_updated: Moment::from_ms(7).unwrap() };
        (BoostKey::new(&tenant, &Area::Wildcard, &partner), boost)
    }

    /// Names and types are in people's tables.
    #[test]
    fn boosts_are_readable_items() {
        let (key, boost) = boost(1.5);
        let item = encode_boost(&key, &boost);
        let expected = Item::from(
            [
                (PK, text("de#*")),
                (SK, text("p")),
                ("state", text("active")),
                ("last_updated", signed(7)),
                ("digest", digest(boost.rank().digest)),
                ("boost_score", AttributeValue::N("1.5".into())),
                ("days_of_week", texts(["monday"])),
                ("time_slots", texts(["lunch"])),
                ("ends_at", signed(9)),
            ]
            .map(|(name, value)| (name.to_owned(), value)),
        );
        assert_eq!(item, expected);
        assert_eq!(decode_boost(item), Ok(boost));
    }

    #[test]
    fn what_is_missing_or_wrong_is_damage() {
        let (key, boost) = boost(1.5);
        let item = encode_boost(&key, &boost);
        for name in ["state", "last_updated", "boost_score", "days_of_week", "time_slots"] {
            let mut without = item.clone();
            without.remove(name);
            assert_eq!(decode_boost(without), Err(Damage::Missing(name)));
            let mut wrong = item.clone();
            wrong.insert(name.to_owned(), AttributeValue::Null(true));
            assert_eq!(decode_boost(wrong), Err(Damage::Wrong(name)));
        }
    }

    #[test]
    fn scores_beyond_dynamodb_come_back() {
        for score in [f64::MAX, f64::MIN_POSITIVE, 1e120, 1e-120, 0.1 + 0.2] {
            let (key, boost) = boost(score);
            assert_eq!(decode_boost(encode_boost(&key, &boost)), Ok(boost));
        }
    }
}
