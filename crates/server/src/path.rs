//! Ids and numbers in paths.
//!
//! Segments are taken from the path as it was sent: an id may hold an encoded slash, or be `..`.

use std::borrow::Cow;

use http::Uri;
use saltern_core::ids::{ConversationId, TenantId};
use saltern_core::seq::SeqNo;

use crate::problem::Problem;
use crate::query;

/// `/v1/conversations/{conversation_id}/messages/{seq_no}`, split at its slashes.
const CONVERSATION_ID: usize = 3;
const SEQ_NO: usize = 5;
/// `/v1/tenants/{tenant}`
const TENANT: usize = 3;

pub(crate) fn conversation_id(uri: &Uri) -> Result<ConversationId, Problem> {
    let text = decoded(segment(uri, CONVERSATION_ID), "conversation_id")?;
    ConversationId::new(&text).map_err(|e| Problem::invalid(format!("conversation_id {e}")))
}

pub(crate) fn tenant(uri: &Uri) -> Result<TenantId, Problem> {
    let text = decoded(segment(uri, TENANT), "tenant")?;
    TenantId::new(&text).map_err(|e| Problem::invalid(format!("tenant {e}")))
}

pub(crate) fn seq_no(uri: &Uri) -> Result<SeqNo, Problem> {
    let text = decoded(segment(uri, SEQ_NO), "seq_no")?;
    query::seq_no("seq_no", &text)
}

fn segment(uri: &Uri, index: usize) -> &str {
    let mut rest = uri.path();
    for _ in 0..index {
        rest = split_at_slash(rest).1;
    }
    split_at_slash(rest).0
}

/// What is in front of the first slash, and what is behind it. Paths are short, so that nothing is quicker than to look.
fn split_at_slash(path: &str) -> (&str, &str) {
    let slash = path.bytes().position(|byte| byte == b'/');
    slash.map_or((path, ""), |slash| (&path[..slash], &path[slash + 1..]))
}

/// Percent-decoding without leniency: a `%` is followed by two hex digits, and the result is UTF-8.
pub(crate) fn decoded<'a>(text: &'a str, name: &str) -> Result<Cow<'a, str>, Problem> {
    if !text.contains('%') {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(Problem::invalid(format!(
                "{name} holds a `%` that is not followed by two hex digits; write `%` as %25"
            )));
        };
        bytes.push(high << 4 | low);
    }
    String::from_utf8(bytes)
        .map(Cow::Owned)
        .map_err(|_| Problem::invalid(format!("{name} must be UTF-8 after percent-decoding")))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("plain", Some("plain"))]
    #[case("a%2Fb%2fc", Some("a/b/c"))]
    #[case("..", Some(".."))]
    #[case("%00%25%23", Some("\0%#"))]
    #[case("%F0%9F%A7%82", Some("🧂"))]
    #[case("%", None)]
    #[case("%2", None)]
    #[case("%zz", None)]
    #[case("%+1", None)]
    #[case("%ff", None)]
    #[case("%ed%a0%80", None)]
    fn decoding(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(decoded(text, "id").ok().as_deref(), expected);
    }
}
