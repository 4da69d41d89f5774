//! Tenants: the markets that campaigns are for.

use std::sync::Arc;

use axum::extract::Request;
use http::StatusCode;
use saltern_core::limits::BODY_BYTES_MAX;

use super::json;
use crate::app::App;
use crate::body;
use crate::gate::Answer;
use crate::problem::{Kind, Problem, unknown_tenant, unsettled};
use crate::wire::TenantBody;
use crate::{path, query};

const TENANT_BYTES: usize = 256;

pub(crate) const PUT_PROBLEMS: &[Kind] = &[
    Kind::InvalidRequest,
    Kind::RequestTimeout,
    Kind::PayloadTooLarge,
    Kind::UnsupportedMediaType,
    Kind::DataLoss,
    Kind::Internal,
    Kind::OutcomeUnknown,
];

/// Set a tenant's market
///
/// Replaces it as a whole. Other servers go by the old one for at most ten seconds. Campaigns that are there stay: a slot
/// that the market no longer has is not active.
#[utoipa::path(
    put,
    path = "/v1/tenants/{tenant}",
    tag = "campaigns",
    params(("tenant" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded")),
    request_body(content = TenantBody, description = "At most 256 KiB"),
    responses((status = 200, description = "The market as it is now", body = TenantBody))
)]
pub(crate) async fn put_tenant(app: Arc<App>, request: Request) -> Answer {
    let tenant = path::tenant(request.uri())?;
    query::none(request.uri())?;
    let body = app.read(request, BODY_BYTES_MAX).await?;
    let market = body::parse::<TenantBody>(&body.bytes)?.market().map_err(Problem::invalid)?;
    let put = app.campaigns.put_market(&tenant, &market).await;
    put.map_err(|error| unsettled(&error, "the market may or may not have been set; retry with the same body"))?;
    json(StatusCode::OK, &TenantBody::new(&market), TENANT_BYTES)
}

pub(crate) const GET_PROBLEMS: &[Kind] =
    &[Kind::InvalidRequest, Kind::UnknownTenant, Kind::DataLoss, Kind::Internal, Kind::StoreUnavailable];

/// A tenant's market
#[utoipa::path(
    get,
    path = "/v1/tenants/{tenant}",
    tag = "campaigns",
    params(("tenant" = String, Path, min_length = 1, max_length = 256, description = "1 to 256 bytes, percent-encoded")),
    responses((status = 200, description = "The market", body = TenantBody))
)]
pub(crate) async fn tenant(app: Arc<App>, request: Request) -> Answer {
    let tenant = path::tenant(request.uri())?;
    query::none(request.uri())?;
    let market = app.campaigns.market(&tenant).await?.ok_or_else(|| unknown_tenant(&tenant))?;
    json(StatusCode::OK, &TenantBody::new(&market), TENANT_BYTES)
}
