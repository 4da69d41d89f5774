//! Request bodies, bounded in size and time.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use saltern_core::limits::BODY_RAW_BYTES_MAX;
use serde::Deserialize;
use tokio::time::timeout;

use crate::budget::{Budget, Reservation};
use crate::problem::{Kind, Problem};
use crate::wire::Object;

/// Details are for people: what the parser quotes of the body is cut.
const DETAIL_CHARS_MAX: usize = 300;

/// How long the first bytes of a body may take that says it is longer than allowed, and is so unless it is full of escapes.
const LONG_BODY_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Limits<'a> {
    /// Escapes are counted as the characters that they stand for.
    pub(crate) bytes_max: usize,
    pub(crate) timeout: Duration,
    pub(crate) budget: &'a Arc<Budget>,
}

impl Limits<'_> {
    fn raw_bytes_max(&self) -> usize {
        self.bytes_max.max(BODY_RAW_BYTES_MAX)
    }

    fn too_large(&self) -> Problem {
        let detail = format!("the body must not exceed {} bytes here; nothing was changed", self.bytes_max);
        Problem::new(Kind::PayloadTooLarge, detail)
    }
}

/// A body, and the memory that is reserved for it as long as its request is in flight.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    _reservation: Reservation,
}

impl Received {
    /// Lets go of the bytes, for those who have made something else of them: the connection can use their memory for what it
    /// reads next.
    pub(crate) fn was_read(&mut self) {
        self.bytes = Bytes::new();
    }
}

/// The bytes of a JSON body.
pub(crate) async fn read(request: Request, limits: Limits<'_>) -> Result<Received, Problem> {
    media_type(request.headers(), &[MediaType::Json])?;
    let mut body = request.into_body();
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limits.raw_bytes_max() {
        return Err(limits.too_large());
    }
    let is_long = declared > limits.bytes_max;
    let timed_out = |_| match is_long {
        true => limits.too_large(),
        false => Problem::new(Kind::RequestTimeout, "the body did not arrive in time; nothing was changed"),
    };
    let mut reading = pin!(collect(&mut body, declared, &limits));
    // Most bodies come with their heads, and need no timer.
    match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        Poll::Ready(read) => read,
        Poll::Pending => timeout(limits.timeout, reading).await.map_err(timed_out)?,
    }
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    let Object(value) = parse_any(bytes)?;
    Ok(value)
}

/// JSON that `plain` reads if it is of the usual shape, and serde whatever it is.
pub(crate) fn parse_usual<'a, T: Deserialize<'a>>(
    bytes: &'a [u8],
    plain: impl FnOnce(&'a str) -> Option<T>,
) -> Result<T, Problem> {
    str::from_utf8(bytes).ok().and_then(plain).map_or_else(|| parse(bytes), Ok)
}

/// JSON that need not be an object.
pub(crate) fn parse_any<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    // As one text, so that the parser need not look at each string by itself. Where it is none, the parser says so best.
    let parsed = str::from_utf8(bytes).map_or_else(|_| serde_json::from_slice(bytes), serde_json::from_str);
    parsed.map_err(|error| {
        let mut text = format!("body: {error}");
        if let Some((end, _)) = text.char_indices().nth(DETAIL_CHARS_MAX) {
            text.truncate(end);
            text.push('…');
        }
        Problem::invalid(text)
    })
}

/// Reserves memory for what has arrived, not for what is declared: a client that sends slowly holds little.
async fn collect(body: &mut Body, declared: usize, limits: &Limits<'_>) -> Result<Received, Problem> {
    let mut reservation = limits.budget.reserve(0)?;
    let (mut first, mut joined) = (Bytes::new(), BytesMut::new());
    loop {
        let is_patience_short = declared > limits.bytes_max && first.is_empty() && joined.is_empty();
        let frame = match is_patience_short {
            true => timeout(LONG_BODY_PATIENCE, body.frame()).await.map_err(|_| limits.too_large())?,
            false => body.frame().await,
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| Problem::invalid("the body ended early; nothing was changed"))?.into_data()
        else {
            continue;
        };
        let arrived = first.len() + joined.len() + data.len();
        if arrived > limits.raw_bytes_max() {
            return Err(limits.too_large());
        }
        // Most bodies come in one piece, and need not be copied.
        if first.is_empty() && joined.is_empty() {
            reservation.resize(arrived)?;
            first = data;
            continue;
        }
        if joined.capacity() < arrived {
            let capacity = (2 * arrived).min(limits.raw_bytes_max()).min(declared.max(arrived));
            reservation.resize(capacity)?;
            joined.reserve(capacity - joined.len());
        }
        joined.extend_from_slice(&std::mem::take(&mut first));
        joined.extend_from_slice(&data);
    }
    let bytes = if joined.is_empty() { first } else { joined.freeze() };
    if bytes.len() > limits.bytes_max && unescaped_len(&bytes) > limits.bytes_max {
        return Err(limits.too_large());
    }
    Ok(Received { bytes, _reservation: reservation })
}

/// How long JSON would be if each escape were the character that it stands for.
fn unescaped_len(json: &[u8]) -> usize {
    let mut len = 0;
    let mut rest = json;
    loop {
        let (plain, escape) = rest.split_at(rest.iter().position(|byte| *byte == b'\\').unwrap_or(rest.len()));
        len += plain.len();
        let (character, escaped) = match escape {
            [] => return len,
            [_, b'u', digits @ ..] => (utf8_len(digits), 6),
            _ => (1, 2),
        };
        len += character;
        rest = &escape[escaped.min(escape.len())..];
    }
}

/// Of a character by its four hex digits. Each half of a pair of surrogates counts two of the four bytes.
fn utf8_len(digits: &[u8]) -> usize {
    match digits {
        [b'0', b'0', b'0'..=b'7', _, ..] => 1,
        [b'0', b'0'..=b'7', ..] | [b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', ..] => 2,
        _ => 3,
    }
}

/// What a body says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    /// One JSON text per line.
    Ndjson,
}

impl MediaType {
    const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Ndjson => "application/x-ndjson",
        }
    }
}

/// What a body says it is, if the route takes it.
pub(crate) fn media_type(headers: &HeaderMap, taken: &[MediaType]) -> Result<MediaType, Problem> {
    let refused = |found: fmt::Arguments<'_>| {
        let expected: Vec<_> = taken.iter().map(|media_type| media_type.name()).collect();
        let detail = format!("content-type must be {}, {found}", expected.join(" or "));
        Problem::new(Kind::UnsupportedMediaType, detail)
    };
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let Some(content_type) = text(header::CONTENT_TYPE) else {
        return Err(refused(format_args!("but the request has none")));
    };
    if text(header::CONTENT_ENCODING).is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
        let detail = "content-encoding is not supported; send the body uncompressed";
        return Err(Problem::new(Kind::UnsupportedMediaType, detail));
    }
    let alone = || content_type.split(';').next().unwrap_or_default().trim();
    let is =
        |media_type: &MediaType| content_type == media_type.name() || alone().eq_ignore_ascii_case(media_type.name());
    taken.iter().find(|media_type| is(media_type)).copied().ok_or_else(|| refused(format_args!("not {:?}", alone())))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn request(bytes: usize) -> Request {
        let body = Body::from(vec![b' '; bytes]);
        Request::builder().header(header::CONTENT_TYPE, "application/json").body(body).unwrap()
    }

    #[tokio::test]
    async fn bodies_that_do_not_fit_in_memory_are_turned_away_until_others_have_gone() {
        let budget = Budget::new(4_000);
        let limits = || Limits { bytes_max: 10_000, timeout: Duration::from_secs(1), budget: &budget };
        let held = read(request(3_000), limits()).await.ok().unwrap();
        assert_eq!(read(request(1_001), limits()).await.err().unwrap().kind, Kind::Overloaded);
        assert!(read(request(1_000), limits()).await.is_ok());
        drop(held);
        assert!(read(request(4_000), limits()).await.is_ok());
    }

    /// A client that declares much and sends little holds little.
    #[tokio::test]
    async fn memory_is_reserved_for_what_has_arrived() {
        let budget = Budget::new(100_000);
        let (mut sent, received) = (0, Arc::new(tokio::sync::Notify::new()));
        let arrived = Arc::clone(&received);
        let frames = stream::poll_fn(move |_| match sent {
            3 => {
                arrived.notify_one();
                Poll::Pending
            }
            _ => {
                sent += 1;
                Poll::Ready(Some(Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b' '; 1_000])))))
            }
        });
        let slow = Request::builder().header(header::CONTENT_TYPE, "application/json");
        let slow = slow.body(Body::new(Declared(StreamBody::new(frames)))).unwrap();
        let other = Arc::clone(&budget);
        let slow = tokio::spawn(async move {
            let limits = Limits { bytes_max: 90_000, timeout: Duration::from_secs(3_600), budget: &other };
            read(slow, limits).await.is_ok()
        });
        received.notified().await;
        let limits = Limits { bytes_max: 90_000, timeout: Duration::from_secs(1), budget: &budget };
        assert!(read(request(90_000), limits).await.is_ok());
        slow.abort();
    }

    /// A body that says it is as long as it may be.
    struct Declared<B>(B);

    impl<B: hyper::body::Body + Unpin> hyper::body::Body for Declared<B> {
        type Data = B::Data;
        type Error = B::Error;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            context: &mut std::task::Context<'_>,
        ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
            std::pin::Pin::new(&mut self.0).poll_frame(context)
        }

        fn size_hint(&self) -> hyper::body::SizeHint {
            hyper::body::SizeHint::with_exact(90_000)
        }
    }

    proptest! {
        #[test]
        fn escapes_count_as_what_they_stand_for(text in any::<String>(), escape_all in any::<bool>()) {
            let json = match escape_all {
                true => format!("\"{}\"", text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>()),
                false => serde_json::to_string(&text).unwrap(),
            };
            prop_assert_eq!(unescaped_len(json.as_bytes()), text.len() + 2);
        }
    }

    #[rstest]
    #[case(r"\")]
    #[case(r"\u")]
    #[case(r"\u00")]
    #[case(r"\ud8")]
    fn escapes_that_break_off_are_counted_somehow(#[case] json: &str) {
        assert!(unescaped_len(json.as_bytes()) <= 3);
    }
}
