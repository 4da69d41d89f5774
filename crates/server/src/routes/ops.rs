//! Probes, metrics, the document.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use super::json;
use crate::app::App;
use crate::gate::Answer;
use crate::problem::{Kind, Problem};
use crate::query;
use crate::wire::Health;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const HEALTH_BYTES: usize = 32;

pub(crate) const PROBLEMS: &[Kind] = &[Kind::InvalidRequest, Kind::Internal];

/// The process is alive
#[utoipa::path(get, path = "/healthz", tag = "operations",
    responses((status = 200, description = "Alive", body = Health)))]
pub(crate) async fn healthz(_: Arc<App>, request: Request) -> Answer {
    query::none(request.uri())?;
    json(StatusCode::OK, &Health { status: "ok" }, HEALTH_BYTES)
}

pub(crate) const READYZ_PROBLEMS: &[Kind] = &[Kind::InvalidRequest, Kind::Internal, Kind::NotReady];

/// The process can serve
#[utoipa::path(get, path = "/readyz", tag = "operations",
    responses((status = 200, description = "Ready", body = Health)))]
pub(crate) async fn readyz(app: Arc<App>, request: Request) -> Answer {
    query::none(request.uri())?;
    (app.ready)().map_err(|reason| Problem::new(Kind::NotReady, reason))?;
    json(StatusCode::OK, &Health { status: "ready" }, HEALTH_BYTES)
}

pub(crate) const METRICS_PROBLEMS: &[Kind] = &[Kind::InvalidRequest, Kind::Internal];

/// Metrics in the OpenMetrics text format
#[utoipa::path(get, path = "/metrics", tag = "operations",
    responses((status = 200, description = "All metrics", body = String,
        content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8")))]
pub(crate) async fn metrics(app: Arc<App>, request: Request) -> Answer {
    query::none(request.uri())?;
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &app.registry)
        .map_err(|_| Problem::new(Kind::Internal, "the metrics could not be encoded"))?;
    Ok(plain(Body::from(text), OPENMETRICS))
}

pub(crate) const OPENAPI_PROBLEMS: &[Kind] = &[Kind::InvalidRequest];

/// This document
#[utoipa::path(get, path = "/openapi.json", tag = "operations",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
pub(crate) async fn openapi(app: Arc<App>, request: Request) -> Answer {
    query::none(request.uri())?;
    Ok(plain(Body::from(app.document.get().cloned().unwrap_or_default()), "application/json"))
}

fn plain(body: Body, content_type: &'static str) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
