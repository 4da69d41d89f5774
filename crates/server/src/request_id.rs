//! Request ids: the client's if it sent a sound one, else ours.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 128;

/// A prefix that is random per process, and a counter.
pub(crate) struct RequestIds {
    prefix: u64,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        Self { prefix: RandomState::new().hash_one("request id"), next: AtomicU64::new(1) }
    }

    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        match headers.get(X_REQUEST_ID) {
            Some(id) if is_sound(id.as_bytes()) => id.clone(),
            _ => self.generate(),
        }
    }

    fn generate(&self) -> HeaderValue {
        let id = format!("{:016x}-{:x}", self.prefix, self.next.fetch_add(1, Ordering::Relaxed));
        HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("-"))
    }
}

fn is_sound(id: &[u8]) -> bool {
    (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}
