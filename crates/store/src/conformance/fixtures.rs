//! Rows to write and the short ways to write them.

use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::Key;
use saltern_core::layout::Salt;
use saltern_core::message::{Body, Digest, Draft};
use saltern_core::record::{Claim, MessageRow, Record};
use saltern_core::seq::SeqNo;

use crate::port::{Condition, Consistency, Put, PutOutcome, Store};

pub(super) fn conversation(name: &str) -> ConversationId {
    ConversationId::new(name).expect("a legal name")
}

pub(super) fn row_key(name: &str, sort: u64) -> Key {
    Key::row(&conversation(name), Salt::Unsalted, SeqNo::clamped(sort))
}

pub(super) fn claim_key(name: &str, message: &str) -> Key {
    Key::claim(&conversation(name), &MessageId::new(message).expect("a legal id"))
}

pub(super) fn message(id: &str, content: &str) -> Record {
    let body = Body {
        sender_id: ParticipantId::new("alice").expect("a legal id"),
        receiver_id: None,
        content: content.into(),
        timestamp: None,
    };
    let draft = Draft::new(MessageId::new(id).expect("a legal id"), body).expect("a legal message");
    Record::Message(MessageRow::new(&draft, 1_763_200_000_000))
}

pub(super) fn claim(seq: u64) -> Record {
    Record::Claim(Claim { seq: SeqNo::clamped(seq), digest: Digest([7; 16]) })
}

pub(super) fn absent(key: Key, record: Record) -> Put {
    Put { key, record, condition: Condition::Absent }
}

pub(super) async fn put(store: &dyn Store, put: Put) -> PutOutcome {
    store.put(&put).await.expect("a put is answered")
}

pub(super) async fn write(store: &dyn Store, key: Key, record: Record) {
    assert_eq!(put(store, absent(key.clone(), record)).await, PutOutcome::Applied, "{key:?} was not new");
}

pub(super) async fn read(store: &dyn Store, key: &Key) -> Option<Record> {
    let mut records = store.get(std::slice::from_ref(key), Consistency::Strong).await.expect("a get is answered");
    assert_eq!(records.len(), 1);
    records.pop().flatten()
}
