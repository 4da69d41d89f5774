//! What a person sees who opens the server in a browser: one page, and the docs of this version.
//!
//! These routes are for people, not for programs: `/openapi.json` leaves them out, and everything else about them is a
//! problem like anywhere.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, header};

use super::not_found;
use crate::app::App;
use crate::gate::Answer;

const PAGE: &str = include_str!("home.html");
/// The page loads nothing and runs nothing.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
                           frame-ancestors 'none'";

/// A page of the docs by its file's name.
const DOCS: [(&str, &str); 6] = [
    ("guide.md", include_str!("../../../../docs/guide.md")),
    ("operations.md", include_str!("../../../../docs/operations.md")),
    ("protocol.md", include_str!("../../../../docs/protocol.md")),
    ("archive.md", include_str!("../../../../docs/archive.md")),
    ("benchmarks.md", include_str!("../../../../docs/benchmarks.md")),
    ("glossary.md", include_str!("../../../../docs/glossary.md")),
];

pub(super) const DOCS_PATH: &str = "/docs/{page}";

/// The page, for a browser. A program that asks for `/` gets the same problem as for any other path without a route.
pub(super) async fn home(app: Arc<App>, request: Request) -> Answer {
    if !wants_html(request.headers()) {
        return not_found(app, request).await;
    }
    let mut response = text(PAGE, "text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    Ok(response)
}

/// A page of the docs, as plain text.
pub(super) async fn docs(app: Arc<App>, request: Request) -> Answer {
    let name = request.uri().path().rsplit('/').next().unwrap_or_default();
    match DOCS.iter().find(|(page, _)| *page == name) {
        Some((_, page)) => Ok(text(page, "text/plain; charset=utf-8")),
        None => not_found(app, request).await,
    }
}

fn text(body: &'static str, content_type: &'static str) -> Response {
    let mut response = Response::new(Body::from(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // What `/` answers depends on who asks.
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

/// Browsers name the type; programs ask for anything, or for JSON.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let types = accepted.flat_map(|value| value.split(','));
    types
        .into_iter()
        .any(|range| range.split(';').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("text/html")))
}
