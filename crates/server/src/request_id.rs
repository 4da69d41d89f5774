//! Request ids: the client's if it sent a sound one, else ours.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 128;
const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];

/// A prefix that is random per process, and a counter.
pub(crate) struct RequestIds {
    prefix: String,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new() -> Self {
        let prefix = format!("{:016x}-", RandomState::new().hash_one("request id"));
        Self { prefix, next: AtomicU64::new(1) }
    }

    pub(crate) fn of(&self, headers: &HeaderMap) -> HeaderValue {
        match headers.get(X_REQUEST_ID) {
            Some(id) if is_sound(id.as_bytes()) => id.clone(),
            _ => self.generate(),
        }
    }

    fn generate(&self) -> HeaderValue {
        let mut id = String::with_capacity(self.prefix.len() + 2 * size_of::<u64>());
        id.push_str(&self.prefix);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let digits = number.max(1).ilog2() / 4 + 1;
        id.extend((0..digits).rev().map(|digit| HEX[usize::from((number >> (4 * digit)).to_le_bytes()[0] & 15)]));
        HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("-"))
    }
}

fn is_sound(id: &[u8]) -> bool {
    (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_hex() {
        let ids = RequestIds { prefix: "p-".into(), next: AtomicU64::new(0) };
        for number in [0, 1, 0x0F, 0x10, 0xABC, 0x1234_5678_9ABC_DEF0, u64::MAX] {
            ids.next.store(number, Ordering::Relaxed);
            assert_eq!(ids.generate(), format!("p-{number:x}"));
        }
    }
}
