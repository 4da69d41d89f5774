//! Dead letters: events that were turned away.

use std::sync::Arc;

use axum::extract::Request;
use http::StatusCode;

use super::campaign_events::Tally;
use super::json;
use crate::app::App;
use crate::gate::Answer;
use crate::problem::{Kind, unsettled};
use crate::query;
use crate::wire::{DeadLetterList, EventsAnswer};

const LETTER_BYTES: usize = 512;

pub(crate) const LIST_PROBLEMS: &[Kind] =
    &[Kind::InvalidRequest, Kind::DataLoss, Kind::Internal, Kind::StoreUnavailable];

/// Events that were turned away
///
/// The newest first, each as it came, with the reason. The newest 10,000 are kept.
#[utoipa::path(
    get,
    path = "/v1/dead-letters",
    tag = "campaigns",
    params(("limit" = Option<u16>, Query, minimum = 1, maximum = 200, description = "20 if absent")),
    responses((status = 200, description = "Newest first", body = DeadLetterList))
)]
pub(crate) async fn list(app: Arc<App>, request: Request) -> Answer {
    let limit = query::limit_only(request.uri())?;
    let letters = app.campaigns.dead_letters(limit).await?;
    json(StatusCode::OK, &DeadLetterList::new(&letters), letters.len() * LETTER_BYTES)
}

pub(crate) const REPLAY_PROBLEMS: &[Kind] =
    &[Kind::InvalidRequest, Kind::DataLoss, Kind::Internal, Kind::OutcomeUnknown];

/// Take up the newest dead letters once more
///
/// After their cause has been mended: those that are taken now are removed. The others stay; `index` is their place in
/// the list.
#[utoipa::path(
    post,
    path = "/v1/dead-letters/replay",
    tag = "campaigns",
    params(("limit" = Option<u16>, Query, minimum = 1, maximum = 200, description = "20 if absent")),
    responses((status = 200, description = "What became of them", body = EventsAnswer))
)]
pub(crate) async fn replay(app: Arc<App>, request: Request) -> Answer {
    let limit = query::limit_only(request.uri())?;
    let done = app.campaigns.replay(limit).await;
    let done = done.map_err(|error| unsettled(&error, "some may have been taken; it may be asked again"))?;
    let mut tally = Tally::default();
    tally.add(done);
    tally.answer()
}
