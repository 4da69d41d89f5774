//! Times as RFC 3339 section 5.6 writes them, and nothing else: time libraries also take what ISO 8601 and others allow.

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime};

const EPOCH: DateTime = Date::constant(1970, 1, 1).at(0, 0, 0, 0);
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// Milliseconds since 1970 of `date-time`; `None` if it is none. Decimals beyond the third are cut off.
///
/// Section 5.7 allows the second 60 where a leap second can be: at the end of a month in UTC. Clocks that count
/// milliseconds since 1970 have none, so it is the last millisecond before it.
pub(super) fn parse(text: &str) -> Option<i64> {
    let mut from = Text(text.as_bytes());
    let year = from.number(4)?;
    from.one_of(b"-")?;
    let month = from.number(2)?;
    from.one_of(b"-")?;
    let day = from.number(2)?;
    from.one_of(b"Tt")?;
    let hour = from.below(24)?;
    from.one_of(b":")?;
    let minute = from.below(60)?;
    from.one_of(b":")?;
    let second = from.below(61)?;
    let ms = from.decimals()?;
    let offset_minutes = from.offset()?;
    if !from.0.is_empty() {
        return None;
    }
    let date = Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()?;
    let days: SignedDuration = date.at(0, 0, 0, 0).duration_since(EPOCH);
    let minute_ms = i64::try_from(days.as_millis()).ok()? + (hour * 60 + minute - offset_minutes) * MINUTE_MS;
    if second < 60 {
        return Some(minute_ms + second * 1_000 + ms);
    }
    let next_ms = minute_ms + MINUTE_MS;
    is_start_of_month(next_ms)?.then_some(next_ms - 1)
}

/// Of a month in UTC.
fn is_start_of_month(ms: i64) -> Option<bool> {
    // The month after the last one that can be written down has a start as well.
    let before = EPOCH.checked_add(SignedDuration::from_millis(ms - 1)).ok()?;
    Some(ms.rem_euclid(DAY_MS) == 0 && before.date().last_of_month() == before.date())
}

struct Text<'a>(&'a [u8]);

impl Text<'_> {
    fn one_of(&mut self, allowed: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first().filter(|(first, _)| allowed.contains(first))?;
        self.0 = rest;
        Some(*first)
    }

    /// Exactly so many digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.iter().try_fold(0, |number, digit| Some(number * 10 + i64::from(value(*digit)?)))
    }

    fn below(&mut self, end: i64) -> Option<i64> {
        self.number(2).filter(|number| *number < end)
    }

    /// Milliseconds: of any number of digits, at least one, the first three.
    fn decimals(&mut self) -> Option<i64> {
        if self.one_of(b".").is_none() {
            return Some(0);
        }
        let count = self.0.iter().take_while(|digit| digit.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(count).filter(|_| count > 0)?;
        self.0 = rest;
        let digits = digits.iter().copied().chain(std::iter::repeat(b'0')).take(3);
        digits.into_iter().try_fold(0, |ms, digit| Some(ms * 10 + i64::from(value(digit)?)))
    }

    /// Minutes ahead of UTC. `-00:00` is UTC as seen from nowhere in particular.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.one_of(b"Zz+-")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Some(0),
        };
        let hours = self.below(24)?;
        self.one_of(b":")?;
        Some(sign * (hours * 60 + self.below(60)?))
    }
}

fn value(digit: u8) -> Option<u8> {
    digit.is_ascii_digit().then(|| digit - b'0')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NOON_MS: i64 = 1_794_832_200_000;

    #[rstest]
    #[case::utc("2026-11-16T12:30:00Z", NOON_MS)]
    #[case::small_letters("2026-11-16t12:30:00z", NOON_MS)]
    #[case::nowhere_in_particular("2026-11-16T12:30:00-00:00", NOON_MS)]
    #[case::farthest_east("2026-11-17T12:29:00+23:59", NOON_MS)]
    #[case::farthest_west("2026-11-15T12:31:00-23:59", NOON_MS)]
    #[case::one_decimal("2026-11-16T12:30:00.5Z", NOON_MS + 500)]
    #[case::many_decimals("2026-11-16T12:30:00.00199999999999999999999999999999Z", NOON_MS + 1)]
    #[case::decimals_and_an_offset("2026-11-16T13:30:00.25+01:00", NOON_MS + 250)]
    #[case::leap_day("2028-02-29T00:00:00Z", 1_835_395_200_000)]
    #[case::before_1970("1969-12-31T23:59:59.999Z", -1)]
    #[case::the_last_second("9999-12-31T23:59:59Z", 253_402_300_799_000)]
    #[case::the_first_second("0000-01-01T00:00:00Z", -62_167_219_200_000)]
    // The examples of section 5.8.
    #[case("1985-04-12T23:20:50.52Z", 482_196_050_520)]
    #[case("1996-12-19T16:39:57-08:00", 851_042_397_000)]
    #[case("1990-12-31T23:59:60Z", 662_688_000_000 - 1)]
    #[case("1990-12-31T15:59:60-08:00", 662_688_000_000 - 1)]
    #[case("1937-01-01T12:00:27.87+00:20", -1_041_337_172_130)]
    #[case::leap_second_in_june("2015-06-30T23:59:60.75Z", 1_435_708_800_000 - 1)]
    #[case::leap_second_at_the_end("9999-12-31T23:59:60Z", 253_402_300_799_999)]
    fn times_are_read(#[case] text: &str, #[case] ms: i64) {
        assert_eq!(parse(text), Some(ms));
    }

    #[rstest]
    #[case::basic_format("20261116T123000Z")]
    #[case::basic_time("2026-11-16T123000Z")]
    #[case::hours_alone("2026-11-16T12Z")]
    #[case::no_seconds("2026-11-16T12:30Z")]
    #[case::decimal_minutes("2026-11-16T12:30.5Z")]
    #[case::comma("2026-11-16T12:30:00,5Z")]
    #[case::no_decimals("2026-11-16T12:30:00.Z")]
    #[case::letters_in_decimals("2026-11-16T12:30:00.5x5Z")]
    #[case::offset_of_25_hours("2026-11-16T12:30:00+25:00")]
    #[case::offset_of_24_hours("2026-11-16T12:30:00+24:00")]
    #[case::offset_of_60_minutes("2026-11-16T12:30:00+01:60")]
    #[case::offset_of_hours("2026-11-16T12:30:00+01")]
    #[case::offset_without_a_colon("2026-11-16T12:30:00+0100")]
    #[case::offset_with_seconds("2026-11-16T12:30:00+01:00:00")]
    #[case::minus_sign("2026-11-16T12:30:00\u{2212}01:00")]
    #[case::zone("2026-11-16T12:30:00Z[UTC]")]
    #[case::zone_and_offset("2026-11-16T12:30:00+01:00[Europe/Berlin]")]
    #[case::no_offset("2026-11-16T12:30:00")]
    #[case::two_offsets("2026-11-16T12:30:00ZZ")]
    #[case::space("2026-11-16 12:30:00Z")]
    #[case::space_before(" 2026-11-16T12:30:00Z")]
    #[case::space_behind("2026-11-16T12:30:00Z ")]
    #[case::line("2026-11-16T12:30:00Z\n")]
    #[case::space_before_the_offset("2026-11-16T12:30:00 +01:00")]
    #[case::date_alone("2026-11-16")]
    #[case::time_alone("12:30:00Z")]
    #[case::week("2026-W47-1T12:30:00Z")]
    #[case::day_of_year("2026-320T12:30:00Z")]
    #[case::slashes("2026/11/16T12:30:00Z")]
    #[case::short_year("26-11-16T12:30:00Z")]
    #[case::long_year("12026-11-16T12:30:00Z")]
    #[case::signed_year("+002026-11-16T12:30:00Z")]
    #[case::negative_year("-2026-11-16T12:30:00Z")]
    #[case::short_month("2026-1-16T12:30:00Z")]
    #[case::short_hour("2026-11-16T2:30:00Z")]
    #[case::month_0("2026-00-16T12:30:00Z")]
    #[case::month_13("2026-13-16T12:30:00Z")]
    #[case::day_0("2026-11-00T12:30:00Z")]
    #[case::day_31_of_30("2026-11-31T12:30:00Z")]
    #[case::no_leap_year("2026-02-29T12:30:00Z")]
    #[case::no_leap_century("2100-02-29T12:30:00Z")]
    #[case::hour_24("2026-11-16T24:00:00Z")]
    #[case::minute_60("2026-11-16T12:60:00Z")]
    #[case::second_61("2026-12-31T23:59:61Z")]
    #[case::second_60_in_the_middle_of_a_day("2026-12-31T12:30:60Z")]
    #[case::second_60_in_the_middle_of_a_month("2026-11-16T23:59:60Z")]
    #[case::second_60_of_a_local_month("2026-12-31T23:59:60+01:00")]
    #[case::digits_of_another_script("٢٠٢٦-11-16T12:30:00Z")]
    #[case::wide_digits("2026-11-16T12:30:00\u{ff10}Z")]
    #[case::milliseconds("1794832200000")]
    #[case::nothing("")]
    fn what_is_not_rfc_3339_is_refused(#[case] text: &str) {
        assert_eq!(parse(text), None);
    }
}
