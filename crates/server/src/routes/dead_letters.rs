//! Dead letters: events that were turned away.

use std::sync::Arc;

use axum::extract::Request;
use http::StatusCode;
use hyper::body::Body as _;
use saltern_core::campaigns::LetterNo;
use saltern_core::limits::BODY_BYTES_MAX;

use super::json;
use crate::app::App;
use crate::body;
use crate::gate::Answer;
use crate::problem::{Kind, Problem, unsettled};
use crate::query::{self, LettersQuery};
use crate::wire::{DeadLetterList, ReplayAnswer, ReplayOrder};

const LETTER_BYTES: usize = 512;
const REJECTED_BYTES: usize = 160;

pub(crate) const LIST_PROBLEMS: &[Kind] =
    &[Kind::InvalidRequest, Kind::DataLoss, Kind::Internal, Kind::StoreUnavailable];

/// Events that were turned away
///
/// The newest first, each as it came, with the reason. The newest 10,000 are kept. Large ones make a page shorter than its
/// limit, and so does a filter that holds for few: as long as there are more, `next_after` says where to go on.
#[utoipa::path(
    get,
    path = "/v1/dead-letters",
    tag = "campaigns",
    params(
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 200, description = "20 if absent"),
        ("after" = Option<u64>, Query, minimum = 1, maximum = 9007199254740991i64,
            description = "The `next_after` of the page before: goes on with older ones"),
        ("reason" = Option<String>, Query, min_length = 1, max_length = 256,
            description = "Only those whose reason contains this text"),
        ("tenant" = Option<String>, Query, min_length = 1, max_length = 256,
            description = "Only those whose event names this tenant"),
    ),
    responses((status = 200, description = "Newest first", body = DeadLetterList))
)]
pub(crate) async fn list(app: Arc<App>, request: Request) -> Answer {
    let LettersQuery { filter, after, limit } = query::letters(request.uri())?;
    let page = app.campaigns.dead_letters(&filter, after, limit.unwrap_or(query::PAGE_LIMIT)).await?;
    json(StatusCode::OK, &DeadLetterList::new(&page), (page.letters.len() + 1) * LETTER_BYTES)
}

pub(crate) const REPLAY_PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::RequestTimeout,
    Kind::PayloadTooLarge,
    Kind::UnsupportedMediaType,
    Kind::DataLoss,
    Kind::Internal,
    Kind::OutcomeUnknown,
];

/// Take up dead letters once more
///
/// After their cause has been fixed: those that are taken now are removed, the others stay. Without a body, the newest ones
/// that the parameters name; to go through all of them, repeat with `after` = `next_after` until that is null, and none
/// is met twice. With `ids` in the body, these letters alone, and no parameters.
#[utoipa::path(
    post,
    path = "/v1/dead-letters/replay",
    tag = "campaigns",
    params(
        ("limit" = Option<u16>, Query, minimum = 1, maximum = 200, description = "20 if absent"),
        ("after" = Option<u64>, Query, minimum = 1, maximum = 9007199254740991i64,
            description = "The `next_after` of the call before: goes on with older ones"),
        ("reason" = Option<String>, Query, min_length = 1, max_length = 256,
            description = "Only those whose reason contains this text"),
        ("tenant" = Option<String>, Query, min_length = 1, max_length = 256,
            description = "Only those whose event names this tenant"),
    ),
    request_body(content = ReplayOrder, description = "May be absent"),
    responses((status = 200, description = "What became of them", body = ReplayAnswer))
)]
pub(crate) async fn replay(app: Arc<App>, request: Request) -> Answer {
    let asked = query::letters(request.uri())?;
    let done = match ids(&app, request).await? {
        Some(_) if asked != LettersQuery::default() => {
            return Err(Problem::invalid("ids and query parameters exclude each other"));
        }
        Some(ids) => app.campaigns.replay_these(&ids).await,
        None => app.campaigns.replay(&asked.filter, asked.after, asked.limit.unwrap_or(query::PAGE_LIMIT)).await,
    };
    let done = done.map_err(|error| unsettled(&error, "some may have been taken; it may be asked again"))?;
    json(StatusCode::OK, &ReplayAnswer::new(&done), (done.rejected.len() + 1) * REJECTED_BYTES)
}

/// The letters that the body names, if it names any.
async fn ids(app: &App, request: Request) -> Result<Option<Vec<LetterNo>>, Problem> {
    if request.body().is_end_stream() {
        return Ok(None);
    }
    let body = app.read(request, BODY_BYTES_MAX).await?;
    if body.bytes.is_empty() {
        return Ok(None);
    }
    body::parse::<ReplayOrder>(&body.bytes)?.ids().map_err(Problem::invalid)
}
