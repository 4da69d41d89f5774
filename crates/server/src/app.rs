//! What all requests share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::Request;
use bytes::Bytes;
use prometheus_client::registry::Registry;
use saltern_service::campaigns::Campaigns;
use saltern_service::conversations::Conversations;
use saltern_service::upkeep::Upkeep;

use crate::answers::Answers;
use crate::auth::Keys;
use crate::body::{self, Limits, Received};
use crate::budget::Budget;
use crate::gate::Admission;
use crate::problem::Problem;
use crate::request_id::RequestIds;

/// Asks whether the process can serve; the error says why it cannot, for people.
pub type Readiness = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What the server serves.
#[derive(Clone)]
pub struct Services {
    pub conversations: Conversations,
    pub campaigns: Campaigns,
    pub upkeep: Arc<Upkeep>,
}

pub(crate) struct App {
    pub(crate) conversations: Conversations,
    pub(crate) campaigns: Campaigns,
    pub(crate) upkeep: Arc<Upkeep>,
    pub(crate) ready: Readiness,
    pub(crate) registry: Registry,
    pub(crate) keys: Keys,
    pub(crate) admission: Admission,
    pub(crate) request_ids: RequestIds,
    pub(crate) body_timeout: Duration,
    /// Memory for the bodies of requests.
    pub(crate) bodies: Arc<Budget>,
    pub(crate) answers: Answers,
    /// The OpenAPI document, once all routes are known.
    pub(crate) document: OnceLock<Bytes>,
}

impl App {
    /// A JSON body of at most so many bytes.
    pub(crate) async fn read(&self, request: Request, bytes_max: usize) -> Result<Received, Problem> {
        let budget = self.budget_of(&request);
        body::read(request, Limits { bytes_max, timeout: self.body_timeout, budget: &budget }).await
    }

    /// The memory that the body of a request may take up: its API key's share, if it was sent with one.
    pub(crate) fn budget_of(&self, request: &Request) -> Arc<Budget> {
        Arc::clone(request.extensions().get().unwrap_or(&self.bodies))
    }
}
