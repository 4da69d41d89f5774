//! The document of one day, slot and shard: a list of the partners that are boosted then.

use std::borrow::Cow;
use std::sync::Arc;

use saltern_core::campaigns::{Moment, Score, Terms};
use saltern_core::ids::{IdError, MessageId, ParticipantId};
use saltern_core::message::{Body, Digest};
use saltern_core::record::{MessageRow, Record};
use saltern_store::StoreError;
use serde::{Deserialize, Serialize};

/// With attribute names in every entry, as a list of maps has them in DynamoDB.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Document<'a> {
    /// 1 for the first, and one more with every change.
    pub(super) version: u64,
    #[serde(borrow)]
    pub(super) partners: Vec<Entry<'a>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    pub(super) partner_id: Cow<'a, str>,
    boost_score: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    starts_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends_at: Option<i64>,
    last_updated: i64,
}

impl<'a> Entry<'a> {
    pub(super) fn new(partner: &'a str, terms: &Terms, last_updated: Moment) -> Self {
        let window = terms.schedule.window();
        Self {
            partner_id: partner.into(),
            boost_score: terms.score.get(),
            starts_at: window.starts_at.map(Moment::as_ms),
            ends_at: window.ends_at.map(Moment::as_ms),
            last_updated: last_updated.as_ms(),
        }
    }

    /// The score, if the campaign runs at this time.
    pub(super) fn score_at(&self, at: Moment) -> Option<Score> {
        let began = self.starts_at.is_none_or(|start| start <= at.as_ms());
        let goes_on = self.ends_at.is_none_or(|end| at.as_ms() < end);
        Score::new(self.boost_score).ok().filter(|_| began && goes_on)
    }
}

impl<'a> Document<'a> {
    pub(super) fn put(&mut self, entry: Entry<'a>) {
        match self.partners.iter_mut().find(|present| present.partner_id == entry.partner_id) {
            Some(present) => *present = entry,
            None => self.partners.push(entry),
        }
    }

    pub(super) fn remove(&mut self, partner: &str) {
        self.partners.retain(|entry| entry.partner_id != partner);
    }

    pub(super) fn record(&self) -> Result<Record, StoreError> {
        let content = serde_json::to_string(self).map_err(|error| StoreError::Unavailable(Arc::new(error)))?;
        let id = |error: IdError| StoreError::Unavailable(Arc::new(error));
        let sender_id = ParticipantId::new("v1").map_err(id)?;
        let body = Body { sender_id, receiver_id: None, content, timestamp: None };
        let message_id = MessageId::new("document").map_err(id)?;
        Ok(Record::Message(MessageRow::with_digest(message_id, body, Digest([0; 16]), self.version)))
    }
}

/// The text of a document.
pub(super) fn text(record: &Record) -> Option<&str> {
    match record {
        Record::Message(row) => row.text(),
        _ => None,
    }
}

pub(super) fn parse(text: &str) -> Result<Document<'_>, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(Arc::new(error)))
}
