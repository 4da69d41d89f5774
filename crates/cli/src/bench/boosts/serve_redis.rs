//! The same endpoint over Redis: takes the same request, and answers with the same JSON.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use saltern_core::campaigns::Moment;
use saltern_core::ids::PartnerId;
use serde::{Deserialize, Serialize};

use super::market::market;
use super::redis::RedisRows;
use crate::args::RedisBoostsArgs;
use crate::out;
use crate::service::now_ms;

#[derive(Deserialize)]
struct Question {
    partner_ids: Vec<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    boosts: Vec<Boost<'a>>,
    unread: [&'a str; 0],
}

#[derive(Serialize)]
struct Boost<'a> {
    partner_id: &'a str,
    boost_score: f64,
    area: &'static str,
}

/// Never ends by itself: whoever started it ends it.
pub(crate) async fn serve_redis_boosts(args: &RedisBoostsArgs) -> Result<()> {
    let rows = Arc::new(RedisRows::new(args.redis_port, market()?));
    let endpoint = move |request: Bytes| {
        let rows = Arc::clone(&rows);
        async move {
            match answer(&rows, &request).await {
                Ok(body) => response(StatusCode::OK, body),
                Err(error) => response(StatusCode::INTERNAL_SERVER_ERROR, error.to_string().into()),
            }
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    out::line(format_args!("boosts out of Redis are ready on http://{}", listener.local_addr()?))?;
    axum::serve(listener, Router::new().fallback(endpoint)).await?;
    Ok(())
}

async fn answer(rows: &RedisRows, request: &[u8]) -> Result<Bytes> {
    let question: Question = serde_json::from_slice(request)?;
    let partners: Vec<_> = question.partner_ids.iter().map(|id| PartnerId::new(id)).collect::<Result<_, _>>()?;
    let now = Moment::from_ms(i64::try_from(now_ms()).context("clock")?)?;
    let found = rows.search(&partners, now).await?;
    let mut boosts = Vec::with_capacity(found.len());
    for (partner, score) in found {
        boosts.push(Boost { partner_id: partner.as_str(), boost_score: score.get(), area: "*" });
    }
    Ok(serde_json::to_vec(&Answer { boosts, unread: [] })?.into())
}

fn response(status: StatusCode, body: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::HeaderName::from_static("x-request-id"), HeaderValue::from_static("0000000000000000")),
    ];
    (status, headers, body).into_response()
}
