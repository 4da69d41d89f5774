//! Times of day that have a name in a market.

use std::borrow::Borrow;
use std::fmt;

use smol_str::SmolStr;

use crate::limits::SLOT_NAME_BYTES_MAX;

/// The slot that every market has: from midnight to midnight.
pub const ALL_DAY: &str = "all-day";

const MINUTES_PER_DAY: u16 = 24 * 60;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    #[error("{0:?} is not a time of day such as \"11:00\"")]
    Time(String),
    #[error("starts and ends at {0}; for a whole day there is {ALL_DAY}")]
    Empty(TimeOfDay),
    #[error("starts at 24:00, which is the 00:00 of the next day")]
    StartsAtEnd,
}

/// The name of a slot: 1 to 64 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotName(SmolStr);

impl SlotName {
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (1..=SLOT_NAME_BYTES_MAX).contains(&text.len()).then(|| Self(SmolStr::new(text)))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SlotName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SlotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A time on the wall clock, to the minute. 24:00 is the end of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// `HH:MM`, from `00:00` to `24:00`.
    pub fn parse(text: &str) -> Result<Self, SlotError> {
        let digits =
            |text: &str| (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok());
        let time = text.split_once(':').and_then(|(h, m)| Some((digits(h)??, digits(m)??)));
        let time =
            time.filter(|(_, minute): &(u16, u16)| *minute < 60).and_then(|(h, m)| Self::from_minutes(h * 60 + m));
        time.ok_or_else(|| SlotError::Time(text.chars().take(40).collect()))
    }

    /// Minutes since midnight.
    #[must_use]
    pub fn from_minutes(minutes: u16) -> Option<Self> {
        (minutes <= MINUTES_PER_DAY).then_some(Self(minutes))
    }

    #[must_use]
    pub const fn minutes(self) -> u16 {
        self.0
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// From a time up to, not including, another. One that ends no later than it starts goes on into the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    start: TimeOfDay,
    end: TimeOfDay,
}

impl Slot {
    pub fn new(start: TimeOfDay, end: TimeOfDay) -> Result<Self, SlotError> {
        if start == end {
            return Err(SlotError::Empty(start));
        }
        if start.0 == MINUTES_PER_DAY {
            return Err(SlotError::StartsAtEnd);
        }
        Ok(Self { start, end })
    }

    #[must_use]
    pub const fn start(self) -> TimeOfDay {
        self.start
    }

    #[must_use]
    pub const fn end(self) -> TimeOfDay {
        self.end
    }

    /// Whether it holds this minute on the day that it starts on.
    pub(super) fn holds_today(self, minute: u16) -> bool {
        minute >= self.start.0 && (minute < self.end.0 || self.is_over_midnight())
    }

    /// Whether it still holds this minute on the day after.
    pub(super) fn holds_from_yesterday(self, minute: u16) -> bool {
        self.is_over_midnight() && minute < self.end.0
    }

    fn is_over_midnight(self) -> bool {
        self.end < self.start
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn time(text: &str) -> TimeOfDay {
        TimeOfDay::parse(text).unwrap()
    }

    #[rstest]
    #[case("00:00", 0)]
    #[case("09:05", 545)]
    #[case("23:59", 1_439)]
    #[case("24:00", 1_440)]
    fn times_are_read_and_written(#[case] text: &str, #[case] minutes: u16) {
        assert_eq!(time(text).minutes(), minutes);
        assert_eq!(time(text).to_string(), text);
    }

    #[rstest]
    #[case("24:01")]
    #[case("25:00")]
    #[case("12:60")]
    #[case("9:00")]
    #[case("+9:00")]
    #[case("09:00:00")]
    #[case("0900")]
    #[case("")]
    #[case("٠٩:٠٠")]
    fn what_is_no_time_is_refused(#[case] text: &str) {
        assert_eq!(TimeOfDay::parse(text), Err(SlotError::Time(text.into())));
    }

    #[test]
    fn a_slot_has_a_length() {
        assert_eq!(Slot::new(time("11:00"), time("11:00")), Err(SlotError::Empty(time("11:00"))));
        assert_eq!(Slot::new(time("24:00"), time("11:00")), Err(SlotError::StartsAtEnd));
        assert!(Slot::new(time("00:00"), time("24:00")).is_ok());
    }

    #[rstest]
    #[case("11:00", "15:00", &[(659, false), (660, true), (899, true), (900, false)], &[])]
    #[case("22:00", "02:00", &[(0, false), (1_319, false), (1_320, true), (1_439, true)], &[0, 119])]
    #[case("18:00", "00:00", &[(1_079, false), (1_439, true)], &[])]
    #[case("18:00", "24:00", &[(1_079, false), (1_439, true)], &[])]
    fn slots_hold_their_minutes(
        #[case] start: &str,
        #[case] end: &str,
        #[case] today: &[(u16, bool)],
        #[case] next_day: &[u16],
    ) {
        let slot = Slot::new(time(start), time(end)).unwrap();
        for (minute, held) in today {
            assert_eq!(slot.holds_today(*minute), *held, "{minute}");
        }
        let next_day_all = (0..1_440).filter(|minute| slot.holds_from_yesterday(*minute)).collect::<Vec<_>>();
        assert_eq!((next_day_all.first(), next_day_all.last()), (next_day.first(), next_day.last()));
    }
}
