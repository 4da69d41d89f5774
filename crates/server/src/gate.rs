//! What every request goes through: request id, API key, the bound on requests in flight, metrics, one log line.
//!
//! A gate is built into each route instead of layered around all of them, so that it knows its route without looking
//! it up, and a request pays for no middleware.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::Request;
use axum::response::Response;
use http::HeaderValue;
use hyper::body::Body as _;
use prometheus_client::metrics::gauge::Gauge;
use tracing::{debug, warn};

use crate::app::App;
use crate::auth::Scope;
use crate::interface::Handler;
use crate::metrics::RouteMetrics;
use crate::problem::{Kind, Problem, overloaded};
use crate::request_id::X_REQUEST_ID;

pub(crate) type Answer = Result<Response, Problem>;

pub(crate) struct Gate {
    pub(crate) app: Arc<App>,
    /// The route's template, for logs.
    pub(crate) route: String,
    /// What a key must allow. Routes without one are for operators' probes: open, and never turned away.
    pub(crate) scope: Option<Scope>,
    pub(crate) metrics: RouteMetrics,
}

impl Gate {
    /// Lets requests through to a handler.
    pub(crate) fn opened_to<H, F>(self: Arc<Self>, handler: H) -> Handler
    where
        H: Fn(Arc<App>, Request) -> F + Copy + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        Box::new(move |request| Box::pin(Arc::clone(&self).serve(handler, request)))
    }

    async fn serve<H, F>(self: Arc<Self>, handler: H, mut request: Request) -> Response
    where
        H: FnOnce(Arc<App>, Request) -> F,
        F: Future<Output = Answer>,
    {
        let started = Instant::now();
        let request_id = self.app.request_ids.of(request.headers());
        let answer = match self.admit(&mut request) {
            Ok(_slot) => handler(self.app.clone(), request).await,
            Err(problem) => Err(problem),
        };
        let mut response = answer.unwrap_or_else(|problem| {
            self.log(&problem, &request_id);
            problem.into_response()
        });
        let took = started.elapsed();
        let status = response.status();
        self.metrics.answered(status, took);
        debug!(request_id = printable(&request_id), route = self.route, status = status.as_u16(), ?took, "answered");
        response.headers_mut().insert(X_REQUEST_ID, request_id);
        response
    }

    fn admit(&self, request: &mut Request) -> Result<Option<Slot<'_>>, Problem> {
        let Some(scope) = self.scope else { return Ok(None) };
        let share = self.app.keys.check(request.headers(), scope)?;
        if let Some(share) = share.filter(|_| !request.body().is_end_stream()) {
            request.extensions_mut().insert(Arc::clone(share));
        }
        self.app.admission.enter().map(Some).ok_or_else(overloaded)
    }

    fn log(&self, problem: &Problem, request_id: &HeaderValue) {
        let due = problem.kind != Kind::Overloaded || self.app.admission.is_log_due();
        if problem.kind.status().is_server_error() && due {
            let (kind, cause) = (problem.kind.urn(), problem.cause.as_deref());
            warn!(request_id = printable(request_id), route = self.route, kind, cause, "request failed");
        }
    }
}

/// Request ids are visible ASCII, whoever chose them.
fn printable(request_id: &HeaderValue) -> &str {
    request_id.to_str().unwrap_or_default()
}

/// Bounds the requests in flight.
pub(crate) struct Admission {
    in_flight: Gauge,
    requests_max: i64,
    started: Instant,
    /// Second in which turning away was last logged, so that a flood of requests is not also a flood of lines.
    logged_at_s: AtomicU64,
}

impl Admission {
    pub(crate) fn new(requests_max: usize, in_flight: Gauge) -> Self {
        let requests_max = i64::try_from(requests_max).unwrap_or(i64::MAX);
        Self { in_flight, requests_max, started: Instant::now(), logged_at_s: AtomicU64::new(u64::MAX) }
    }

    fn enter(&self) -> Option<Slot<'_>> {
        let slot = Slot(&self.in_flight);
        (self.in_flight.inc() < self.requests_max).then_some(slot)
    }

    fn is_log_due(&self) -> bool {
        let now_s = self.started.elapsed().as_secs();
        self.logged_at_s.swap(now_s, Ordering::Relaxed) != now_s
    }
}

/// A place among the requests in flight; dropped with the request, also when its client goes away.
struct Slot<'a>(&'a Gauge);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
