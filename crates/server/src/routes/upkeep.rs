//! Work on all that is kept, a few seconds at a time.

use std::sync::Arc;

use axum::extract::Request;
use http::StatusCode;
use saltern_core::limits::BODY_BYTES_MAX;
use saltern_service::conversations::Swept;

use super::json;
use crate::app::App;
use crate::body;
use crate::gate::Answer;
use crate::problem::{Kind, Problem};
use crate::query;
use crate::wire::{ArchiveAnswer, ArchiveOrder, VerifyAnswer, VerifyOrder};

const ANSWER_BYTES: usize = 512;

pub(crate) const ARCHIVE_PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::RequestTimeout,
    Kind::PayloadTooLarge,
    Kind::UnsupportedMediaType,
    Kind::DataLoss,
    Kind::Internal,
    Kind::StoreUnavailable,
    Kind::ArchiveBusy,
    Kind::NoArchive,
];

/// Archive what is due, for a few seconds
///
/// To be asked again until `done`: `saltern archive --url` does so. A client that goes away stops nothing but its own pass, and
/// the next one goes on from there.
#[utoipa::path(
    post,
    path = "/v1/archive",
    tag = "operations",
    request_body(content = ArchiveOrder, description = "What to archive; `{}` for what is configured"),
    responses((status = 200, description = "What was done", body = ArchiveAnswer))
)]
pub(crate) async fn archive(app: Arc<App>, request: Request) -> Answer {
    query::none(request.uri())?;
    let body = app.read(request, BODY_BYTES_MAX).await?;
    let order: ArchiveOrder = body::parse(&body.bytes)?;
    let options = order.options(app.upkeep.older_than).map_err(Problem::invalid)?;
    if !app.conversations.archive().is_present() {
        return Err(Problem::new(Kind::NoArchive, "set archive.url, so that contents have somewhere to go"));
    }
    let part = app.upkeep.archive_part(&options).await?;
    let mut swept = Swept::default();
    if let Some((sweep_all, compact)) = order.finish().filter(|_| part.done) {
        swept = app.upkeep.sweep(sweep_all).await?;
        if compact {
            app.upkeep.compact().await.map_err(Problem::from)?;
        }
    }
    json(StatusCode::OK, &ArchiveAnswer::new(part, swept), ANSWER_BYTES)
}

pub(crate) const VERIFY_PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::RequestTimeout,
    Kind::PayloadTooLarge,
    Kind::UnsupportedMediaType,
    Kind::DataLoss,
    Kind::Internal,
    Kind::StoreUnavailable,
];

/// Check what is kept against what is promised, for a few seconds
///
/// To be asked again with `resume` until it is null: `saltern verify --url` does so. Changes nothing.
#[utoipa::path(
    post,
    path = "/v1/verify",
    tag = "operations",
    request_body(content = VerifyOrder, description = "Where to go on; `{}` from the beginning"),
    responses((status = 200, description = "What was found", body = VerifyAnswer))
)]
pub(crate) async fn verify(app: Arc<App>, request: Request) -> Answer {
    query::none(request.uri())?;
    let body = app.read(request, BODY_BYTES_MAX).await?;
    let order: VerifyOrder = body::parse(&body.bytes)?;
    let behind = order.behind().map_err(Problem::invalid)?;
    let part = app.upkeep.verify_part(behind).await.map_err(Problem::from)?;
    json(StatusCode::OK, &VerifyAnswer::new(part), ANSWER_BYTES)
}
