//! One pass: whatever is due goes, and nothing else is looked at.

use std::time::Duration;

use futures_util::future::try_join_all;
use saltern_core::archive::{ArchiveState, Move, pack};
use saltern_core::control::ControlRecord;
use saltern_core::ids::ConversationId;
use saltern_core::key::Key;
use saltern_core::layout::Layout;
use saltern_core::limits::{LEASE_MAX, SEGMENT_BYTES, SEGMENT_MESSAGES_MAX};
use saltern_core::page::Order;
use saltern_core::record::{Content, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_store::{Condition, Due, Put, PutOutcome};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::carry::Carried;
use super::{Archive, ArchiveError, ObjectLayout};
use crate::patience::patiently;

/// Names that are asked of the index at once.
const DUE_PAGE: usize = 500;
/// Beyond so many it is not worth counting them in advance.
const COUNTED_MAX: u64 = 100_000;
/// Where others write too, a move that began less than so long ago is theirs.
const OTHERS_MS: u64 = 15_000;
/// Conversations that others are at work on, remembered for the end of the pass.
const BUSY_MAX: usize = 10_000;
const BUSY_ROUNDS: usize = 4;
const SEALS_AT_ONCE: usize = 32;
/// Lost tickets come from one lease or a few: a longer hole is none that a crash can leave, and is not filled with voids.
const HOLE_MAX: u64 = 16 * LEASE_MAX;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PassOptions {
    /// What was taken in longer ago is due.
    pub older_than: Duration,
    /// At most so many messages per second.
    pub messages_per_s: Option<f64>,
    /// Only tells what it would do.
    pub dry_run: bool,
}

/// What a pass has done, or would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassReport {
    /// Conversations that were due.
    pub conversations: u64,
    pub messages: u64,
    pub content_bytes: u64,
    pub objects: u64,
    pub object_bytes: u64,
    /// Conversations left to whoever is at work on them.
    pub busy: u64,
    /// Conversations that could not be archived to the end; each has been told.
    pub failed: u64,
    /// Somebody asked it to stop before its end.
    pub stopped: bool,
}

/// What a dry run says about money, at AWS's list prices of us-east-1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Once: rows that are written anew, and objects.
    pub dollars_once: f64,
    /// Every month: what DynamoDB no longer keeps, less what S3 does.
    pub dollars_per_month: f64,
}

const DYNAMODB_GB_MONTH: f64 = 0.25;
const DYNAMODB_WRITE: f64 = 0.625e-6;
const S3_GB_MONTH: f64 = 0.023;
const S3_PUT: f64 = 5e-6;
const GB: f64 = 1e9;

impl PassReport {
    fn add(&mut self, carried: Carried) {
        self.messages += carried.messages;
        self.content_bytes += carried.content_bytes;
        self.objects += carried.objects;
        self.object_bytes += carried.object_bytes;
    }

    /// Rows without their contents are one write unit each.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let kept = |bytes: u64, price: f64| bytes as f64 / GB * price;
        Estimate {
            dollars_once: self.messages as f64 * DYNAMODB_WRITE + self.objects as f64 * S3_PUT,
            dollars_per_month: kept(self.content_bytes, DYNAMODB_GB_MONTH) - kept(self.object_bytes, S3_GB_MONTH),
        }
    }
}

/// How far a pass is.
#[derive(Debug)]
pub enum Progress<'a> {
    /// So many conversations are due; `None` if there are too many to count.
    Due(Option<u64>),
    /// So much has been done, and this part of the conversation at hand.
    Moved(&'a PassReport, f64),
    Failed(&'a ConversationId, &'a ArchiveError),
}

/// What a look at a conversation says.
struct Plan {
    /// To be carried over.
    range: Option<SeqRange>,
    /// No message above was taken in before; 0 if that is not known.
    oldest_ms: u64,
    /// Contents of the range that are in rows.
    texts: Vec<(SeqNo, String)>,
    /// Places of the range that nobody will fill, but that have no void yet.
    holes: Vec<SeqNo>,
    /// When its last message was taken in.
    reached_ms: u64,
}

struct Pass<'a, F> {
    archive: &'a Archive,
    options: &'a PassOptions,
    stop: &'a CancellationToken,
    cutoff_ms: u64,
    began: Instant,
    report: PassReport,
    tell: F,
}

impl Archive {
    /// Archives what is due. One at a time in a process; in others as many as there are. Stops between two ranges when it is
    /// told to; then, as after a crash, the next one goes on from there.
    pub async fn pass(
        &self,
        due: &dyn Due,
        options: &PassOptions,
        stop: &CancellationToken,
        tell: impl FnMut(Progress<'_>) + Send,
    ) -> Result<PassReport, ArchiveError> {
        let _one_at_a_time = self.pass.try_lock().map_err(|_| ArchiveError::Busy)?;
        let older_than_ms = u64::try_from(options.older_than.as_millis()).unwrap_or(u64::MAX);
        let cutoff_ms = self.now_ms().saturating_sub(older_than_ms);
        let report = PassReport::default();
        Pass { archive: self, options, stop, cutoff_ms, began: Instant::now(), report, tell }.run(due).await
    }

    /// What is due of a conversation, up to one object's worth.
    async fn plan(
        &self,
        conversation: &ConversationId,
        control: &ControlRecord,
        from: SeqNo,
        cutoff_ms: u64,
    ) -> Result<Plan, ArchiveError> {
        let oldest_ms = self.now_ms();
        let mut plan = Plan { range: None, oldest_ms, texts: Vec::new(), holes: Vec::new(), reached_ms: 0 };
        let end = from.plus(SEGMENT_MESSAGES_MAX as u64).min(control.layout.horizon());
        let Some(window) = SeqRange::until(from, end) else { return Ok(plan) };
        let mut rows = self.rows_of(conversation, &control.layout, window).await?;
        if rows.is_empty() {
            rows.extend(self.highest(conversation, &control.layout, from).await?);
        }
        // Nobody is waited for below a row that has been there for long.
        let is_near = |seq: SeqNo| seq <= from.plus(HOLE_MAX);
        let settled = rows.iter().rev().find(|(seq, record)| is_near(**seq) && self.is_settled(record));
        let settled = settled.map(|(seq, _)| *seq);
        let mut bytes = 0;
        for seq in window.iter() {
            match rows.remove(&seq) {
                Some(Record::Message(row)) if row.ingested_at_ms > cutoff_ms => {
                    plan.oldest_ms = row.ingested_at_ms;
                    break;
                }
                Some(Record::Message(row)) => {
                    plan.reached_ms = row.ingested_at_ms;
                    if let Content::Here(text) = row.content {
                        bytes += text.len();
                        plan.texts.push((seq, text));
                    }
                }
                Some(_) => {}
                None if Some(seq) < settled => plan.holes.push(seq),
                None => {
                    // What lies behind it stays due.
                    if !rows.is_empty() {
                        plan.oldest_ms = 0;
                    }
                    break;
                }
            }
            plan.range = SeqRange::new(from, seq);
            if bytes >= SEGMENT_BYTES {
                break;
            }
        }
        Ok(plan)
    }

    /// The highest row at or above a place, if there is any.
    async fn highest(
        &self,
        conversation: &ConversationId,
        layout: &Layout,
        from: SeqNo,
    ) -> Result<Option<(SeqNo, Record)>, ArchiveError> {
        let mut end = layout.horizon();
        while let Some(SeqRange { to, .. }) = SeqRange::until(from, end) {
            let range = SeqRange { from: layout.epoch_start(to).max(from), to };
            let mut tops = self.query(conversation, layout, range, Order::Descending, 1).await?;
            if let Some(highest) = tops.pop_last() {
                return Ok(Some(highest));
            }
            end = range.from;
        }
        Ok(None)
    }

    /// Whether a row has been there for so long that writers of lower seq_nos are taken for dead.
    fn is_settled(&self, record: &Record) -> bool {
        match record {
            Record::Message(row) => row.ingested_at_ms.saturating_add(self.seal_after_ms) <= self.now_ms(),
            _ => true,
        }
    }

    /// Puts voids into holes, as the sealer does. `false` if one of them has been filled: then there is more to carry.
    async fn seal(
        &self,
        conversation: &ConversationId,
        layout: &Layout,
        holes: &[SeqNo],
    ) -> Result<bool, ArchiveError> {
        let mut puts = Vec::with_capacity(holes.len());
        for &hole in holes {
            let salt = layout.salt(hole).ok_or(ArchiveError::Busy)?;
            let key = Key::row(conversation, salt, hole);
            puts.push(Put { key, record: Record::Void, condition: Condition::Absent });
        }
        for some in puts.chunks(SEALS_AT_ONCE) {
            let sealing = some.iter().map(|put| patiently(self.patience, || self.store.put(put)));
            let outcomes = try_join_all(sealing).await?;
            if outcomes.iter().any(|outcome| matches!(outcome, PutOutcome::Refused(Some(Record::Message(_))))) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a move that was found noted may still be another server's work.
    pub(super) fn is_anothers(&self, left: &Move) -> bool {
        !self.store.capabilities().exclusive && self.now_ms().saturating_sub(left.began_at_ms) < OTHERS_MS
    }
}

impl<F: FnMut(Progress<'_>) + Send> Pass<'_, F> {
    async fn run(mut self, due: &dyn Due) -> Result<PassReport, ArchiveError> {
        let counted = self.count(due).await?;
        (self.tell)(Progress::Due(counted));
        let (mut behind, mut busy) = (None, Vec::new());
        while !self.stop.is_cancelled() {
            let page = patiently(self.archive.patience, || due.due(self.cutoff_ms, behind.as_ref(), DUE_PAGE)).await?;
            for conversation in page.conversations {
                if self.stop.is_cancelled() {
                    break;
                }
                if !self.conversation(&conversation).await? && busy.len() < BUSY_MAX {
                    busy.push(conversation);
                }
                self.report.conversations += 1;
            }
            behind = page.resume;
            if behind.is_none() {
                break;
            }
        }
        self.wait_for_others(busy).await?;
        self.report.stopped = self.stop.is_cancelled();
        Ok(self.report)
    }

    async fn count(&self, due: &dyn Due) -> Result<Option<u64>, ArchiveError> {
        let (mut count, mut behind) = (0, None);
        loop {
            let page = patiently(self.archive.patience, || due.due(self.cutoff_ms, behind.as_ref(), DUE_PAGE)).await?;
            count += page.conversations.len() as u64;
            behind = page.resume;
            if behind.is_none() || count > COUNTED_MAX {
                return Ok((count <= COUNTED_MAX).then_some(count));
            }
        }
    }

    /// What another has left is taken over when it is old enough.
    async fn wait_for_others(&mut self, mut busy: Vec<ConversationId>) -> Result<(), ArchiveError> {
        for _ in 0..BUSY_ROUNDS {
            if busy.is_empty() || self.options.dry_run {
                break;
            }
            let pause = sleep(Duration::from_millis(OTHERS_MS / 2 + 1));
            if self.stop.run_until_cancelled(pause).await.is_none() {
                break;
            }
            for conversation in std::mem::take(&mut busy) {
                if self.stop.is_cancelled() || !self.conversation(&conversation).await? {
                    busy.push(conversation);
                }
            }
        }
        self.report.busy = busy.len() as u64;
        Ok(())
    }

    /// `false` if others are at work on it. What is wrong with one conversation does not keep the rest from being archived; a
    /// store that cannot be reached does.
    async fn conversation(&mut self, conversation: &ConversationId) -> Result<bool, ArchiveError> {
        let done = match self.options.dry_run {
            true => self.look_at(conversation).await,
            false => self.archive(conversation).await,
        };
        match done {
            Ok(()) => Ok(true),
            Err(ArchiveError::Busy) => Ok(false),
            Err(
                error @ (ArchiveError::Content { .. }
                | ArchiveError::NotAsWritten(_)
                | ArchiveError::NotReplaced { .. }),
            ) => {
                self.report.failed += 1;
                (self.tell)(Progress::Failed(conversation, &error));
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    async fn archive(&mut self, conversation: &ConversationId) -> Result<(), ArchiveError> {
        let archive = self.archive;
        let mut began_ms = None;
        while !self.stop.is_cancelled() {
            let turn = archive.turn(conversation).await;
            let Some(control) = archive.control(conversation).await? else { return Ok(()) };
            let (note, reached_ms) = match &control.archive.moving {
                Some(left) if archive.is_anothers(left) => return Err(ArchiveError::Busy),
                Some(left) => {
                    let note = archive.instead_of(left);
                    archive.take_over(conversation, &note).await?;
                    (note, 0)
                }
                None => {
                    let through = control.archive.through;
                    let plan = archive.plan(conversation, &control, through, self.cutoff_ms).await?;
                    let Some(range) = plan.range else {
                        return archive.next_look(conversation, through, plan.oldest_ms).await;
                    };
                    if !archive.seal(conversation, &control.layout, &plan.holes).await? {
                        continue;
                    }
                    let nonce = archive.nonce();
                    let note = Move { range, nonce, replaces: Vec::new(), began_at_ms: archive.now_ms() };
                    archive.begin(conversation, &control, &note).await?;
                    (note, plan.reached_ms)
                }
            };
            let carried = archive.carry(conversation, note).await?;
            drop(turn);
            let first_ms = *began_ms.get_or_insert(control.archive.oldest_ms.unwrap_or(reached_ms));
            self.moved(carried, first_ms, reached_ms).await;
        }
        Ok(())
    }

    /// Tells how far it is, and keeps to the rate.
    async fn moved(&mut self, carried: Carried, first_ms: u64, reached_ms: u64) {
        self.report.add(carried);
        let part = reached_ms.saturating_sub(first_ms) as f64 / self.cutoff_ms.saturating_sub(first_ms).max(1) as f64;
        (self.tell)(Progress::Moved(&self.report, part.min(1.0)));
        if let Some(rate) = self.options.messages_per_s.filter(|rate| *rate > 0.0) {
            let due = self.began + Duration::from_secs_f64(self.report.messages as f64 / rate);
            let _ = self.stop.run_until_cancelled(sleep_until(due)).await;
        }
    }

    /// What `archive` would do.
    async fn look_at(&mut self, conversation: &ConversationId) -> Result<(), ArchiveError> {
        let Some(control) = self.archive.control(conversation).await? else { return Ok(()) };
        let mut from = control.archive.through;
        loop {
            let plan = self.archive.plan(conversation, &control, from, self.cutoff_ms).await?;
            let Some(range) = plan.range else { return Ok(()) };
            let texts: Vec<_> = plan.texts.iter().map(|(seq, text)| (*seq, text.as_str())).collect();
            let content_bytes = texts.iter().map(|(_, text)| text.len() as u64).sum();
            let (objects, object_bytes) = match self.archive.layout {
                ObjectLayout::Segments if texts.is_empty() => (0, 0),
                ObjectLayout::Segments => (1, pack(conversation, &texts).bytes.len() as u64),
                ObjectLayout::Messages => (texts.len() as u64, content_bytes),
            };
            self.report.add(Carried { messages: texts.len() as u64, content_bytes, objects, object_bytes });
            (self.tell)(Progress::Moved(&self.report, 0.0));
            from = range.to.next();
        }
    }
}

impl Archive {
    /// Says when the conversation is due again. The time only rises, which the index relies on.
    async fn next_look(
        &self,
        conversation: &ConversationId,
        through: SeqNo,
        oldest_ms: u64,
    ) -> Result<(), ArchiveError> {
        self.change(conversation, |control| {
            let archive = &control.archive;
            let undisturbed = archive.moving.is_none() && archive.through == through;
            undisturbed.then(|| ArchiveState { oldest_ms: archive.oldest_ms.max(Some(oldest_ms)), ..archive.clone() })
        })
        .await?;
        Ok(())
    }
}
