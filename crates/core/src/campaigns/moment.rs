use std::fmt;

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    #[error("{0:?} is not a time with its offset such as \"2026-11-16T12:30:00+01:00\"")]
    Text(String),
    #[error("{0} is beyond the year 9999")]
    Range(i64),
}

/// A point in time, in milliseconds since 1970, within what calendars can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(i64);

impl Moment {
    pub const EPOCH: Self = Self(0);

    pub fn from_ms(ms: i64) -> Result<Self, MomentError> {
        Timestamp::from_millisecond(ms).map(|_| Self(ms)).map_err(|_| MomentError::Range(ms))
    }

    /// RFC 3339: a date, a time and an offset. Anything finer than a millisecond is cut off.
    pub fn parse(text: &str) -> Result<Self, MomentError> {
        let wrong = || MomentError::Text(text.chars().take(60).collect());
        let moment: Timestamp = text.parse().map_err(|_| wrong())?;
        Self::from_ms(moment.as_nanosecond().div_euclid(1_000_000).try_into().map_err(|_| wrong())?)
    }

    #[must_use]
    pub const fn as_ms(self) -> i64 {
        self.0
    }

    /// Within range by construction.
    pub(super) fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// As RFC 3339, in UTC.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

#[cfg(test)]
mod tests {
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
}
