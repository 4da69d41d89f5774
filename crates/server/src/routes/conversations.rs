//! What operators look at.

use std::sync::Arc;

use axum::extract::Request;
use http::StatusCode;

use super::json;
use crate::app::App;
use crate::gate::Answer;
use crate::problem::Kind;
use crate::wire::{Conversation, HotList};
use crate::{path, query};

const LINE_BYTES: usize = 160;

pub(crate) const VIEW_PROBLEMS: &[Kind] =
    &[Kind::InvalidRequest, Kind::DataLoss, Kind::Internal, Kind::StoreUnavailable];

/// The operator's view of a conversation
///
/// One that was never written to has `head_seq` 0, `n` 1, `horizon` 1 and no epochs; it is not 404.
#[utoipa::path(
    get,
    path = "/v1/conversations/{conversation_id}",
    tag = "operations",
    params(("conversation_id" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded")),
    responses((status = 200, description = "The conversation", body = Conversation))
)]
pub(crate) async fn view(app: Arc<App>, request: Request) -> Answer {
    let id = path::conversation_id(request.uri())?;
    query::none(request.uri())?;
    let view = app.conversations.view(&id).await?;
    let body =
        view.as_ref().map_or_else(|| Conversation::unwritten(id.as_str()), |view| Conversation::new(id.as_str(), view));
    json(StatusCode::OK, &body, 2 * LINE_BYTES)
}

pub(crate) const HOT_PROBLEMS: &[Kind] = &[Kind::InvalidRequest, Kind::Internal, Kind::RegistryUnavailable];

/// The hottest conversations
///
/// By their present rate over all servers, hottest first.
#[utoipa::path(
    get,
    path = "/v1/hot",
    tag = "operations",
    params(("limit" = Option<u16>, Query, minimum = 1, maximum = 200, description = "20 if absent")),
    responses((status = 200, description = "Hottest first", body = HotList))
)]
pub(crate) async fn hot(app: Arc<App>, request: Request) -> Answer {
    let limit = query::limit_only(request.uri())?;
    let hot = app.conversations.hot(limit).await?;
    json(StatusCode::OK, &HotList::new(&hot), hot.len() * LINE_BYTES)
}
