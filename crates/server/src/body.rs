//! Request bodies, bounded in size and time.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde::Deserialize;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::problem::{Kind, Problem, overloaded};
use crate::wire::Object;

/// How much of a body that is too large is read and dropped, so that its sender gets to see the answer
/// instead of a connection reset.
const DISCARD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Details are for people: what the parser quotes of the body is cut.
const DETAIL_CHARS_MAX: usize = 300;

/// Bodies that may be in memory at once, all together.
const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
const KIB: usize = 1024;

/// Room in memory for bodies, in KiB, so that many large requests at once are turned away instead of piling up.
pub(crate) struct Room(Semaphore);

impl Default for Room {
    fn default() -> Self {
        Self(Semaphore::new(BODIES_BYTES_MAX / KIB))
    }
}

impl Room {
    /// Room for this many bytes, as long as it is held.
    pub(crate) fn take(&self, bytes: usize) -> Result<SemaphorePermit<'_>, Problem> {
        let kib = u32::try_from(bytes.div_ceil(KIB).max(1)).unwrap_or(u32::MAX);
        self.0.try_acquire_many(kib).map_err(|_| overloaded())
    }
}

pub(crate) struct Limits<'a> {
    pub(crate) bytes_max: usize,
    pub(crate) timeout: Duration,
    pub(crate) room: &'a Room,
}

/// A body, and the room that it takes up as long as its request is under way.
pub(crate) struct Received<'a> {
    pub(crate) bytes: Bytes,
    _room: SemaphorePermit<'a>,
}

impl Received<'_> {
    /// Lets go of the bytes, for those who have made something else of them: the connection can use their memory for what it
    /// reads next.
    pub(crate) fn was_read(&mut self) {
        self.bytes = Bytes::new();
    }
}

/// The bytes of a JSON body.
pub(crate) async fn read(request: Request, limits: Limits<'_>) -> Result<Received<'_>, Problem> {
    media_type(request.headers(), &[MediaType::Json])?;
    let declared = request.body().size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    let expected = declared.map_or(limits.bytes_max, |bytes| bytes.min(limits.bytes_max));
    let room = limits.room.take(expected)?;
    let awaits_go_ahead = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    let mut reading = pin!(async {
        match collect(&mut body, limits.bytes_max).await? {
            Some(bytes) => Ok(bytes),
            None => {
                if !awaits_go_ahead {
                    discard(&mut body).await;
                }
                let detail = format!("the body must not exceed {} bytes here; nothing was changed", limits.bytes_max);
                Err(Problem::new(Kind::PayloadTooLarge, detail))
            }
        }
    });
    let timed_out = |_| Problem::new(Kind::RequestTimeout, "the body did not arrive in time; nothing was changed");
    // Most bodies come with their heads, and need no timer.
    let bytes = match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        Poll::Ready(read) => read?,
        Poll::Pending => tokio::time::timeout(limits.timeout, reading).await.map_err(timed_out)??,
    };
    Ok(Received { bytes, _room: room })
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

/// `None` if the body is, or says that it is, longer than allowed.
async fn collect(body: &mut Body, bytes_max: usize) -> Result<Option<Bytes>, Problem> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > bytes_max {
        return Ok(None);
    }
    let (mut first, mut joined) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Problem::invalid("the body ended early; nothing was changed"))?.into_data()
        else {
            continue;
        };
        if first.len() + joined.len() + data.len() > bytes_max {
            return Ok(None);
        }
        // Most bodies come in one piece, and need not be copied.
        if first.is_empty() && joined.is_empty() {
            first = data;
            continue;
        }
        if joined.is_empty() {
            joined.reserve(declared);
            joined.extend_from_slice(&std::mem::take(&mut first));
        }
        joined.extend_from_slice(&data);
    }
    Ok(Some(if joined.is_empty() { first } else { joined.freeze() }))
}

pub(crate) async fn discard(body: &mut Body) {
    let mut left = DISCARD_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        if left == 0 {
            return;
        }
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
    use super::*;

    fn request(bytes: usize) -> Request {
        let body = Body::from(vec![b' '; bytes]);
        Request::builder().header(header::CONTENT_TYPE, "application/json").body(body).unwrap()
    }

    #[tokio::test]
    async fn bodies_that_do_not_fit_in_memory_are_turned_away_until_others_have_gone() {
        let room = Room(Semaphore::new(4));
        let limits = || Limits { bytes_max: 10 * KIB, timeout: Duration::from_secs(1), room: &room };
        let held = read(request(3 * KIB), limits()).await.ok().unwrap();
        assert_eq!(read(request(KIB + 1), limits()).await.err().unwrap().kind, Kind::Overloaded);
        assert!(read(request(KIB), limits()).await.is_ok());
        drop(held);
        assert!(read(request(4 * KIB), limits()).await.is_ok());
    }
}
