//! Events as they come, and what is wrong with those that are turned away.

use std::collections::HashSet;

use super::area::Area;
use super::boost::{Boost, Score, ScoreError, State, Terms};
use super::days::{Day, DaySet, UnknownDay};
use super::key::BoostKey;
use super::market::{Market, MarketModel};
use super::moment::{Moment, MomentError};
use super::schedule::{Schedule, Window};
use super::slot::{ALL_DAY, SlotName};
use crate::ids::{IdError, PartnerId, TenantId};
use crate::limits::{CAMPAIGN_TIME_MIN_MS, EVENT_AHEAD_MAX_MS, EVENT_AREAS_MAX};

/// An event as it was sent, before anything about it is known to be right.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawEvent {
    pub tenant: String,
    pub partner_id: String,
    pub delivery_areas: Vec<String>,
    pub ended_areas: Vec<String>,
    pub boost_score: Option<f64>,
    pub days_of_week: Vec<String>,
    pub time_slots: Vec<String>,
    pub starts_at_ms: Option<i64>,
    pub ends_at_ms: Option<i64>,
    pub last_updated_ms: i64,
}

/// Why an event is turned away. For people.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Rejection {
    #[error("{field} {error}")]
    Id { field: &'static str, error: IdError },
    #[error("names no area: delivery_areas and ended_areas are both empty")]
    NoArea,
    #[error("names {0} areas, at most {EVENT_AREAS_MAX} are allowed")]
    TooManyAreas(usize),
    #[error("names the area {0:?} more than once")]
    AreaTwice(String),
    #[error("names the district {0:?}, but the market knows only `*`")]
    DistrictInWildcardMarket(String),
    #[error("boost_score is needed where delivery_areas are named")]
    NoScore,
    #[error("boost_score {0}")]
    Score(#[from] ScoreError),
    #[error("days_of_week holds an {0}")]
    Day(#[from] UnknownDay),
    #[error("time_slots holds {0:?}, which the market does not define")]
    UnknownSlot(String),
    #[error("{field} {error}")]
    Moment { field: &'static str, error: MomentError },
    #[error("{field} {moment} is before the year 2000; it must be in milliseconds since 1970")]
    TooOld { field: &'static str, moment: Moment },
    #[error("last_updated {0} is more than 5 minutes ahead of this server's clock")]
    Ahead(Moment),
    #[error("ends_at is not after starts_at")]
    EndsBeforeStart,
}

/// The whole truth about a partner in the areas that it lists, and only in those.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    tenant: TenantId,
    partner: PartnerId,
    last_updated: Moment,
    /// `None` if it only ends.
    terms: Option<Terms>,
    delivery_areas: Vec<Area>,
    ended_areas: Vec<Area>,
}

impl Event {
    /// Checks everything that can be wrong, against the market as it is.
    pub fn new(raw: &RawEvent, market: &Market, now: Moment) -> Result<Self, Rejection> {
        let id = |field| move |error| Rejection::Id { field, error };
        let tenant = TenantId::new(&raw.tenant).map_err(id("tenant"))?;
        let partner = PartnerId::new(&raw.partner_id).map_err(id("partner_id"))?;
        let areas = areas(raw, market)?;
        let last_updated = moment("last_updated", raw.last_updated_ms)?;
        if last_updated.as_ms() > now.as_ms().saturating_add(EVENT_AHEAD_MAX_MS) {
            return Err(Rejection::Ahead(last_updated));
        }
        // What an event says is checked even where it only ends: a mistake is better heard of early.
        let schedule = schedule(raw, market)?;
        let score = raw.boost_score.map(Score::new).transpose()?;
        let terms = match score {
            None if !areas.0.is_empty() => return Err(Rejection::NoScore),
            score => score.map(|score| Terms { score, schedule }),
        };
        let (delivery_areas, ended_areas) = areas;
        Ok(Self { tenant, partner, last_updated, terms, delivery_areas, ended_areas })
    }

    #[must_use]
    pub fn area_count(&self) -> usize {
        self.delivery_areas.len() + self.ended_areas.len()
    }

    /// One row for each area.
    pub fn boosts(&self) -> impl Iterator<Item = (BoostKey, Boost)> {
        let boost = |state| Boost { state, last_updated: self.last_updated };
        let active = self.terms.iter().flat_map(move |terms| {
            self.delivery_areas.iter().map(move |area| (area, boost(State::Active(terms.clone()))))
        });
        let ended = self.ended_areas.iter().map(move |area| (area, boost(State::Ended)));
        active.chain(ended).map(|(area, boost)| (BoostKey::new(&self.tenant, area, &self.partner), boost))
    }
}

fn areas(raw: &RawEvent, market: &Market) -> Result<(Vec<Area>, Vec<Area>), Rejection> {
    match raw.delivery_areas.len() + raw.ended_areas.len() {
        0 => return Err(Rejection::NoArea),
        count if count > EVENT_AREAS_MAX => return Err(Rejection::TooManyAreas(count)),
        _ => {}
    }
    let mut seen = HashSet::new();
    let mut list = |field, texts: &[String]| -> Result<Vec<Area>, Rejection> {
        let mut areas = Vec::with_capacity(texts.len());
        for text in texts {
            let area = Area::new(text).map_err(|error| Rejection::Id { field, error })?;
            if market.model() == MarketModel::Wildcard && area != Area::Wildcard {
                return Err(Rejection::DistrictInWildcardMarket(text.clone()));
            }
            if !seen.insert(area.clone()) {
                return Err(Rejection::AreaTwice(text.clone()));
            }
            areas.push(area);
        }
        Ok(areas)
    };
    Ok((list("delivery_areas", &raw.delivery_areas)?, list("ended_areas", &raw.ended_areas)?))
}

fn schedule(raw: &RawEvent, market: &Market) -> Result<Schedule, Rejection> {
    let days = raw.days_of_week.iter().map(|day| Day::parse(day)).collect::<Result<Vec<_>, _>>()?;
    let slot = |name: &String| {
        let known = name == ALL_DAY || market.slot(name).is_some();
        let slot = SlotName::new(name).filter(|_| known);
        slot.ok_or_else(|| Rejection::UnknownSlot(name.chars().take(80).collect()))
    };
    let slots = raw.time_slots.iter().map(slot).collect::<Result<Vec<_>, _>>()?;
    let window = Window {
        starts_at: raw.starts_at_ms.map(|ms| moment("starts_at", ms)).transpose()?,
        ends_at: raw.ends_at_ms.map(|ms| moment("ends_at", ms)).transpose()?,
    };
    match (window.starts_at, window.ends_at) {
        (Some(start), Some(end)) if end <= start => Err(Rejection::EndsBeforeStart),
        _ => Ok(Schedule::new(DaySet::new(days), slots, window)),
    }
}

fn moment(field: &'static str, ms: i64) -> Result<Moment, Rejection> {
    let moment = Moment::from_ms(ms).map_err(|error| Rejection::Moment { field, error })?;
    if ms < CAMPAIGN_TIME_MIN_MS { Err(Rejection::TooOld { field, moment }) } else { Ok(moment) }
}

#[cfg(test)]
mod tests;
