//! What all requests share.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::extract::Request;
use bytes::Bytes;
use prometheus_client::registry::Registry;
use saltern_service::campaigns::Campaigns;
use saltern_service::conversations::Conversations;
use saltern_service::upkeep::Upkeep;

use crate::auth::Keys;
use crate::body::{self, Limits, Received, Room};
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
    pub(crate) room: Room,
    /// The OpenAPI document, once all routes are known.
    pub(crate) document: OnceLock<Bytes>,
}

impl App {
    /// A JSON body of at most so many bytes.
    pub(crate) async fn read(&self, request: Request, bytes_max: usize) -> Result<Received<'_>, Problem> {
        body::read(request, Limits { bytes_max, timeout: self.body_timeout, room: &self.room }).await
    }
}
