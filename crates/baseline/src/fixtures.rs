//! A store that counts, and messages to put into it.

use std::sync::Arc;

use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::message::{Body, Draft};
use saltern_store::Capabilities;
use saltern_store::counted::Counted;
use saltern_store::memory::MemoryStore;

pub(crate) fn store() -> Counted {
    Counted::new(Arc::new(MemoryStore::new(Capabilities { atomic_puts: false, exclusive: false })))
}

pub(crate) fn conversation() -> ConversationId {
    ConversationId::new("c").unwrap()
}

/// A message of one WCU.
pub(crate) fn draft(id: &str) -> Draft {
    let sender_id = ParticipantId::new("alice").unwrap();
    let body = Body { sender_id, receiver_id: None, content: "hey".into(), timestamp: None };
    Draft::new(MessageId::new(id).unwrap(), body).unwrap()
}
