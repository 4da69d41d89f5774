//! Requests and responses as they are on the wire.

mod incoming;
mod outgoing;

pub(crate) use incoming::{Batch, NewMessage, Object};
pub(crate) use outgoing::{
    Appended, BatchAnswer, BatchResult, Conversation, Health, HotList, Message, Newer, Older, Page,
};
