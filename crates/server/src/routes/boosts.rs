//! Boosts: who is boosted, here and now.

use std::sync::Arc;

use axum::extract::Request;
use http::StatusCode;
use saltern_core::limits::BODY_BYTES_MAX;

use super::written;
use crate::app::App;
use crate::body;
use crate::gate::Answer;
use crate::problem::{Kind, Problem};
use crate::query;
use crate::wire::{BoostAnswer, BoostQuery};

const BOOST_BYTES: usize = 80;
const ENVELOPE_BYTES: usize = 32;

pub(crate) const QUERY_PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::UnknownTenant,
    Kind::RequestTimeout,
    Kind::PayloadTooLarge,
    Kind::UnsupportedMediaType,
    Kind::DataLoss,
    Kind::Internal,
    Kind::StoreUnavailable,
];

/// Which of these partners are boosted
///
/// In a zoned market the district's own boost counts before that of `*`, among those that are active. Partners whose rows
/// could not be read are listed as unread, never left out.
#[utoipa::path(
    post,
    path = "/v1/boosts/query",
    tag = "campaigns",
    request_body(content = BoostQuery, description = "At most 256 KiB"),
    responses((status = 200, description = "Those that are boosted, in the order of the request", body = BoostAnswer))
)]
pub(crate) async fn query(app: Arc<App>, request: Request) -> Answer {
    query::none(request.uri())?;
    let body = app.read(request, BODY_BYTES_MAX).await?;
    let question = body::parse_usual(&body.bytes, BoostQuery::plain)?.question().map_err(Problem::invalid)?;
    let capacity = question.partners.len() * BOOST_BYTES + ENVELOPE_BYTES;
    let answer = app.campaigns.lookup(question).await?;
    written(StatusCode::OK, capacity, |json| BoostAnswer::write(&answer, json))
}
