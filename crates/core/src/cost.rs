//! What rows cost, in DynamoDB's units: writes by the kilobyte, reads by four.

use crate::ids::{MessageId, ParticipantId};
use crate::message::Body;
use crate::record::{Content, MessageRow, Record};

const WRITE_UNIT_BYTES: usize = 1_024;
const READ_UNIT_BYTES: usize = 4 * 1_024;

/// Bytes that a row takes beside its variable fields: keys, names of attributes, numbers, digest, times.
const ROW_OVERHEAD_BYTES: usize = 120;
/// An epoch or a run of voids: two numbers in a list.
const PAIR_BYTES: usize = 24;

/// Write units (WCU) of an item of this size.
#[must_use]
pub fn write_units(bytes: usize) -> u64 {
    bytes.div_ceil(WRITE_UNIT_BYTES).max(1) as u64
}

/// Read units (RCU) of a strong read of this size; an eventual one costs half.
#[must_use]
pub fn read_units(bytes: usize) -> u64 {
    bytes.div_ceil(READ_UNIT_BYTES).max(1) as u64
}

pub(crate) fn message_bytes(message_id: &MessageId, body: &Body) -> usize {
    let Body { sender_id, receiver_id, content, timestamp } = body;
    bytes_around(message_id, sender_id, receiver_id.as_ref(), timestamp.as_deref()) + content.len()
}

fn bytes_around(
    message_id: &MessageId,
    sender_id: &ParticipantId,
    receiver_id: Option<&ParticipantId>,
    timestamp: Option<&str>,
) -> usize {
    ROW_OVERHEAD_BYTES
        + message_id.as_str().len()
        + sender_id.as_str().len()
        + receiver_id.map_or(0, |receiver| receiver.as_str().len())
        + timestamp.map_or(0, str::len)
}

fn row_bytes(row: &MessageRow) -> usize {
    let around = bytes_around(&row.message_id, &row.sender_id, row.receiver_id.as_ref(), row.timestamp.as_deref());
    let content = match &row.content {
        Content::Here(text) => text.len(),
        Content::Archived { at, .. } => at.leaf.len() + PAIR_BYTES,
        Content::Erased => 0,
    };
    around + content
}

impl Record {
    /// About what the row takes as an item of DynamoDB.
    #[must_use]
    pub fn item_bytes(&self) -> usize {
        match self {
            Self::Message(row) => row_bytes(row),
            Self::Void | Self::Claim(_) => ROW_OVERHEAD_BYTES,
            Self::Control(control) => {
                ROW_OVERHEAD_BYTES + PAIR_BYTES * (control.layout.epochs().len() + control.voids.runs().len())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, 1, 1)]
    #[case(1_024, 1, 1)]
    #[case(1_025, 2, 1)]
    #[case(4_096, 4, 1)]
    #[case(4_097, 5, 2)]
    #[case(400 * 1_024, 400, 100)]
    fn units_are_rounded_up(#[case] bytes: usize, #[case] writes: u64, #[case] reads: u64) {
        assert_eq!((write_units(bytes), read_units(bytes)), (writes, reads));
    }
}
