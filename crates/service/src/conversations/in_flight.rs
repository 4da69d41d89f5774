//! Copies of one message that arrive at once wait for one another, so that they cost one ticket, not many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lru::DefaultHasher;
use saltern_core::ids::{ConversationId, MessageId};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

type MessageKey = (ConversationId, MessageId);

/// The messages that are being appended by this server. Bounded by the bound on appends.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    messages: Mutex<HashMap<MessageKey, Option<Arc<Notify>>, DefaultHasher>>,
}

/// A message's turn; over when dropped.
pub(super) struct Entry<'a> {
    in_flight: &'a InFlight,
    key: MessageKey,
    /// Another copy was there first: it has most likely left a claim.
    pub(super) waited: bool,
}

impl InFlight {
    /// Waits until no other copy of the message is under way; `None` if that takes too long.
    pub(super) async fn enter(
        &self,
        conversation: &ConversationId,
        message: &MessageId,
        deadline: Instant,
    ) -> Option<Entry<'_>> {
        let key = (conversation.clone(), message.clone());
        let mut waited = false;
        loop {
            let other = {
                let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
                match messages.get_mut(&key) {
                    None => {
                        messages.insert(key.clone(), None);
                        return Some(Entry { in_flight: self, key, waited });
                    }
                    Some(notify) => Arc::clone(notify.get_or_insert_default()).notified_owned(),
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
        if let Some(Some(waiting)) = messages.remove(&self.key) {
            waiting.notify_waiters();
        }
    }
}
