//! A market: which areas it knows, where its clocks hang, and what its slots are called.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use super::days::Day;
use super::moment::Moment;
use super::slot::{ALL_DAY, Slot, SlotName};
use super::zones::{ZoneDatabase, zones};
use crate::limits::{MARKET_SLOTS_MAX, SLOT_NAME_BYTES_MAX};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarketError {
    #[error("time_zone {0:?} is not known; take a name of the IANA database such as Europe/Berlin")]
    TimeZone(String),
    #[error("time_slots may not define {ALL_DAY}, which every market has")]
    AllDay,
    #[error("time_slots holds a name of {0} bytes; 1 to {SLOT_NAME_BYTES_MAX} are allowed")]
    SlotName(usize),
    #[error("time_slots holds {0}; at most {MARKET_SLOTS_MAX} are allowed")]
    SlotCount(usize),
}

/// Which areas campaigns of a market may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarketModel {
    /// Only `*`.
    Wildcard,
    /// Districts, and `*` for all of them.
    Zoned,
}

impl MarketModel {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wildcard => "wildcard",
            Self::Zoned => "zoned",
        }
    }
}

/// A tenant's market.
#[derive(Debug, Clone, PartialEq)]
pub struct Market {
    model: MarketModel,
    zone_name: String,
    zone: TimeZone,
    slots: BTreeMap<SlotName, Slot>,
}

impl Market {
    /// By the time zone database that this process goes by.
    pub fn new<'a>(
        model: MarketModel,
        time_zone: &str,
        slots: impl IntoIterator<Item = (&'a str, Slot)>,
    ) -> Result<Self, MarketError> {
        Self::in_zones(zones(), model, time_zone, slots)
    }

    pub fn in_zones<'a>(
        zones: &ZoneDatabase,
        model: MarketModel,
        time_zone: &str,
        slots: impl IntoIterator<Item = (&'a str, Slot)>,
    ) -> Result<Self, MarketError> {
        let unknown = || MarketError::TimeZone(time_zone.chars().take(60).collect());
        let zone = zones.get(time_zone).ok_or_else(unknown)?;
        let zone_name = zone.iana_name().ok_or_else(unknown)?.to_owned();
        let named = |(name, slot): (&str, Slot)| match SlotName::new(name) {
            _ if name == ALL_DAY => Err(MarketError::AllDay),
            None => Err(MarketError::SlotName(name.len())),
            Some(name) => Ok((name, slot)),
        };
        let slots = slots.into_iter().map(named).collect::<Result<BTreeMap<_, _>, _>>()?;
        if slots.len() > MARKET_SLOTS_MAX {
            return Err(MarketError::SlotCount(slots.len()));
        }
        Ok(Self { model, zone_name, zone, slots })
    }

    #[must_use]
    pub fn model(&self) -> MarketModel {
        self.model
    }

    /// The name of the time zone, as the database spells it.
    #[must_use]
    pub fn time_zone(&self) -> &str {
        &self.zone_name
    }

    /// By name.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = (&SlotName, Slot)> {
        self.slots.iter().map(|(name, slot)| (name, *slot))
    }

    #[must_use]
    pub fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.get(name).copied()
    }

    /// What the market's clocks and calendars show.
    #[must_use]
    pub fn local_time(&self, moment: Moment) -> LocalTime<'_> {
        let local_ms = self.local_ms(moment);
        let (day, slots) = (day(local_ms), self.slots_on(minute(local_ms)));
        // Hardly any lookup is made in a slot that began the day before.
        let is_night = slots.iter().any(|on| on.from_yesterday);
        let yesterday = is_night.then(|| self.day_before(moment)).flatten().unwrap_or(day.yesterday());
        LocalTime { moment, day, yesterday, slots }
    }

    fn local_ms(&self, moment: Moment) -> i64 {
        moment.as_ms() + i64::from(self.zone.to_offset(moment.timestamp()).seconds()) * 1_000
    }

    /// The minute of the day.
    #[cfg(test)]
    pub(super) fn minute(&self, moment: Moment) -> u16 {
        minute(self.local_ms(moment))
    }

    /// The day before this one, as the market lived it: a zone that moves across the date line leaves a day out.
    fn day_before(&self, moment: Moment) -> Option<Day> {
        let today = moment.timestamp().to_zoned(self.zone.clone()).start_of_day().ok()?;
        let before = today.timestamp().as_millisecond().checked_sub(1)?;
        Some(day(self.local_ms(Moment::from_ms(before).ok()?)))
    }

    fn slots_on(&self, minute: u16) -> Vec<SlotOn<'_>> {
        let on = self.slots.iter().map(|(name, slot)| SlotOn {
            name,
            today: slot.holds_today(minute),
            from_yesterday: slot.holds_from_yesterday(minute),
        });
        on.filter(|on| on.today || on.from_yesterday).collect()
    }
}

/// A moment as one sees it in a market.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalTime<'a> {
    pub(super) moment: Moment,
    pub(super) day: Day,
    /// The day that came before it here.
    pub(super) yesterday: Day,
    pub(super) slots: Vec<SlotOn<'a>>,
}

/// A slot that holds this minute, by the clock on the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotOn<'a> {
    pub(super) name: &'a SlotName,
    /// On the day that it starts on.
    pub(super) today: bool,
    /// On the day after.
    pub(super) from_yesterday: bool,
}

fn minute(local_ms: i64) -> u16 {
    u16::try_from(local_ms.rem_euclid(DAY_MS) / MINUTE_MS).unwrap_or(0)
}

/// Of the week; 1970 began on a Thursday.
fn day(local_ms: i64) -> Day {
    let since_monday = local_ms.div_euclid(DAY_MS) + 3;
    Day::ALL[usize::try_from(since_monday.rem_euclid(7)).unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::super::slot::TimeOfDay;
    use super::*;

    fn slot(start: &str, end: &str) -> Slot {
        Slot::new(TimeOfDay::parse(start).unwrap(), TimeOfDay::parse(end).unwrap()).unwrap()
    }

    fn market(zone: &str, slots: &[(&str, Slot)]) -> Result<Market, MarketError> {
        Market::new(MarketModel::Zoned, zone, slots.iter().copied())
    }

    #[test]
    fn zones_are_those_of_the_database() {
        for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "UTC", "Etc/GMT+12"] {
            assert_eq!(market(zone, &[]).unwrap().time_zone(), zone);
        }
        assert_eq!(market("europe/berlin", &[]).unwrap().time_zone(), "Europe/Berlin");
        for bad in ["", "Berlin", "CEST", "+01:00", "Europe/../Berlin", "Europe/Berlin "] {
            assert_eq!(market(bad, &[]), Err(MarketError::TimeZone(bad.into())), "{bad}");
        }
    }

    #[test]
    fn slots_have_names_of_their_own() {
        let lunch = slot("11:00", "15:00");
        assert_eq!(market("UTC", &[("lunch", lunch)]).unwrap().slot("lunch"), Some(lunch));
        assert_eq!(market("UTC", &[(ALL_DAY, lunch)]), Err(MarketError::AllDay));
        assert_eq!(market("UTC", &[("", lunch)]), Err(MarketError::SlotName(0)));
        assert_eq!(market("UTC", &[(&"x".repeat(65), lunch)]), Err(MarketError::SlotName(65)));
        let names: Vec<_> = (0..=MARKET_SLOTS_MAX).map(|i| i.to_string()).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), lunch)).collect();
        assert!(market("UTC", &many[1..]).is_ok());
        assert_eq!(market("UTC", &many), Err(MarketError::SlotCount(101)));
    }
}
