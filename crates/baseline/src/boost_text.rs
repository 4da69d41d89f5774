//! A boost as a short text: for stores that keep nothing but texts.

use std::borrow::Cow;

use saltern_core::campaigns::{Boost, DaySet, Moment, Schedule, Score, SlotName, State, Terms, Window};
use serde::{Deserialize, Serialize};

/// An array of values, since names would be most of it.
#[derive(Serialize, Deserialize)]
struct Fields<'a>(
    i64,
    /// None if it is over.
    #[serde(borrow)]
    Option<Active<'a>>,
);

#[derive(Serialize, Deserialize)]
struct Active<'a>(f64, u8, Option<i64>, Option<i64>, #[serde(borrow)] Vec<Cow<'a, str>>);

#[must_use]
pub fn encode(boost: &Boost) -> String {
    let active = match &boost.state {
        State::Ended => None,
        State::Active(Terms { score, schedule }) => {
            let (window, slots) = (schedule.window(), schedule.slots().iter().map(|slot| slot.as_str().into()));
            let (starts_at, ends_at) = (window.starts_at.map(Moment::as_ms), window.ends_at.map(Moment::as_ms));
            Some(Active(score.get(), schedule.days().bits(), starts_at, ends_at, slots.collect()))
        }
    };
    // Numbers and texts: nothing that JSON could refuse.
    serde_json::to_string(&Fields(boost.last_updated.as_ms(), active)).unwrap_or_default()
}

/// `None` if no boost was written like this.
#[must_use]
pub fn decode(text: &str) -> Option<Boost> {
    let Fields(last_updated, active) = serde_json::from_str(text).ok()?;
    let state = match active {
        None => State::Ended,
        Some(Active(score, days, starts_at, ends_at, slots)) => {
            let window = Window { starts_at: moment(starts_at)?, ends_at: moment(ends_at)? };
            let slots = slots.iter().map(|slot| SlotName::new(slot)).collect::<Option<_>>()?;
            let schedule = Schedule::new(DaySet::from_bits(days)?, slots, window);
            State::Active(Terms { score: Score::new(score).ok()?, schedule })
        }
    };
    Some(Boost { state, last_updated: Moment::from_ms(last_updated).ok()? })
}

/// Absent is fine; beyond the calendar is not.
fn moment(ms: Option<i64>) -> Option<Option<Moment>> {
    ms.map(|ms| Moment::from_ms(ms).ok()).map_or(Some(None), |moment| moment.map(Some))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::markets::events;

    #[test]
    fn boosts_come_back() {
        for (_, boost) in events().iter().flat_map(|event| event.boosts().collect::<Vec<_>>()) {
            assert_eq!(decode(&encode(&boost)), Some(boost));
        }
        for text in ["", "[]", "[7]", "[7,[0.0,127,null,null,[]]]", "[7,[1.0,0,null,null,[]]]", "{}"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
