//! Objects that nothing refers to: what a crash between two steps, or a put that came too late, has left behind.

use std::time::Duration;

use bytes::Bytes;
use saltern_core::archive::{SEGMENT_BEGINNING_BYTES, leaf_nonce, read_header};
use saltern_core::ids::ConversationId;
use saltern_core::record::Record;
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_store::objects::{LIST_MAX, ObjectError, ObjectInfo};
use tokio_util::sync::CancellationToken;

use super::{Archive, ArchiveError, name, single};
use crate::patience::patiently;

/// Says up to when objects have been looked at: each is, once in its life.
const MARK: &str = "_saltern/swept";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Objects whose rows were looked at.
    pub looked_at: u64,
    pub removed: u64,
}

impl Archive {
    /// Removes objects that nothing refers to, of those that were written longer than `grace` ago and after the last sweep;
    /// `all`, of whenever.
    ///
    /// An object is in use if a row refers to it, or if a move that is noted may make one do so. The note is there before
    /// the object, and rows refer to it before the note goes: so it is looked for first the note, then the rows.
    pub async fn sweep(&self, grace: Duration, all: bool, stop: &CancellationToken) -> Result<Swept, ArchiveError> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let until_ms = self.now_ms().saturating_sub(grace_ms);
        let since_ms = if all { None } else { self.swept_until().await? };
        let removed = patiently(self.patience, || self.objects.remove_unfinished(until_ms)).await?;
        let (mut swept, mut behind) = (Swept { looked_at: 0, removed }, None);
        loop {
            let page = patiently(self.patience, || self.objects.list("", behind.as_deref(), LIST_MAX)).await?;
            for object in &page.objects {
                if stop.is_cancelled() {
                    return Ok(swept);
                }
                let new = since_ms.is_none_or(|since_ms| object.modified_at_ms > since_ms);
                if new && object.modified_at_ms <= until_ms && leaf_nonce(&object.name).is_some() {
                    swept.looked_at += 1;
                    swept.removed += u64::from(self.remove_if_unused(object).await?);
                }
            }
            behind = page.resume;
            if behind.is_none() {
                let mark = Bytes::from(until_ms.to_string());
                patiently(self.patience, || self.objects.put(MARK, mark.clone())).await?;
                return Ok(swept);
            }
        }
    }

    async fn swept_until(&self) -> Result<Option<u64>, ArchiveError> {
        match patiently(self.patience, || self.objects.get(MARK, None)).await {
            Ok(bytes) => Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok())),
            Err(ObjectError::Missing) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn remove_if_unused(&self, object: &ObjectInfo) -> Result<bool, ArchiveError> {
        // One that does not say whose it is stays: nobody can tell what is lost with it.
        let Some((conversation, range)) = self.belongs(object).await? else { return Ok(false) };
        let leaf = object.name.rsplit('/').next().unwrap_or_default();
        if name(&conversation, leaf) != object.name || self.is_used(&conversation, range, leaf).await? {
            return Ok(false);
        }
        tracing::info!(object = object.name.as_str(), "removing an object that nothing refers to");
        patiently(self.patience, || self.objects.delete(&object.name)).await?;
        self.blocks.forget(&object.name);
        Ok(true)
    }

    async fn is_used(&self, conversation: &ConversationId, range: SeqRange, leaf: &str) -> Result<bool, ArchiveError> {
        let Some(control) = self.control(conversation).await? else { return Ok(false) };
        let nonce = leaf_nonce(leaf);
        let noted = control.archive.moving.as_ref();
        if noted.is_some_and(|note| Some(note.nonce) == nonce || note.replaces.iter().any(|n| Some(*n) == nonce)) {
            return Ok(true);
        }
        let rows = self.rows_of(conversation, &control.layout, range).await?;
        Ok(rows.values().any(|record| match record {
            Record::Message(row) => row.archived_at().is_some_and(|at| at.leaf == leaf),
            _ => false,
        }))
    }

    /// Whose messages an object holds.
    async fn belongs(&self, object: &ObjectInfo) -> Result<Option<(ConversationId, SeqRange)>, ArchiveError> {
        let single = object.name.ends_with(".json");
        let range = (!single && object.bytes > SEGMENT_BEGINNING_BYTES).then_some(0..SEGMENT_BEGINNING_BYTES);
        let bytes = match patiently(self.patience, || self.objects.get(&object.name, range.clone())).await {
            Ok(bytes) => bytes,
            Err(ObjectError::Missing | ObjectError::TooShort) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if single {
            let Ok(single) = single::decode(&bytes) else { return Ok(None) };
            let conversation = ConversationId::new(&single.conversation_id).ok();
            return Ok(conversation.zip(SeqNo::new(single.seq_no).map(SeqRange::single)));
        }
        let segment = read_header(&bytes).ok();
        Ok(segment.and_then(|segment| segment.range().map(|range| (segment.conversation, range))))
    }
}
