/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Day {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown day {0:?}; days are monday to sunday")]
pub struct UnknownDay(pub String);

impl Day {
    pub const ALL: [Self; 7] =
        [Self::Monday, Self::Tuesday, Self::Wednesday, Self::Thursday, Self::Friday, Self::Saturday, Self::Sunday];

    /// In any case: `monday`, `Monday`.
    pub fn parse(text: &str) -> Result<Self, UnknownDay> {
        let day = Self::ALL.into_iter().find(|day| day.as_str().eq_ignore_ascii_case(text));
        day.ok_or_else(|| UnknownDay(text.chars().take(40).collect()))
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Monday => "monday",
            Self::Tuesday => "tuesday",
            Self::Wednesday => "wednesday",
            Self::Thursday => "thursday",
            Self::Friday => "friday",
            Self::Saturday => "saturday",
            Self::Sunday => "sunday",
        }
    }

    /// The day before, on the calendar.
    #[must_use]
    pub const fn yesterday(self) -> Self {
        Self::ALL[(self as usize + 6) % 7]
    }
}

/// Days of the week, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DaySet(u8);

impl DaySet {
    pub const EVERY_DAY: Self = Self(0b111_1111);

    /// No day at all means every day.
    #[must_use]
    pub fn new(days: impl IntoIterator<Item = Day>) -> Self {
        let bits = days.into_iter().fold(0, |bits, day| bits | 1 << day as u8);
        if bits == 0 { Self::EVERY_DAY } else { Self(bits) }
    }

    /// Monday is the lowest bit. `None` without a day, or with an eighth.
    #[must_use]
    pub fn from_bits(bits: u8) -> Option<Self> {
        (1..=Self::EVERY_DAY.0).contains(&bits).then_some(Self(bits))
    }

    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    #[must_use]
    pub const fn contains(self, day: Day) -> bool {
        self.0 & 1 << day as u8 != 0
    }

    /// From Monday on.
    pub fn days(self) -> impl Iterator<Item = Day> {
        Day::ALL.into_iter().filter(move |day| self.contains(*day))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_in_any_case() {
        for day in Day::ALL {
            assert_eq!(Day::parse(day.as_str()), Ok(day));
            assert_eq!(Day::parse(&day.as_str().to_uppercase()), Ok(day));
        }
        for bad in ["", "mon", "mondays", " monday", "Montag", "montag"] {
            assert_eq!(Day::parse(bad), Err(UnknownDay(bad.into())));
        }
        assert_eq!((Day::Monday.yesterday(), Day::Sunday.yesterday()), (Day::Sunday, Day::Saturday));
    }

    #[test]
    fn no_day_is_every_day() {
        assert_eq!(DaySet::new([]), DaySet::EVERY_DAY);
        let weekend = DaySet::new([Day::Sunday, Day::Saturday, Day::Sunday]);
        assert_eq!(weekend.days().collect::<Vec<_>>(), [Day::Saturday, Day::Sunday]);
        assert_eq!(DaySet::from_bits(weekend.bits()), Some(weekend));
        assert_eq!((DaySet::from_bits(0), DaySet::from_bits(128)), (None, None));
    }
}
