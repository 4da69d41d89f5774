//! Erasure: content that is gone for good, from its row, from memory and from its object. The place stays.

use std::collections::HashMap;
use std::time::Duration;

use saltern_core::archive::{ContentRef, Move, Nonce, SEGMENT_BEGINNING_BYTES, Segment, leaf_nonce, read_header};
use saltern_core::control::ControlRecord;
use saltern_core::ids::ConversationId;
use saltern_core::key::Key;
use saltern_core::limits::SEGMENT_MESSAGES_MAX;
use saltern_core::record::{Content, MessageRow, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_store::objects::ObjectError;
use saltern_store::{Condition, Put, PutOutcome};
use tokio::time::sleep;

use super::fetch::ContentProblem;
use super::{Archive, ArchiveError, name};
use crate::patience::patiently;

/// How often and with what pause another server is waited for: a little longer than it takes to be overdue.
const WAITS_MAX: u32 = 80;
const WAIT: Duration = Duration::from_millis(250);
/// Rows erased in one commit, where the store has such.
const ROWS_AT_ONCE: usize = 128;

impl Archive {
    /// Erases the messages of a range, which lies below the head. Safe to repeat; answers with how many contents it erased.
    /// Takes as long as others are in its way.
    pub(in crate::conversations) async fn erase(
        &self,
        conversation: &ConversationId,
        range: SeqRange,
    ) -> Result<u64, ArchiveError> {
        let _turn = self.turn(conversation).await;
        let (mut erased, mut from) = (0, range.from);
        while let Some(rest) = SeqRange::new(from, range.to) {
            let control = self.undisturbed(conversation).await?;
            match self.erase_part(conversation, &control, rest).await {
                Ok(Some((part, count))) => {
                    erased += count;
                    from = part.to.next();
                }
                Ok(None) => {}
                // Another has begun to move contents in the meantime.
                Err(ArchiveError::Busy) => sleep(WAIT).await,
                Err(error) => return Err(error),
            }
        }
        self.undisturbed(conversation).await?;
        Ok(erased)
    }

    /// The control record without a note of a move: what is left behind is carried to its end, what another is doing is
    /// waited for. Whatever that move has written, no text that was erased before this is in it.
    async fn undisturbed(&self, conversation: &ConversationId) -> Result<ControlRecord, ArchiveError> {
        for _ in 0..WAITS_MAX {
            let control = self.control(conversation).await?.ok_or(ArchiveError::Busy)?;
            match &control.archive.moving {
                None => return Ok(control),
                Some(left) if self.is_anothers(left) => sleep(WAIT).await,
                Some(left) => match self.end(conversation, left).await {
                    // Whoever had left it is at it again.
                    Err(ArchiveError::Busy) => sleep(WAIT).await,
                    ended => ended?,
                },
            }
        }
        Err(ArchiveError::Busy)
    }

    /// Carries to its end what another has left.
    async fn end(&self, conversation: &ConversationId, left: &Move) -> Result<(), ArchiveError> {
        let note = self.instead_of(left);
        self.take_over(conversation, &note).await?;
        self.carry(conversation, note).await?;
        Ok(())
    }

    /// Erases as much of a range as touches no more than a few objects. `None` if contents have moved on meanwhile: then their
    /// new objects must be noted too.
    async fn erase_part(
        &self,
        conversation: &ConversationId,
        control: &ControlRecord,
        rest: SeqRange,
    ) -> Result<Option<(SeqRange, u64)>, ArchiveError> {
        let end = rest.to.min(rest.from.plus(SEGMENT_MESSAGES_MAX as u64 - 1));
        let part = SeqRange { from: rest.from, to: end };
        let rows = self.rows_of(conversation, &control.layout, part).await?;
        let mut touched = part;
        let mut replaces: HashMap<_, _> = HashMap::new();
        for (seq, record) in &rows {
            if let Some((nonce, at)) = archived_at(record).and_then(|at| leaf_nonce(&at.leaf).zip(Some(at))) {
                replaces.entry(nonce).or_insert((*seq, at));
            }
        }
        // All messages of a segment move when one of them goes.
        for (seq, at) in replaces.values() {
            if let Some(range) = self.range_of(conversation, control, *seq, at).await? {
                touched = SeqRange { from: touched.from.min(range.from), to: touched.to.max(range.to) };
            }
        }
        let replaces: Vec<_> = replaces.into_keys().collect();
        if replaces.is_empty() {
            let erased = self.mark(conversation, control, part, &replaces).await?;
            return Ok(erased.map(|erased| (part, erased)));
        }
        let note = Move { range: touched, nonce: self.nonce(), replaces, began_at_ms: self.now_ms() };
        self.begin(conversation, control, &note).await?;
        let erased = self.mark(conversation, control, part, &note.replaces).await?;
        match self.carry(conversation, note).await {
            // The note is there still: it is seen to before this erasure ends.
            Err(ArchiveError::Busy) | Ok(_) => Ok(erased.map(|erased| (part, erased))),
            Err(error) => Err(error),
        }
    }

    /// From the first message of an object to its last, if it has several.
    async fn range_of(
        &self,
        conversation: &ConversationId,
        control: &ControlRecord,
        seq: SeqNo,
        at: &ContentRef,
    ) -> Result<Option<SeqRange>, ArchiveError> {
        if at.block.is_none() {
            return Ok(None);
        }
        let problem = match self.segment(&name(conversation, &at.leaf)).await? {
            Ok(segment) => return Ok(segment.range()),
            Err(problem) => problem,
        };
        // An object that is not there may have been replaced since the row was read. If the row still refers to it, its other
        // messages cannot be known, and nothing may be removed.
        let mut now = self.rows_of(conversation, &control.layout, SeqRange::single(seq)).await?;
        match now.remove(&seq).as_ref().and_then(archived_at) {
            Some(there) if there.leaf == at.leaf => Err(ArchiveError::Content { seq, source: problem }),
            _ => Err(ArchiveError::Busy),
        }
    }

    /// What a segment says of itself, or why it cannot be had.
    pub(super) async fn segment(&self, object: &str) -> Result<Result<Segment, ContentProblem>, ArchiveError> {
        let beginning = 0..SEGMENT_BEGINNING_BYTES;
        let bytes = match patiently(self.patience, || self.objects.get(object, Some(beginning.clone()))).await {
            Err(ObjectError::TooShort) => patiently(self.patience, || self.objects.get(object, None)).await,
            found => found,
        };
        match bytes.map(|bytes| read_header(&bytes)) {
            Ok(Ok(segment)) => Ok(Ok(segment)),
            Ok(Err(damage)) => Ok(Err(ContentProblem::Damaged(damage))),
            Err(ObjectError::Missing) => Ok(Err(ContentProblem::Missing)),
            Err(error) => Err(error.into()),
        }
    }

    /// Marks the messages of a range as erased. From then on nobody who reads the rows finds their contents. `None` if one is in
    /// an object that is not among those noted, where its text would stay.
    async fn mark(
        &self,
        conversation: &ConversationId,
        control: &ControlRecord,
        range: SeqRange,
        noted: &[Nonce],
    ) -> Result<Option<u64>, ArchiveError> {
        let mut erased = 0;
        loop {
            let rows = self.rows_of(conversation, &control.layout, range).await?;
            let left: Vec<_> = rows.into_iter().filter_map(|(seq, record)| not_erased(seq, record)).collect();
            if left.is_empty() {
                self.rows.forget(conversation, range);
                return Ok(Some(erased));
            }
            let moved_on = |row: &MessageRow| {
                let nonce = row.archived_at().map(|at| leaf_nonce(&at.leaf));
                nonce.is_some_and(|nonce| nonce.is_none_or(|nonce| !noted.contains(&nonce)))
            };
            if left.iter().any(|(_, row)| moved_on(row)) {
                return Ok(None);
            }
            let mut puts = Vec::with_capacity(left.len());
            for (seq, row) in &left {
                let salt = control.layout.salt(*seq).ok_or(ArchiveError::Busy)?;
                let record = Record::Message(row.moved(Content::Erased));
                puts.push(Put {
                    key: Key::row(conversation, salt, *seq),
                    record,
                    condition: Condition::Version(row.ver),
                });
            }
            erased += self.put_some(&puts).await?;
        }
    }

    /// How many of these were put; the others met a row that had changed.
    async fn put_some(&self, puts: &[Put]) -> Result<u64, ArchiveError> {
        let mut applied = 0;
        if self.store.capabilities().atomic_puts {
            for some in puts.chunks(ROWS_AT_ONCE) {
                let outcomes = patiently(self.patience, || self.store.put_all(some)).await?;
                if outcomes.iter().all(|outcome| *outcome == PutOutcome::Applied) {
                    applied += some.len() as u64;
                }
            }
            return Ok(applied);
        }
        for put in puts {
            if patiently(self.patience, || self.store.put(put)).await? == PutOutcome::Applied {
                applied += 1;
            }
        }
        Ok(applied)
    }
}

fn archived_at(record: &Record) -> Option<&ContentRef> {
    match record {
        Record::Message(row) => row.archived_at(),
        _ => None,
    }
}

fn not_erased(seq: SeqNo, record: Record) -> Option<(SeqNo, MessageRow)> {
    match record {
        Record::Message(row) if row.content != Content::Erased => Some((seq, row)),
        _ => None,
    }
}
