//! One message as one object: JSON, for people and other programs. What stands here is persisted.

use saltern_core::archive::SegmentError;
use saltern_core::ids::{ConversationId, ParticipantId};
use saltern_core::record::MessageRow;
use saltern_core::seq::SeqNo;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub(super) struct Single {
    pub(super) conversation_id: String,
    pub(super) seq_no: u64,
    message_id: String,
    sender_id: String,
    receiver_id: Option<String>,
    content: String,
    timestamp: Option<String>,
    /// Of the body, as in the row.
    digest: String,
}

pub(super) fn encode(conversation: &ConversationId, seq: SeqNo, row: &MessageRow, text: &str) -> Vec<u8> {
    let single = Single {
        conversation_id: conversation.to_string(),
        seq_no: seq.get(),
        message_id: row.message_id.to_string(),
        sender_id: row.sender_id.to_string(),
        receiver_id: row.receiver_id.as_ref().map(ParticipantId::to_string),
        content: text.to_owned(),
        timestamp: row.timestamp.clone(),
        digest: format!("{:?}", row.digest),
    };
    // Texts and numbers: nothing in it can fail to be JSON.
    serde_json::to_vec(&single).unwrap_or_default()
}

pub(super) fn decode(bytes: &[u8]) -> Result<Single, SegmentError> {
    serde_json::from_slice(bytes).map_err(|_| SegmentError::Damaged)
}

impl Single {
    /// The content, if it is of this message.
    pub(super) fn text_of(self, seq: SeqNo) -> Result<String, SegmentError> {
        if self.seq_no == seq.get() { Ok(self.content) } else { Err(SegmentError::Damaged) }
    }
}
