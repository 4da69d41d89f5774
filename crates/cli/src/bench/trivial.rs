//! The least that an HTTP endpoint can do: take the request in, answer with fixed bytes.

use std::io::Write as _;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;

use crate::args::TrivialArgs;
use crate::out;

/// Never ends by itself: whoever started it ends it.
pub(crate) async fn serve_trivial(args: &TrivialArgs) -> Result<()> {
    let status = StatusCode::from_u16(args.status).context("--status")?;
    let body = Bytes::from(vec![b' '; args.response_bytes]);
    let endpoint = move |request: Bytes| {
        let body = body.clone();
        async move {
            drop(request);
            let headers = [
                (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
                (header::HeaderName::from_static("x-request-id"), HeaderValue::from_static("0000000000000000")),
            ];
            (status, headers, body).into_response()
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    out::line(format_args!("trivial endpoint is ready on http://{}", listener.local_addr()?))?;
    std::io::stdout().flush()?;
    axum::serve(listener, Router::new().fallback(endpoint)).await?;
    Ok(())
}
