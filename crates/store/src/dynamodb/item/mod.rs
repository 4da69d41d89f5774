//! Rows as items, readable in AWS's console. What stands here is persisted: names and types stay as they are.
//!
//! `v` is the version that conditions compare. Absent optional fields are absent attributes. Attributes that are not
//! named here are left alone, so that older servers can read what newer ones write.

pub(super) mod campaigns;
mod control;
mod fields;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use saltern_core::archive::RefError;
use saltern_core::campaigns::MarketError;
use saltern_core::ids::{IdError, MessageId, ParticipantId};
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::LayoutError;
use saltern_core::record::{Claim, Content, MessageRow, Record};
use saltern_core::seq::SeqNo;

use fields::Fields;
pub(super) use fields::{digest, number, signed, text};

/// The attributes by which DynamoDB's index lists the conversations that the archive has to look at: spread over some
/// partitions, and each of them in the order of time.
pub(super) const DUE_SHARD: &str = "due";
pub(super) const OLDEST: &str = "oldest";
pub(super) const DUE_SHARDS: u16 = 16;

pub(super) type Item = HashMap<String, AttributeValue>;

pub(super) const PK: &str = "pk";
pub(super) const SK: &str = "sk";
/// The attribute by which DynamoDB lets claims go.
pub(super) const EXPIRES_AT: &str = "expires_at";

const KIND: &str = "kind";
const VERSION: &str = "v";
const MESSAGE: &str = "message";
const VOID: &str = "void";
const CLAIM: &str = "claim";
const CONTROL: &str = "control";
const S3_REF: &str = "s3_ref";
const ERASED: &str = "erased";

/// Why an item is not a row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Damage {
    #[error("unknown kind of row {0:?}")]
    Kind(String),
    #[error("attribute {0} is missing")]
    Missing(&'static str),
    #[error("attribute {0} is not what it should be")]
    Wrong(&'static str),
    #[error("id")]
    Id(#[from] IdError),
    #[error("layout")]
    Layout(#[from] LayoutError),
    #[error("market")]
    Market(#[from] MarketError),
    #[error("archive")]
    Archive(#[from] RefError),
}

pub(super) fn of_key(key: &Key) -> Item {
    Item::from([(PK.into(), text(key.partition.as_str())), (SK.into(), number(key.sort))])
}

/// Where a conversation stands in the index, by the partition of its control record (FNV-1a: anything even and lasting).
pub(super) fn due_shard(partition: &PartitionKey) -> u16 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = partition.as_str().bytes().fold(0x811C_9DC5, step);
    u16::try_from((hash >> 16) % u32::from(DUE_SHARDS)).unwrap_or(0)
}

/// Takes the key's half out of an item.
pub(super) fn partition_key(item: &mut Item) -> Result<String, Damage> {
    Fields::of(item).text(PK)
}

pub(super) fn sort_key(item: &mut Item) -> Result<u64, Damage> {
    Fields::of(item).number(SK)
}

pub(super) fn oldest(item: &mut Item) -> Result<u64, Damage> {
    Fields::of(item).number(OLDEST)
}

pub(super) fn encode(key: &Key, record: &Record, claims_expire_at_s: u64) -> Item {
    let mut item = of_key(key);
    let mut set = |name: &str, value: AttributeValue| {
        item.insert(name.to_owned(), value);
    };
    set(VERSION, number(record.version()));
    match record {
        Record::Message(row) => {
            set(KIND, text(MESSAGE));
            message(row, set);
        }
        Record::Void => set(KIND, text(VOID)),
        Record::Claim(claim) => {
            set(KIND, text(CLAIM));
            set("seq_no", number(claim.seq.get()));
            set("digest", fields::digest(claim.digest));
            set(EXPIRES_AT, number(claims_expire_at_s));
        }
        Record::Control(record) => {
            set(KIND, text(CONTROL));
            control::encode(key, record, set);
        }
    }
    item
}

fn message(row: &MessageRow, mut set: impl FnMut(&str, AttributeValue)) {
    set("message_id", text(row.message_id.as_str()));
    set("sender_id", text(row.sender_id.as_str()));
    if let Some(receiver) = &row.receiver_id {
        set("receiver_id", text(receiver.as_str()));
    }
    match &row.content {
        Content::Here(content) => set("content", text(content)),
        Content::Archived { at, .. } => set(S3_REF, text(&at.to_string())),
        Content::Erased => set(ERASED, AttributeValue::Bool(true)),
    }
    if let Some(timestamp) = &row.timestamp {
        set("timestamp", text(timestamp));
    }
    set("ingested_at", number(row.ingested_at_ms));
    set("digest", fields::digest(row.digest));
}

pub(super) fn decode(mut item: Item) -> Result<Record, Damage> {
    let mut fields = Fields::of(&mut item);
    let version = fields.number(VERSION)?;
    let record = match fields.text(KIND)?.as_str() {
        MESSAGE => Record::Message(read_message(version, &mut fields)?),
        VOID => Record::Void,
        CLAIM => Record::Claim(Claim { seq: fields.seq("seq_no")?, digest: fields.digest("digest")? }),
        CONTROL => Record::Control(control::decode(&mut fields)?),
        kind => return Err(Damage::Kind(kind.to_owned())),
    };
    if record.version() == version { Ok(record) } else { Err(Damage::Wrong(VERSION)) }
}

fn read_message(ver: u64, fields: &mut Fields<'_>) -> Result<MessageRow, Damage> {
    let receiver = fields.maybe_text("receiver_id")?;
    Ok(MessageRow {
        message_id: MessageId::new(&fields.text("message_id")?)?,
        sender_id: ParticipantId::new(&fields.text("sender_id")?)?,
        receiver_id: receiver.map(|receiver| ParticipantId::new(&receiver)).transpose()?,
        content: read_content(fields)?,
        timestamp: fields.maybe_text("timestamp")?,
        digest: fields.digest("digest")?,
        ingested_at_ms: fields.number("ingested_at")?,
        ver,
    })
}

fn read_content(fields: &mut Fields<'_>) -> Result<Content, Damage> {
    if fields.maybe_flag(ERASED)? {
        return Ok(Content::Erased);
    }
    Ok(match fields.maybe_text(S3_REF)? {
        Some(at) => Content::Archived { at: at.parse()?, text: None },
        None => Content::Here(fields.text("content")?),
    })
}
