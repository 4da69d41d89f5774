//! What a store keeps.

use crate::archive::ContentRef;
use crate::control::ControlRecord;
use crate::ids::{MessageId, ParticipantId};
use crate::message::{Body, Digest, Draft};
use crate::seq::SeqNo;

/// Where the content of a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// In the row.
    Here(String),
    /// In object storage. `text` is what was fetched from there; it is not part of the row.
    Archived { at: ContentRef, text: Option<String> },
    /// Nowhere, for good.
    Erased,
}

/// A stored message. Immutable, but for where its content is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    pub message_id: MessageId,
    pub sender_id: ParticipantId,
    pub receiver_id: Option<ParticipantId>,
    /// The client's clock, for display only.
    pub timestamp: Option<String>,
    pub content: Content,
    /// Of the body as it was sent, whatever has become of its content.
    pub digest: Digest,
    /// Server time at the append, for archival; never for order.
    pub ingested_at_ms: u64,
    /// 0 as appended, and one more with each change of `content`.
    pub ver: u64,
}

impl MessageRow {
    #[must_use]
    pub fn new(draft: &Draft, ingested_at_ms: u64) -> Self {
        Self::with_digest(draft.message_id.clone(), draft.body.clone(), draft.digest, ingested_at_ms)
    }

    #[must_use]
    pub fn with_digest(message_id: MessageId, body: Body, digest: Digest, ingested_at_ms: u64) -> Self {
        let Body { sender_id, receiver_id, content, timestamp } = body;
        let content = Content::Here(content);
        Self { message_id, sender_id, receiver_id, timestamp, content, digest, ingested_at_ms, ver: 0 }
    }

    /// The content, if it is at hand.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Here(text) | Content::Archived { text: Some(text), .. } => Some(text),
            Content::Archived { text: None, .. } | Content::Erased => None,
        }
    }

    /// Where the content is, if it is in object storage.
    #[must_use]
    pub fn archived_at(&self) -> Option<&ContentRef> {
        match &self.content {
            Content::Archived { at, .. } => Some(at),
            Content::Here(_) | Content::Erased => None,
        }
    }

    /// Whether this text is the content that was sent.
    #[must_use]
    pub fn was_sent_with(&self, text: &str) -> bool {
        let (receiver_id, timestamp) = (self.receiver_id.clone(), self.timestamp.clone());
        let body = Body { sender_id: self.sender_id.clone(), receiver_id, content: text.to_owned(), timestamp };
        body.digest() == self.digest
    }

    /// The row after its content has gone elsewhere.
    #[must_use]
    pub fn moved(&self, content: Content) -> Self {
        Self { content, ver: self.ver + 1, ..self.clone() }
    }
}

/// The place of a message_id: what makes a retry the same message (I2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub seq: SeqNo,
    pub digest: Digest,
}

/// A row of the messages table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Message(MessageRow),
    /// This seq_no will never hold a message.
    Void,
    Claim(Claim),
    Control(ControlRecord),
}

impl Record {
    /// What a compare-and-set compares. Voids do not change, so theirs is constant.
    #[must_use]
    pub fn version(&self) -> u64 {
        match self {
            Self::Message(row) => row.ver,
            Self::Void => 0,
            Self::Claim(claim) => claim.seq.get(),
            Self::Control(control) => control.ver,
        }
    }
}
