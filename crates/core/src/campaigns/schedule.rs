//! When a boost counts.

use super::days::DaySet;
use super::market::{LocalTime, SlotOn};
use super::moment::Moment;
use super::slot::{ALL_DAY, SlotName};

/// From a moment up to, not including, another; each may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Window {
    pub starts_at: Option<Moment>,
    pub ends_at: Option<Moment>,
}

impl Window {
    fn holds(self, moment: Moment) -> bool {
        self.starts_at.is_none_or(|start| start <= moment) && self.ends_at.is_none_or(|end| moment < end)
    }
}

/// Days and slots by the market's clocks, within a window by everyone's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    days: DaySet,
    /// By name, each once; none means all day.
    slots: Vec<SlotName>,
    window: Window,
}

impl Schedule {
    /// Slots that include `all-day` come to all day, and so do none: what means the same is the same schedule.
    #[must_use]
    pub fn new(days: DaySet, mut slots: Vec<SlotName>, window: Window) -> Self {
        if slots.iter().any(|slot| slot.as_str() == ALL_DAY) {
            slots.clear();
        }
        slots.sort_unstable();
        slots.dedup();
        Self { days, slots, window }
    }

    #[must_use]
    pub fn days(&self) -> DaySet {
        self.days
    }

    /// Empty if it is all day.
    #[must_use]
    pub fn slots(&self) -> &[SlotName] {
        &self.slots
    }

    #[must_use]
    pub fn window(&self) -> Window {
        self.window
    }

    /// Goes by what the clock on the wall shows. An hour that is shown twice in autumn counts twice, and one that is left
    /// out in spring does not count. A night belongs to the day that it starts on: where a zone leaves out a day, the night
    /// before it goes on into the day after it, and a night of the day that never was never starts.
    ///
    /// What a slot means is what the market says now. One that it no longer has is never active: the event was right when
    /// it came, so this is no error.
    #[must_use]
    pub fn is_active(&self, now: &LocalTime<'_>) -> bool {
        if !self.window.holds(now.moment) {
            return false;
        }
        let (today, yesterday) = (self.days.contains(now.day), self.days.contains(now.yesterday));
        if self.slots.is_empty() {
            return today;
        }
        let holds_now = |on: &&SlotOn<'_>| (today && on.today) || (yesterday && on.from_yesterday);
        // As texts, most of which differ in their length already.
        let is_named = |on: &SlotOn<'_>| self.slots.iter().any(|slot| slot.as_str() == on.name.as_str());
        now.slots.iter().filter(holds_now).any(is_named)
    }
}

#[cfg(test)]
mod tests;
