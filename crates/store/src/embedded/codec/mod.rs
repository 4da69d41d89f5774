//! Rows as bytes. What stands here is persisted: a new shape needs a new tag.
//!
//! Tag, version, fields. Numbers are LEB128 varints, texts have their length in front, and an absent text has length
//! `0` where a present one has its length plus one. The engine checksums its blocks, so there is no checksum here.

mod campaigns;
mod control;
mod pack;
mod wire;

#[cfg(test)]
mod tests;

use saltern_core::archive::RefError;
use saltern_core::campaigns::MarketError;
use saltern_core::ids::{IdError, MessageId, ParticipantId};
use saltern_core::layout::LayoutError;
use saltern_core::message::Digest;
use saltern_core::record::{Claim, Content, MessageRow, Record};
use saltern_core::seq::SeqNo;

pub(super) use campaigns::{
    decode_boost, decode_letter, decode_market, encode_boost, encode_letter, encode_market, encode_removed_letter, rank,
};
pub(super) use pack::{decode_pack, encode_pack, stripe_end};
use wire::{Reader, Writer};

const MESSAGE: u8 = 1;
const VOID: u8 = 2;
const CLAIM: u8 = 3;
const BOOST: u8 = 6;
const MARKET: u8 = 7;
const DEAD_LETTER: u8 = 8;
const ARCHIVED: u8 = 9;
const ERASED: u8 = 10;
const CONTROL: u8 = 11;
/// Not a row, but several of them.
const PACK: u8 = 12;

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
    #[error("archive")]
    Archive(#[from] RefError),
}

/// Writes a row behind what is there.
pub(super) fn encode_behind(bytes: Vec<u8>, record: &Record) -> Vec<u8> {
    let mut out = Writer::behind(bytes);
    match record {
        Record::Message(row) => {
            let kind = match &row.content {
                Content::Here(_) => MESSAGE,
                Content::Archived { .. } => ARCHIVED,
                Content::Erased => ERASED,
            };
            out.head(kind, record.version());
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

/// About how many bytes a row takes, rather more than less.
pub(super) fn size_hint(record: &Record) -> usize {
    const FIXED: usize = 64;
    match record {
        Record::Message(row) => {
            FIXED
                + row.message_id.as_str().len()
                + row.sender_id.as_str().len()
                + row.receiver_id.as_ref().map_or(0, |r| r.as_str().len())
                + row.text().map_or(0, str::len)
                + row.timestamp.as_ref().map_or(0, String::len)
        }
        _ => FIXED,
    }
}

fn message(row: &MessageRow, out: &mut Writer) {
    out.number(row.ingested_at_ms);
    out.bytes(&row.digest.0);
    out.text(row.message_id.as_str());
    out.text(row.sender_id.as_str());
    out.maybe_text(row.receiver_id.as_ref().map(ParticipantId::as_str));
    match &row.content {
        Content::Here(text) => out.text(text),
        Content::Archived { at, .. } => out.text(&at.to_string()),
        Content::Erased => {}
    }
    out.maybe_text(row.timestamp.as_deref());
}

/// The version of a row, without looking at the rest of it.
pub(super) fn version(bytes: &[u8]) -> Result<u64, Damage> {
    Reader::new(bytes).head().map(|(_, version)| version)
}

pub(super) fn decode(bytes: &[u8]) -> Result<Record, Damage> {
    let mut from = Reader::new(bytes);
    let (kind, version) = from.head()?;
    let record = match kind {
        MESSAGE | ARCHIVED | ERASED => Record::Message(read_message(kind, version, &mut from)?),
        VOID => Record::Void,
        CLAIM => {
            Record::Claim(Claim { seq: SeqNo::new(version).ok_or(Damage::Number)?, digest: Digest(from.array()?) })
        }
        CONTROL => Record::Control(control::decode(version, &mut from)?),
        kind => return Err(Damage::Kind(kind)),
    };
    from.end()?;
    if record.version() != version {
        return Err(Damage::Number);
    }
    Ok(record)
}

fn read_message(kind: u8, ver: u64, from: &mut Reader<'_>) -> Result<MessageRow, Damage> {
    Ok(MessageRow {
        ver,
        ingested_at_ms: from.number()?,
        digest: Digest(from.array()?),
        message_id: MessageId::new(from.text()?)?,
        sender_id: ParticipantId::new(from.text()?)?,
        receiver_id: from.maybe_text()?.map(ParticipantId::new).transpose()?,
        content: match kind {
            ARCHIVED => Content::Archived { at: from.text()?.parse()?, text: None },
            ERASED => Content::Erased,
            _ => Content::Here(from.text()?.to_owned()),
        },
        timestamp: from.maybe_text()?.map(str::to_owned),
    })
}
