//! Answers with messages in them: they are large, and some clients take long to accept them.
//!
//! An answer keeps its place among the reads in flight, and its part of a budget of bytes, until it is written to the
//! connection or dropped with it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use saltern_service::conversations::{Conversations, ReadError, ReadPermit};
use tokio::sync::Notify;

use crate::budget::{ANSWERS_BYTES_MAX, Budget, Reservation};
use crate::problem::{Kind, Problem};
use crate::wire::Json;

/// An answer is cut short, with a cursor, before it grows beyond this.
pub(crate) const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a read waits for the end of another, once those have been told to end that nobody takes.
const PATIENCE: Duration = Duration::from_millis(100);

pub(crate) struct Answers {
    budget: Arc<Budget>,
    /// Notified when reads are turned away, so that answers are dropped that nobody takes.
    pub(crate) wait: Arc<Notify>,
}

impl Default for Answers {
    fn default() -> Self {
        Self { budget: Budget::new(ANSWERS_BYTES_MAX), wait: Arc::default() }
    }
}

impl Answers {
    pub(crate) async fn admit(&self, conversations: &Conversations) -> Result<ReadPermit, ReadError> {
        if let Ok(permit) = conversations.admit_read() {
            return Ok(permit);
        }
        self.wait.notify_one();
        conversations.wait_to_read(PATIENCE).await
    }

    /// An answer that `write` writes, of at most so many bytes.
    pub(crate) fn write(
        &self,
        permit: ReadPermit,
        bytes_max: usize,
        write: impl FnOnce(&mut Json) -> serde_json::Result<()>,
    ) -> Result<Response, Problem> {
        let room = self.budget.reserve(bytes_max).inspect_err(|_| self.wait.notify_one())?;
        let mut json = Json::with_capacity(bytes_max);
        write(&mut json).map_err(|_| Problem::new(Kind::Internal, "the answer could not be written down"))?;
        let held = Held { bytes: json.into_bytes(), _permit: permit, _room: room };
        debug_assert!(held.bytes.len() <= bytes_max, "{} bytes of {bytes_max}", held.bytes.len());
        let mut response = Response::new(Body::from(Bytes::from_owner(held)));
        *response.status_mut() = StatusCode::OK;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }
}

/// What hyper writes from, and drops when all of it is written or the connection has ended.
struct Held {
    bytes: Vec<u8>,
    _permit: ReadPermit,
    _room: Reservation,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
