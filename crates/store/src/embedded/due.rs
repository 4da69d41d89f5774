//! The index of conversations that the archive has to look at: a time and a conversation for each control record that was ever
//! written. Entries that the record has left behind are dropped when they are met: its time only rises, so they stay behind.

use std::ops::Bound;

use async_trait::async_trait;
use saltern_core::ids::ConversationId;
use saltern_core::key::{Key, PartitionKey, Place};
use saltern_core::page::Order;
use saltern_core::record::Record;

use super::codec::Damage;
use super::commit::{Premise, Write};
use super::log::Change;
use super::physical::{Space, due_key, due_parts};
use super::store::EmbeddedStore;
use crate::due::{Due, DueMark, DuePage};
use crate::port::{Put, StoreError};

/// Entries looked at in one call, whether or not they stand.
const LOOKED_AT_MAX: usize = 10_000;

fn write(change: Change) -> Write {
    Write::new(change, Premise::Nothing, None)
}

/// What a put adds to the index.
pub(super) fn index(put: &Put) -> Option<Write> {
    let Record::Control(control) = &put.record else { return None };
    let key = due_key(control.archive.oldest_ms?, &put.key.partition);
    Some(write(Change::put(Space::Due, key, &[])))
}

fn named(key: &[u8]) -> Result<(u64, ConversationId), Damage> {
    let (oldest_ms, partition) = due_parts(key).ok_or(Damage::Key)?;
    let partition = PartitionKey::stored(String::from_utf8(partition.to_vec()).map_err(|_| Damage::Text)?);
    match (Key { partition, sort: 0 }).place() {
        Some(Place::Control(conversation)) => Ok((oldest_ms, conversation)),
        _ => Err(Damage::Key),
    }
}

#[async_trait]
impl Due for EmbeddedStore {
    async fn due(&self, oldest_ms_max: u64, behind: Option<&DueMark>, limit: usize) -> Result<DuePage, StoreError> {
        self.check()?;
        let last = behind.and_then(|mark| mark.last.as_ref());
        let from = last.map_or(Bound::Unbounded, |(ms, conversation)| {
            Bound::Excluded(due_key(*ms, &Key::control(conversation).partition).into())
        });
        let mut page = DuePage { conversations: Vec::new(), resume: None };
        if last.is_some_and(|(ms, _)| *ms > oldest_ms_max) {
            return Ok(page);
        }
        let mut left_behind = Vec::new();
        let later = oldest_ms_max.checked_add(1).map(|ms| due_key(ms, &PartitionKey::stored(String::new())).into());
        let bounds = (from, later.map_or(Bound::Unbounded, Bound::Excluded));
        let entries = self.view.range(Space::Due, bounds, Order::Ascending, LOOKED_AT_MAX + 1);
        for (looked_at, found) in entries.enumerate() {
            let (key, _) = found?;
            let (oldest_ms, conversation) = named(&key)?;
            match self.read(&Key::control(&conversation))? {
                Some(Record::Control(control)) if control.archive.oldest_ms == Some(oldest_ms) => {
                    page.conversations.push(conversation.clone());
                }
                _ => left_behind.push(write(Change::removal(Space::Due, key.to_vec()))),
            }
            if page.conversations.len() >= limit || looked_at >= LOOKED_AT_MAX {
                page.resume = Some(DueMark { shard: 0, last: Some((oldest_ms, conversation)) });
                break;
            }
        }
        if !left_behind.is_empty() {
            self.commit(left_behind).await?;
        }
        Ok(page)
    }
}
