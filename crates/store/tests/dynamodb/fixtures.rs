use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::Key;
use saltern_core::layout::Salt;
use saltern_core::message::{Body, Digest, Draft};
use saltern_core::record::{Claim, MessageRow, Record};
use saltern_core::seq::SeqNo;
use saltern_store::{Condition, Put};

fn conversation() -> ConversationId {
    ConversationId::new("c").unwrap()
}

pub(crate) fn row_key(seq: u64) -> Key {
    Key::row(&conversation(), Salt::Unsalted, SeqNo::clamped(seq))
}

pub(crate) fn put_row(seq: u64, content: &str) -> Put {
    let body = Body {
        sender_id: ParticipantId::new("alice").unwrap(),
        receiver_id: None,
        content: content.into(),
        timestamp: None,
    };
    let draft = Draft::new(MessageId::new("m").unwrap(), body).unwrap();
    let record = Record::Message(MessageRow::new(&draft, 1_763_200_000_000));
    Put { key: row_key(seq), record, condition: Condition::Absent }
}

pub(crate) fn put_claim(seq: u64) -> Put {
    let record = Record::Claim(Claim { seq: SeqNo::clamped(seq), digest: Digest([7; 16]) });
    Put { key: Key::claim(&conversation(), &MessageId::new("m").unwrap()), record, condition: Condition::Absent }
}
