//! One range of one conversation, carried over into new objects: the step that passes, erasures and repairs are made of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::try_join_all;
use saltern_core::archive::{ArchiveState, ContentRef, Move, folder, json_leaf, leaf_nonce, pack, segment_leaf};
use saltern_core::control::ControlRecord;
use saltern_core::ids::ConversationId;
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::Layout;
use saltern_core::page::{Order, Placed};
use saltern_core::record::{Content, MessageRow, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_store::objects::{LIST_MAX, ObjectError};
use saltern_store::{Condition, Consistency, Put, PutOutcome, Query, query_all};

use super::fetch::Unread;
use super::{Archive, ArchiveError, ObjectLayout, name, single};
use crate::patience::patiently;

/// Rows that follow at once: in one commit where the store has such, else in requests side by side.
const ROWS_AT_ONCE: usize = 128;
const REQUESTS_AT_ONCE: usize = 32;
/// A range whose messages are erased faster than it can be written waits for another time.
const ROUNDS_MAX: usize = 8;
const CHANGES_MAX: usize = 100;
/// Objects of one message each that are written at once.
const PUTS_AT_ONCE: usize = 16;

/// What a range has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Carried {
    pub(super) messages: u64,
    pub(super) content_bytes: u64,
    pub(super) objects: u64,
    pub(super) object_bytes: u64,
}

/// Messages with their contents, on their way into objects.
type Contents = Vec<Placed<Arc<MessageRow>>>;

impl Archive {
    pub(super) async fn control(&self, conversation: &ConversationId) -> Result<Option<ControlRecord>, ArchiveError> {
        let keys = [Key::control(conversation)];
        let mut found = patiently(self.patience, || self.store.get(&keys, Consistency::Strong)).await?;
        Ok(match found.pop().flatten() {
            Some(Record::Control(control)) => Some(control),
            _ => None,
        })
    }

    /// Changes what the control record says of the archive, unless `change` has no answer to what it says now: then
    /// somebody else is at work.
    pub(super) async fn change(
        &self,
        conversation: &ConversationId,
        change: impl Fn(&ControlRecord) -> Option<ArchiveState>,
    ) -> Result<ControlRecord, ArchiveError> {
        for _ in 0..CHANGES_MAX {
            let control = self.control(conversation).await?.ok_or(ArchiveError::Busy)?;
            let archive = change(&control).ok_or(ArchiveError::Busy)?;
            if archive == control.archive {
                return Ok(control);
            }
            let next = control.with_archive(archive);
            let put = Put {
                key: Key::control(conversation),
                record: Record::Control(next.clone()),
                condition: Condition::Version(control.ver),
            };
            if let PutOutcome::Applied = patiently(self.patience, || self.store.put(&put)).await? {
                return Ok(next);
            }
        }
        Err(ArchiveError::Busy)
    }

    /// Notes a move that was planned by what rows said since the control record was read. What others have moved since then
    /// is in objects that the note does not name, so it must not come to be.
    pub(super) async fn begin(
        &self,
        conversation: &ConversationId,
        read: &ControlRecord,
        note: &Move,
    ) -> Result<(), ArchiveError> {
        self.change(conversation, |control| {
            let now = &control.archive;
            match &now.moving {
                // An attempt whose outcome was not known.
                Some(there) if **there == *note => Some(now.clone()),
                None if now.moves == read.archive.moves => {
                    let moves = now.moves.saturating_add(1);
                    Some(ArchiveState { moving: Some(Box::new(note.clone())), moves, ..now.clone() })
                }
                _ => None,
            }
        })
        .await?;
        Ok(())
    }

    /// Notes a move in the place of one that it replaces.
    pub(super) async fn take_over(&self, conversation: &ConversationId, note: &Move) -> Result<(), ArchiveError> {
        self.change(conversation, |control| {
            let there = control.archive.moving.as_deref()?;
            let ours = there == note || note.replaces.contains(&there.nonce);
            ours.then(|| ArchiveState { moving: Some(Box::new(note.clone())), ..control.archive.clone() })
        })
        .await?;
        Ok(())
    }

    /// A move that does once more what this one has left, and ends it.
    pub(super) fn instead_of(&self, left: &Move) -> Move {
        let replaces = left.replaces.iter().copied().chain([left.nonce]).collect();
        Move { range: left.range, nonce: self.nonce(), replaces, began_at_ms: self.now_ms() }
    }

    /// Carries out a move that has been noted, and strikes it out.
    pub(super) async fn carry(&self, conversation: &ConversationId, mut note: Move) -> Result<Carried, ArchiveError> {
        for _ in 0..ROUNDS_MAX {
            let control = self.control(conversation).await?.ok_or(ArchiveError::Busy)?;
            let rows = self.rows_of(conversation, &control.layout, note.range).await?;
            let contents = self.gather(conversation, &note, &rows).await?;
            let (places, carried) = self.write(conversation, &note, &contents).await?;
            let erased = self.follow(conversation, &control.layout, &note, contents, places).await?;
            self.rows.forget(conversation, note.range);
            if erased {
                note = self.instead_of(&note);
                self.take_over(conversation, &note).await?;
                continue;
            }
            self.remove_replaced(conversation, &note, &rows).await?;
            self.strike_out(conversation, &note).await?;
            return Ok(carried);
        }
        Err(ArchiveError::Busy)
    }

    async fn strike_out(&self, conversation: &ConversationId, note: &Move) -> Result<(), ArchiveError> {
        self.change(conversation, |control| {
            let archive = &control.archive;
            let ours = archive.moving.as_ref().is_none_or(|there| there.nonce == note.nonce);
            let SeqRange { from, to } = note.range;
            let through = if from <= archive.through { archive.through.max(to.next()) } else { archive.through };
            ours.then(|| ArchiveState { through, moving: None, ..archive.clone() })
        })
        .await?;
        Ok(())
    }

    /// The rows of a range, by strong reads.
    pub(super) async fn rows_of(
        &self,
        conversation: &ConversationId,
        layout: &Layout,
        range: SeqRange,
    ) -> Result<BTreeMap<SeqNo, Record>, ArchiveError> {
        let all = usize::try_from(range.count()).unwrap_or(usize::MAX);
        self.query(conversation, layout, range, Order::Ascending, all).await
    }

    /// So many rows of a range from each of its partitions, by strong reads.
    pub(super) async fn query(
        &self,
        conversation: &ConversationId,
        layout: &Layout,
        range: SeqRange,
        order: Order,
        limit: usize,
    ) -> Result<BTreeMap<SeqNo, Record>, ArchiveError> {
        let mut rows = BTreeMap::new();
        for slice in layout.slices(range) {
            let query = Query {
                partition: PartitionKey::messages(conversation, slice.salt),
                from: slice.range.from.get(),
                to: slice.range.to.get(),
                order,
                limit,
                consistency: Consistency::Strong,
            };
            let found = patiently(self.patience, || query_all(&*self.store, &query)).await?;
            rows.extend(found.into_iter().map(|(sort, record)| (SeqNo::clamped(sort), record)));
        }
        rows.retain(|seq, _| range.contains(*seq));
        Ok(rows)
    }

    /// The contents of a range, from rows and from the objects that are to be replaced.
    async fn gather(
        &self,
        conversation: &ConversationId,
        note: &Move,
        rows: &BTreeMap<SeqNo, Record>,
    ) -> Result<Contents, ArchiveError> {
        let mut contents = Contents::new();
        for (&seq, record) in rows {
            let Record::Message(row) = record else { continue };
            let known = match row.archived_at().map(|at| leaf_nonce(&at.leaf)) {
                None => true,
                Some(nonce) => nonce.is_some_and(|nonce| note.replaces.contains(&nonce)),
            };
            if !known {
                return Err(ArchiveError::Busy);
            }
            if row.content != Content::Erased {
                contents.push(Placed { seq, value: Arc::new(row.clone()) });
            }
        }
        match self.fill(conversation, &mut contents).await {
            Ok(()) => Ok(contents),
            Err(Unread { seq, problem }) => Err(ArchiveError::Content { seq, source: problem }),
        }
    }

    /// Writes the objects of a move and reads them back. Answers with the place of each content.
    async fn write(
        &self,
        conversation: &ConversationId,
        note: &Move,
        contents: &Contents,
    ) -> Result<(Vec<ContentRef>, Carried), ArchiveError> {
        let texts: Vec<_> = contents.iter().map(|row| (row.seq, row.value.text().unwrap_or_default())).collect();
        let content_bytes = texts.iter().map(|(_, text)| text.len() as u64).sum();
        let mut carried = Carried { messages: contents.len() as u64, content_bytes, ..Carried::default() };
        let mut places = Vec::with_capacity(contents.len());
        let mut objects = Vec::new();
        match self.layout {
            ObjectLayout::Segments if texts.is_empty() => {}
            ObjectLayout::Segments => {
                let leaf = segment_leaf(note.range.from, note.nonce);
                let packed = pack(conversation, &texts);
                places.extend(packed.blocks.iter().map(|block| ContentRef { leaf: leaf.clone(), block: Some(*block) }));
                objects.push((leaf, Bytes::from(packed.bytes)));
            }
            ObjectLayout::Messages => {
                for (row, (seq, text)) in contents.iter().zip(&texts) {
                    let leaf = json_leaf(&row.value.message_id, note.nonce);
                    places.push(ContentRef { leaf: leaf.clone(), block: None });
                    objects.push((leaf, single::encode(conversation, *seq, &row.value, text).into()));
                }
            }
        }
        carried.objects = objects.len() as u64;
        carried.object_bytes = objects.iter().map(|(_, bytes)| bytes.len() as u64).sum();
        for some in objects.chunks(PUTS_AT_ONCE) {
            let mut writing = Vec::with_capacity(some.len());
            for (leaf, bytes) in some {
                writing.push(self.write_one(name(conversation, leaf), bytes.clone()));
            }
            try_join_all(writing).await?;
        }
        Ok((places, carried))
    }

    async fn write_one(&self, object: String, bytes: Bytes) -> Result<(), ArchiveError> {
        patiently(self.patience, || self.objects.put(&object, bytes.clone())).await?;
        match patiently(self.patience, || self.objects.get(&object, None)).await {
            Ok(back) if back == bytes => Ok(()),
            Ok(_) => Err(ArchiveError::NotAsWritten(object)),
            // Whoever has overtaken us has removed it.
            Err(ObjectError::Missing) => Err(ArchiveError::Busy),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets rows follow their contents, each from the version at which it was read. Says whether one of them was erased
    /// meanwhile.
    async fn follow(
        &self,
        conversation: &ConversationId,
        layout: &Layout,
        note: &Move,
        contents: Contents,
        places: Vec<ContentRef>,
    ) -> Result<bool, ArchiveError> {
        let mut puts = Vec::with_capacity(contents.len());
        for (row, at) in contents.into_iter().zip(places) {
            let salt = layout.salt(row.seq).ok_or(ArchiveError::Busy)?;
            let record = Record::Message(row.value.moved(Content::Archived { at, text: None }));
            let condition = Condition::Version(row.value.ver);
            puts.push(Put { key: Key::row(conversation, salt, row.seq), record, condition });
        }
        let mut erased = false;
        if self.store.capabilities().atomic_puts {
            for some in puts.chunks(ROWS_AT_ONCE) {
                let outcomes = patiently(self.patience, || self.store.put_all(some)).await?;
                if outcomes.iter().any(|outcome| *outcome != PutOutcome::Applied) {
                    for put in some {
                        erased |= self.follow_one(note, put).await?;
                    }
                }
            }
            return Ok(erased);
        }
        for some in puts.chunks(REQUESTS_AT_ONCE) {
            let mut following = Vec::with_capacity(some.len());
            for put in some {
                following.push(self.follow_one(note, put));
            }
            erased |= try_join_all(following).await?.contains(&true);
        }
        Ok(erased)
    }

    async fn follow_one(&self, note: &Move, put: &Put) -> Result<bool, ArchiveError> {
        match patiently(self.patience, || self.store.put(put)).await? {
            PutOutcome::Applied => Ok(false),
            PutOutcome::Refused(Some(Record::Message(row))) => match &row.content {
                Content::Erased => Ok(true),
                // Our own, from an attempt whose outcome was not known.
                Content::Archived { at, .. } if leaf_nonce(&at.leaf) == Some(note.nonce) => Ok(false),
                _ => Err(ArchiveError::Busy),
            },
            PutOutcome::Refused(_) => Err(ArchiveError::Busy),
        }
    }

    /// Fails unless all messages of a segment are in the range whose rows have left it.
    async fn check_replaced(&self, note: &Move, object: &str) -> Result<(), ArchiveError> {
        let SeqRange { from, to } = note.range;
        let beyond = |problem| Err(ArchiveError::NotReplaced { object: object.to_owned(), source: problem });
        match self.segment(object).await? {
            Ok(segment) if segment.range().is_some_and(|range| range.from < from || range.to > to) => beyond(None),
            Ok(_) => Ok(()),
            Err(problem) => beyond(Some(problem)),
        }
    }

    /// Removes the objects that the rows of a range have left behind.
    async fn remove_replaced(
        &self,
        conversation: &ConversationId,
        note: &Move,
        rows: &BTreeMap<SeqNo, Record>,
    ) -> Result<(), ArchiveError> {
        if note.replaces.is_empty() {
            return Ok(());
        }
        let messages = rows.values().filter_map(|record| match record {
            Record::Message(row) => Some(&row.message_id),
            _ => None,
        });
        let singles: BTreeSet<_> =
            messages.flat_map(|id| note.replaces.iter().map(move |nonce| json_leaf(id, *nonce))).collect();
        let (folder, mut behind) = (folder(conversation), None);
        loop {
            let page = patiently(self.patience, || self.objects.list(&folder, behind.as_deref(), LIST_MAX)).await?;
            for object in &page.objects {
                let leaf = object.name.rsplit('/').next().unwrap_or_default();
                let replaced = leaf_nonce(leaf).is_some_and(|nonce| note.replaces.contains(&nonce));
                // A segment is replaced as a whole; of objects of one message each, those of the range.
                let is_single = leaf.ends_with(".json");
                if replaced && (!is_single || singles.contains(leaf)) {
                    if !is_single {
                        self.check_replaced(note, &object.name).await?;
                    }
                    patiently(self.patience, || self.objects.delete(&object.name)).await?;
                    self.blocks.forget(&object.name);
                }
            }
            behind = page.resume;
            if behind.is_none() {
                return Ok(());
            }
        }
    }
}
