use std::fmt;

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp};

use super::rfc3339;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    #[error("{0:?} is not a time with its offset as RFC 3339 writes it, such as \"2026-11-16T12:30:00+01:00\"")]
    Text(String),
    #[error("{0:?} is, in UTC, before the year 0000 or beyond the year 9999")]
    TextRange(String),
    #[error("{0} is before the year 0000 or beyond the year 9999")]
    Range(i64),
}

/// A point in time, in milliseconds since 1970. All of RFC 3339's years, 0000 to 9999, and no others: each can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    /// `0000-01-01T00:00:00Z`
    pub const MIN: Self = Self(-62_167_219_200_000);
    pub const EPOCH: Self = Self(0);
    /// `9999-12-31T23:59:59.999Z`
    pub const MAX: Self = Self(253_402_300_799_999);

    pub fn from_ms(ms: i64) -> Result<Self, MomentError> {
        if (Self::MIN.0..=Self::MAX.0).contains(&ms) { Ok(Self(ms)) } else { Err(MomentError::Range(ms)) }
    }

    /// RFC 3339: a date, a time and an offset. Anything finer than a millisecond is cut off.
    pub fn parse(text: &str) -> Result<Self, MomentError> {
        let shown = || text.chars().take(60).collect();
        let ms = rfc3339::parse(text).ok_or_else(|| MomentError::Text(shown()))?;
        Self::from_ms(ms).map_err(|_| MomentError::TextRange(shown()))
    }

    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// The same time, or the nearest that the time zone library knows: its last one is a day before ours.
    pub(super) fn timestamp(self) -> Timestamp {
        let (least, greatest) = (Timestamp::MIN.as_millisecond(), Timestamp::MAX.as_millisecond());
        Timestamp::from_millisecond(self.0.clamp(least, greatest)).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

const EPOCH: DateTime = Date::constant(1970, 1, 1).at(0, 0, 0, 0);

/// As RFC 3339, in UTC.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let civil = EPOCH.saturating_add(SignedDuration::from_millis(self.0));
        write!(f, "{civil}Z")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("1970-01-01T00:00:00Z", 0)]
    #[case("2026-11-16T12:30:00+01:00", 1_794_828_600_000)]
    #[case("2026-11-16T11:30:00.123999Z", 1_794_828_600_123)]
    #[case("1969-12-31T23:59:59.9999Z", -1)]
    fn offsets_count(#[case] text: &str, #[case] ms: i64) {
        assert_eq!(Moment::parse(text), Moment::from_ms(ms));
    }

    #[test]
    fn what_is_no_moment_is_refused() {
        for bad in ["", "now", "2026-11-16", "2026-11-16T12:30:00", "2026-13-01T00:00:00Z", "1763200000000"] {
            assert_eq!(Moment::parse(bad), Err(MomentError::Text(bad.into())), "{bad}");
        }
        assert_eq!(Moment::from_ms(i64::MAX), Err(MomentError::Range(i64::MAX)));
        assert_eq!(Moment::from_ms(1_794_828_600_000).unwrap().to_string(), "2026-11-16T11:30:00Z");
    }

    /// The years that RFC 3339 can write, to the last millisecond, in UTC. What an offset moves beyond them cannot be
    /// written in UTC, and the error says so.
    #[test]
    fn all_years_of_rfc_3339_are_moments() {
        for (text, moment) in [
            ("0000-01-01T00:00:00Z", Moment::MIN),
            ("9999-12-31T23:59:59.999Z", Moment::MAX),
            ("9999-12-31T23:59:59.999999999999Z", Moment::MAX),
            ("9999-12-31T00:00:59.999-23:59", Moment::MAX),
        ] {
            assert_eq!(Moment::parse(text), Ok(moment), "{text}");
        }
        assert_eq!(Moment::MIN.to_string(), "0000-01-01T00:00:00Z");
        assert_eq!(Moment::MAX.to_string(), "9999-12-31T23:59:59.999Z");
        for beyond in ["0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"] {
            assert_eq!(Moment::parse(beyond), Err(MomentError::TextRange(beyond.into())));
        }
        for beyond in [Moment::MIN.as_ms() - 1, Moment::MAX.as_ms() + 1] {
            assert_eq!(Moment::from_ms(beyond), Err(MomentError::Range(beyond)));
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_is_read_again(ms in Moment::MIN.as_ms()..=Moment::MAX.as_ms()) {
            let moment = Moment::from_ms(ms).unwrap();
            prop_assert_eq!(Moment::parse(&moment.to_string()), Ok(moment));
        }

        /// Any offset, any number of decimals: the same point in time.
        #[test]
        fn offsets_and_decimals_are_read(
            ms in Moment::MIN.as_ms() + 86_400_000..=Moment::MAX.as_ms() - 86_400_000,
            minutes in -1_439..=1_439_i64,
            decimals in "[0-9]{0,20}",
        ) {
            let moment = Moment::from_ms(ms).unwrap();
            let local = Moment::from_ms(ms.div_euclid(1_000) * 1_000 + minutes * 60_000).unwrap().to_string();
            let sign = if minutes < 0 { '-' } else { '+' };
            let offset = format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60);
            let text = format!("{}.{:03}{decimals}{offset}", local.trim_end_matches('Z'), ms.rem_euclid(1_000));
            prop_assert_eq!(Moment::parse(&text), Ok(moment), "{}", text);
        }

        /// Where the time zone library reads RFC 3339, it reads the same.
        #[test]
        fn the_library_agrees(ms in -62_000_000_000_000..253_000_000_000_000_i64) {
            let text = Timestamp::from_millisecond(ms).unwrap().to_string();
            prop_assert_eq!(Moment::parse(&text).map(Moment::as_ms), Ok(ms));
        }
    }
}
