//! Campaign events in: one, an array, or lines without end.

use std::sync::Arc;

use axum::extract::Request;
use http::StatusCode;
use saltern_core::limits::BULK_BODY_BYTES_MAX;
use saltern_service::campaigns::{Applied, CampaignError, Rejected};
use serde_json::value::RawValue;

use super::json;
use crate::app::App;
use crate::body::{self, MediaType};
use crate::gate::Answer;
use crate::ndjson::{LINE_BYTES_MAX, Line, Lines};
use crate::problem::{Kind, Problem, unsettled};
use crate::query;
use crate::wire::{CampaignEvents, EventsAnswer, RejectedBody};

/// Rejections that an answer lists; all of them are dead letters.
const LISTED_MAX: usize = 1_000;
const REJECTED_BYTES: usize = 160;

pub(crate) const PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::RequestTimeout,
    Kind::PayloadTooLarge,
    Kind::UnsupportedMediaType,
    Kind::DataLoss,
    Kind::Internal,
    Kind::OutcomeUnknown,
];

/// Take up campaign events
///
/// One event, an array of them (together at most 4 MiB), or `application/x-ndjson` of any length, an event on each line
/// of at most 4 MiB. Order and repetition make no difference, so a request that failed may be sent again as a whole.
/// Events that are not valid are told, kept as dead letters, and block nothing.
#[utoipa::path(
    post,
    path = "/v1/campaign-events",
    tag = "campaigns",
    request_body(content((CampaignEvents = "application/json"), (String = "application/x-ndjson"))),
    responses((status = 200, description = "What became of them", body = EventsAnswer))
)]
pub(crate) async fn events(app: Arc<App>, request: Request) -> Answer {
    query::none(request.uri())?;
    match body::media_type(request.headers(), &[MediaType::Json, MediaType::Ndjson])? {
        MediaType::Json => json_events(&app, request).await,
        MediaType::Ndjson => lines(&app, request).await,
    }
}

async fn json_events(app: &App, request: Request) -> Answer {
    let body = app.read(request, BULK_BODY_BYTES_MAX).await?;
    let events: Vec<&RawValue> = match body.bytes.trim_ascii_start().first() {
        Some(b'[') => body::parse_any(&body.bytes)?,
        Some(b'{') | None => vec![body::parse_any(&body.bytes)?],
        Some(_) => return Err(Problem::invalid("body: expected an event (a JSON object) or an array of events")),
    };
    let events: Vec<_> = events.into_iter().map(RawValue::get).collect();
    let done = app.campaigns.apply(&events).await;
    let done = done.map_err(|error| unsettled(&error, "some events may have been applied; send all of them again"))?;
    let mut tally = Tally::default();
    tally.add(done);
    tally.answer()
}

async fn lines(app: &App, request: Request) -> Answer {
    let budget = app.budget_of(&request);
    let mut lines = Lines::new(request.into_body(), app.body_timeout, &budget)?;
    let mut tally = Tally::default();
    loop {
        let before = lines.count();
        let piece = lines.next_piece().await?;
        if piece.is_empty() {
            return tally.answer();
        }
        if let Err(error) = take_piece(app, piece, &mut tally).await {
            let detail = format!("the first {before} lines were applied; send all of them again");
            return Err(unsettled(&error, detail));
        }
    }
}

async fn take_piece(app: &App, piece: Vec<Line>, tally: &mut Tally) -> Result<(), CampaignError> {
    let (too_long, events): (Vec<_>, Vec<_>) = piece.into_iter().partition(|line| line.too_long);
    let texts: Vec<_> = events.iter().map(|line| &line.bytes).collect();
    let mut done = app.campaigns.apply(&texts).await?;
    for rejected in &mut done.rejected {
        rejected.index = events[rejected.index].index;
    }
    for line in too_long {
        let reason = format!("longer than {LINE_BYTES_MAX} bytes");
        app.campaigns.reject(&line.bytes, &reason).await?;
        done.rejected.push(Rejected { index: line.index, reason });
    }
    done.rejected.sort_unstable_by_key(|rejected| rejected.index);
    tally.add(done);
    Ok(())
}

/// What has become of the events so far.
#[derive(Default)]
struct Tally {
    applied: u64,
    stale: u64,
    rejected: u64,
    listed: Vec<RejectedBody>,
}

impl Tally {
    fn add(&mut self, done: Applied) {
        self.applied += done.applied;
        self.stale += done.stale;
        self.rejected += done.rejected.len() as u64;
        let room = LISTED_MAX - self.listed.len();
        let body = |rejected: Rejected| RejectedBody { index: rejected.index, reason: rejected.reason };
        self.listed.extend(done.rejected.into_iter().take(room).map(body));
    }

    fn answer(self) -> Answer {
        let capacity = (self.listed.len() + 1) * REJECTED_BYTES;
        let rejected_total = (self.rejected > self.listed.len() as u64).then_some(self.rejected);
        let (applied, stale, rejected) = (self.applied, self.stale, self.listed);
        json(StatusCode::OK, &EventsAnswer { applied, stale, rejected, rejected_total }, capacity)
    }
}
