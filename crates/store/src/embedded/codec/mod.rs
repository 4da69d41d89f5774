//! Rows as bytes. What stands here is persisted: a new shape needs a new tag.
//!
//! Tag, version, fields. Numbers are LEB128 varints, texts have their length in front, and an absent text has length
//! `0` where a present one has its length plus one. The engine checksums its blocks, so there is no checksum here.

mod campaigns;
mod control;
mod wire;

#[cfg(test)]
mod tests;

use saltern_core::campaigns::MarketError;
use saltern_core::ids::{IdError, MessageId, ParticipantId};
use saltern_core::layout::LayoutError;
use saltern_core::message::{Body, Digest};
use saltern_core::record::{Claim, MessageRow, Record};
use saltern_core::seq::SeqNo;

pub(super) use campaigns::{
    decode_boost, decode_letter, decode_market, encode_boost, encode_letter, encode_market, rank,
};
use wire::{Reader, Writer};

const MESSAGE: u8 = 1;
const VOID: u8 = 2;
const CLAIM: u8 = 3;
/// Control records without the time of their last growth: still read, no longer written.
const CONTROL_WITHOUT_GROWTH: u8 = 4;
const CONTROL: u8 = 5;
const BOOST: u8 = 6;
const MARKET: u8 = 7;
const DEAD_LETTER: u8 = 8;

/// Why bytes are not a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Damage {
    #[error("unknown kind of row {0}")]
    Kind(u8),
    #[error("row ends too early")]
    Truncated,
    #[error("row goes on after its end")]
    Trailing,
    #[error("number out of range")]
    Number,
    #[error("text is not UTF-8")]
    Text,
    #[error("key does not end in a sort key")]
    Key,
    #[error("id")]
    Id(#[from] IdError),
    #[error("layout")]
    Layout(#[from] LayoutError),
    #[error("market")]
    Market(#[from] MarketError),
}

pub(super) fn encode(record: &Record) -> Vec<u8> {
    let mut out = Writer::with_capacity(size_hint(record));
    match record {
        Record::Message(row) => {
            out.head(MESSAGE, record.version());
            message(row, &mut out);
        }
        Record::Void => out.head(VOID, record.version()),
        Record::Claim(claim) => {
            out.head(CLAIM, record.version());
            out.bytes(&claim.digest.0);
        }
        Record::Control(control) => {
            out.head(CONTROL, record.version());
            control::encode(control, &mut out);
        }
    }
    out.finish()
}

fn size_hint(record: &Record) -> usize {
    const FIXED: usize = 64;
    match record {
        Record::Message(MessageRow { message_id, body, .. }) => {
            FIXED
                + message_id.as_str().len()
                + body.sender_id.as_str().len()
                + body.receiver_id.as_ref().map_or(0, |r| r.as_str().len())
                + body.content.len()
                + body.timestamp.as_ref().map_or(0, String::len)
        }
        _ => FIXED,
    }
}

fn message(row: &MessageRow, out: &mut Writer) {
    out.number(row.ingested_at_ms);
    out.bytes(&row.digest.0);
    out.text(row.message_id.as_str());
    out.text(row.body.sender_id.as_str());
    out.maybe_text(row.body.receiver_id.as_ref().map(ParticipantId::as_str));
    out.text(&row.body.content);
    out.maybe_text(row.body.timestamp.as_deref());
}

/// The version of a row, without looking at the rest of it.
pub(super) fn version(bytes: &[u8]) -> Result<u64, Damage> {
    Reader::new(bytes).head().map(|(_, version)| version)
}

pub(super) fn decode(bytes: &[u8]) -> Result<Record, Damage> {
    let mut from = Reader::new(bytes);
    let (kind, version) = from.head()?;
    let record = match kind {
        MESSAGE => Record::Message(read_message(&mut from)?),
        VOID => Record::Void,
        CLAIM => {
            Record::Claim(Claim { seq: SeqNo::new(version).ok_or(Damage::Number)?, digest: Digest(from.array()?) })
        }
        CONTROL | CONTROL_WITHOUT_GROWTH => Record::Control(control::decode(version, kind == CONTROL, &mut from)?),
        kind => return Err(Damage::Kind(kind)),
    };
    from.end()?;
    if record.version() != version {
        return Err(Damage::Number);
    }
    Ok(record)
}

fn read_message(from: &mut Reader<'_>) -> Result<MessageRow, Damage> {
    Ok(MessageRow {
        ingested_at_ms: from.number()?,
        digest: Digest(from.array()?),
        message_id: MessageId::new(from.text()?)?,
        body: Body {
            sender_id: ParticipantId::new(from.text()?)?,
            receiver_id: from.maybe_text()?.map(ParticipantId::new).transpose()?,
            content: from.text()?.to_owned(),
            timestamp: from.maybe_text()?.map(str::to_owned),
        },
    })
}
