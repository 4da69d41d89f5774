//! Request bodies: JSON, bounded in size and time.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use serde::Deserialize;

use crate::problem::{Kind, Problem};
use crate::wire::Object;

/// How much of a body that is too large is read and dropped, so that its sender gets to see the answer
/// instead of a connection reset.
const DISCARD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Details are for people: what the parser quotes of the body is cut.
const DETAIL_CHARS_MAX: usize = 300;

pub(crate) struct Limits {
    pub(crate) bytes_max: usize,
    pub(crate) timeout: Duration,
}

/// The bytes of a JSON body.
pub(crate) async fn read(request: Request, limits: Limits) -> Result<Vec<u8>, Problem> {
    check_media_type(request.headers())?;
    let awaits_go_ahead = request.headers().contains_key(header::EXPECT);
    let mut body = request.into_body();
    let reading = async {
        match collect(&mut body, limits.bytes_max).await? {
            Some(bytes) => Ok(bytes),
            None => {
                if !awaits_go_ahead {
                    discard(&mut body).await;
                }
                let detail = format!("a body of at most {} bytes is allowed here", limits.bytes_max);
                Err(Problem::new(Kind::PayloadTooLarge, detail))
            }
        }
    };
    let timed_out = |_| Problem::new(Kind::RequestTimeout, "the body did not arrive in time; nothing was changed");
    tokio::time::timeout(limits.timeout, reading).await.map_err(timed_out)?
}

pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    let Object(value) = serde_json::from_slice(bytes).map_err(|error| {
        let mut text = format!("body: {error}");
        if let Some((end, _)) = text.char_indices().nth(DETAIL_CHARS_MAX) {
            text.truncate(end);
            text.push('…');
        }
        Problem::invalid(text)
    })?;
    Ok(value)
}

/// `None` if the body is, or says that it is, longer than allowed.
async fn collect(body: &mut Body, bytes_max: usize) -> Result<Option<Vec<u8>>, Problem> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > bytes_max {
        return Ok(None);
    }
    let mut bytes = Vec::with_capacity(declared);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Problem::invalid("the body broke off"))?.into_data() else { continue };
        if bytes.len() + data.len() > bytes_max {
            return Ok(None);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Some(bytes))
}

async fn discard(body: &mut Body) {
    let mut left = DISCARD_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        left = left.saturating_sub(frame.data_ref().map_or(0, bytes::Bytes::len));
        if left == 0 {
            return;
        }
    }
}

fn check_media_type(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail| Err(Problem::new(Kind::UnsupportedMediaType, detail));
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let Some(content_type) = text(header::CONTENT_TYPE) else { return refuse("content-type is missing") };
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return refuse("content-type is another");
    }
    match text(header::CONTENT_ENCODING) {
        Some(coding) if !coding.eq_ignore_ascii_case("identity") => refuse("content-encoding is not supported"),
        _ => Ok(()),
    }
}
