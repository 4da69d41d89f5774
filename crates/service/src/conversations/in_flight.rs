//! Copies of one message that arrive at once wait for one another, so that they cost one ticket, not many.

use std::collections::{HashMap, hash_map};
use std::sync::{Arc, Mutex, PoisonError};

use lru::DefaultHasher;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::fingerprint::Fingerprint;

/// The messages that are being appended by this server. Bounded by the bound on appends.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    messages: Mutex<HashMap<Fingerprint, Option<Arc<Notify>>, DefaultHasher>>,
}

/// A message's turn; over when dropped.
pub(super) struct Entry<'a> {
    in_flight: &'a InFlight,
    message: Fingerprint,
    /// Another copy was there first: it has most likely left a claim.
    pub(super) waited: bool,
}

impl InFlight {
    /// Waits until no other copy of the message is under way; `None` if that takes too long.
    pub(super) async fn enter(&self, message: Fingerprint, deadline: Instant) -> Option<Entry<'_>> {
        let mut waited = false;
        loop {
            let other = {
                let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
                match messages.entry(message) {
                    hash_map::Entry::Vacant(free) => {
                        free.insert(None);
                        return Some(Entry { in_flight: self, message, waited });
                    }
                    hash_map::Entry::Occupied(mut there) => {
                        Arc::clone(there.get_mut().get_or_insert_default()).notified_owned()
                    }
                }
            };
            waited = true;
            timeout_at(deadline, other).await.ok()?;
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut messages = self.in_flight.messages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(waiting)) = messages.remove(&self.message) {
            waiting.notify_waiters();
        }
    }
}
