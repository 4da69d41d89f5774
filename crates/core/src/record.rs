//! What a store keeps.

use crate::control::ControlRecord;
use crate::ids::MessageId;
use crate::message::{Body, Digest, Draft};
use crate::seq::SeqNo;

/// A stored message. Immutable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    pub message_id: MessageId,
    pub body: Body,
    pub digest: Digest,
    /// Server time at the append, for archival; never for order.
    pub ingested_at_ms: u64,
}

impl MessageRow {
    #[must_use]
    pub fn new(draft: &Draft, ingested_at_ms: u64) -> Self {
        Self { message_id: draft.message_id.clone(), body: draft.body.clone(), digest: draft.digest, ingested_at_ms }
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
    /// What a compare-and-set compares. Rows of messages and voids do not change, so theirs is constant.
    #[must_use]
    pub fn version(&self) -> u64 {
        match self {
            Self::Message(_) | Self::Void => 0,
            Self::Claim(claim) => claim.seq.get(),
            Self::Control(control) => control.ver,
        }
    }
}
