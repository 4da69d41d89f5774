//! Query parameters, strictly: each known, at most once, numbers in digits.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use http::Uri;
use saltern_core::campaigns::LetterNo;
use saltern_core::ids::TenantId;
use saltern_core::limits::{ID_BYTES_MAX, PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, SEQ_NO_END};
use saltern_core::seq::SeqNo;
use saltern_service::campaigns::DeadLetterFilter;
use saltern_service::conversations::Contents;

use crate::path::decoded;
use crate::problem::Problem;

/// Where a page starts and how long it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PageQuery {
    pub(crate) cursor: Cursor,
    pub(crate) limit: usize,
    pub(crate) contents: Contents,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cursor {
    /// Newest first; without a seq_no, from the newest on.
    Before(Option<SeqNo>),
    /// Oldest first; 0 starts at the beginning.
    After(u64),
}

pub(crate) fn none(uri: &Uri) -> Result<(), Problem> {
    values(uri, []).map(|[]| ())
}

pub(crate) fn limit_only(uri: &Uri) -> Result<usize, Problem> {
    let [limit] = values(uri, ["limit"])?;
    Ok(page_limit(limit.map(|text| number("limit", &text, &LIMITS)).transpose()?))
}

/// Which dead letters, and how many of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LettersQuery {
    pub(crate) filter: DeadLetterFilter,
    pub(crate) after: Option<LetterNo>,
    pub(crate) limit: Option<usize>,
}

pub(crate) fn letters(uri: &Uri) -> Result<LettersQuery, Problem> {
    let [limit, after, reason, tenant] = values(uri, ["limit", "after", "reason", "tenant"])?;
    let limit = limit.map(|text| number("limit", &text, &LIMITS)).transpose()?;
    let after = after.map(|text| number("after", &text, &(1..=SEQ_NO_END - 1))).transpose()?;
    let tenant = tenant.map(|text| TenantId::new(&text).map_err(|e| Problem::invalid(format!("tenant {e}"))));
    if let Some(reason) = reason.as_ref().filter(|reason| !(1..=ID_BYTES_MAX).contains(&reason.len())) {
        return Err(Problem::invalid(format!("reason has {} bytes; 1 to {ID_BYTES_MAX} are allowed", reason.len())));
    }
    Ok(LettersQuery {
        filter: DeadLetterFilter { reason: reason.map(Cow::into_owned), tenant: tenant.transpose()? },
        after: after.map(LetterNo),
        limit: limit.map(|limit| page_limit(Some(limit))),
    })
}

pub(crate) fn page(uri: &Uri) -> Result<PageQuery, Problem> {
    let [before, after, limit, archived] = values(uri, ["before_seq", "after_seq", "limit", ARCHIVED])?;
    let number = |name, text: Option<Cow<'_, str>>, range| text.map(|text| number(name, &text, &range)).transpose();
    let before = number("before_seq", before, 1..=SEQ_NO_END - 1)?;
    let after = number("after_seq", after, 0..=SEQ_NO_END - 1)?;
    let limit = number("limit", limit, LIMITS)?;
    let cursor = match (before, after) {
        (Some(_), Some(_)) => {
            return Err(Problem::invalid("before_seq and after_seq exclude each other; send one of them"));
        }
        (before, None) => Cursor::Before(before.and_then(SeqNo::new)),
        (None, Some(after)) => Cursor::After(after),
    };
    Ok(PageQuery { cursor, limit: page_limit(limit), contents: contents(archived.as_deref())? })
}

/// Of a single message.
pub(crate) fn archived_only(uri: &Uri) -> Result<Contents, Problem> {
    let [archived] = values(uri, [ARCHIVED])?;
    contents(archived.as_deref())
}

const ARCHIVED: &str = "archived";

fn contents(archived: Option<&str>) -> Result<Contents, Problem> {
    match archived {
        None => Ok(Contents::Fetched),
        Some("refs") => Ok(Contents::Refs),
        Some(_) => Err(Problem::invalid("archived must be `refs` (leave archived contents out), or absent")),
    }
}

pub(crate) fn seq_no(name: &'static str, text: &str) -> Result<SeqNo, Problem> {
    let value = number(name, text, &(1..=SEQ_NO_END - 1))?;
    Ok(SeqNo::clamped(value))
}

pub(crate) const PAGE_LIMIT: usize = PAGE_LIMIT_DEFAULT;
const LIMITS: RangeInclusive<u64> = 1..=PAGE_LIMIT_MAX as u64;

fn page_limit(limit: Option<u64>) -> usize {
    limit.and_then(|l| usize::try_from(l).ok()).unwrap_or(PAGE_LIMIT_DEFAULT)
}

/// The values of the known parameters, in their order; anything else in the query is refused.
fn values<'a, const N: usize>(uri: &'a Uri, known: [&'static str; N]) -> Result<[Option<Cow<'a, str>>; N], Problem> {
    let mut values = [const { None }; N];
    let Some(query) = uri.query().filter(|q| !q.is_empty()) else { return Ok(values) };
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name, "the query")?;
        let Some(index) = known.iter().position(|known| *known == name) else {
            return Err(Problem::invalid(format!("query parameter {name:?} is unknown; {}", expected(&known))));
        };
        let name = known[index];
        if values[index].is_some() {
            return Err(Problem::invalid(format!("query parameter {name} is given twice; send it once")));
        }
        values[index] = Some(decoded(value, name)?);
    }
    Ok(values)
}

/// The parameters that a route takes, for people.
fn expected(known: &[&str]) -> String {
    match known {
        [] => "this route takes none".to_owned(),
        known => format!("this route takes {}", known.join(", ")),
    }
}

fn number(name: &str, text: &str, range: &RangeInclusive<u64>) -> Result<u64, Problem> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let value = digits.then(|| text.parse().ok()).flatten().filter(|v| range.contains(v));
    value.ok_or_else(|| {
        let (from, to) = range.clone().into_inner();
        Problem::invalid(format!("{name} must be a whole number from {from} to {to}, in digits, not {text:?}"))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn parse(query: &str) -> Result<PageQuery, Problem> {
        page(&format!("/x?{query}").parse().unwrap())
    }

    #[rstest]
    #[case("", Cursor::Before(None), 20)]
    #[case("limit=1", Cursor::Before(None), 1)]
    #[case("limit=200&before_seq=7", Cursor::Before(SeqNo::new(7)), 200)]
    #[case("after_seq=0", Cursor::After(0), 20)]
    #[case("after_seq=9007199254740991", Cursor::After(SEQ_NO_END - 1), 20)]
    #[case("l%69mit=%32", Cursor::Before(None), 2)]
    fn accepted(#[case] query: &str, #[case] cursor: Cursor, #[case] limit: usize) {
        assert_eq!(parse(query).unwrap(), PageQuery { cursor, limit, contents: Contents::Fetched });
    }

    #[test]
    fn archived_contents_can_be_left_out() {
        assert_eq!(parse("archived=refs&limit=3").unwrap().contents, Contents::Refs);
        assert_eq!(archived_only(&"/x?archived=r%65fs".parse().unwrap()).unwrap(), Contents::Refs);
        assert!(archived_only(&"/x?limit=3".parse().unwrap()).is_err());
    }

    #[test]
    fn letters_are_named_by_cursor_and_filter() {
        let letters = |query: &str| letters(&format!("/x?{query}").parse().unwrap());
        assert_eq!(letters("").unwrap(), LettersQuery::default());
        let expected = LettersQuery {
            filter: DeadLetterFilter { reason: Some("not known".into()), tenant: TenantId::new("d/e").ok() },
            after: Some(LetterNo(7)),
            limit: Some(200),
        };
        assert_eq!(letters("tenant=d%2Fe&limit=200&reason=not%20known&after=7").unwrap(), expected);
        let long = format!("reason={}", "x".repeat(257));
        for bad in ["after=0", "after=x", "after=9007199254740992", "reason=", "tenant=", "limit=201", "ids=1", &long] {
            assert!(letters(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn refused() {
        let limits = ["0", "201", "", "+5", "5+", "%205", "-1", "0x5", "1e1", "99999999999999999999", "%D9%A5"];
        let limits = limits.map(|limit| format!("limit={limit}"));
        let others = [
            "limit",
            "limit=5&limit=5",
            "limit=5&",
            "Limit=5",
            "before_seq=0",
            "before_seq=9007199254740992",
            "after_seq=9007199254740992",
            "before_seq=1&after_seq=1",
            "archived",
            "archived=true",
            "archived=refs&archived=refs",
            "x=1",
            "%ff=1",
        ];
        for query in limits.iter().map(String::as_str).chain(others) {
            assert!(parse(query).is_err(), "{query}");
        }
    }
}
