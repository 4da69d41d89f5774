//! Holes: a seq_no whose writer has died gets a void, so that readers can pass. Sealing is safe at any time, since a
//! void is put only where there is no row, and a slower writer that finds one takes a new ticket; the wait is courtesy.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use saltern_core::frontier::Frontier;
use saltern_core::ids::ConversationId;
use saltern_core::key::Key;
use saltern_core::limits::VOID_RUN_MIN;
use saltern_core::page::{Order, Placed, Row};
use saltern_core::record::Record;
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_store::{Condition, Consistency, Put, PutOutcome};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::history::Reading;
use super::known::Known;
use super::sabotage::Sabotage;
use super::{AppendError, Inner, ReadError};

/// Conversations with holes that are remembered; a hole beyond is met again by the next reader.
const WATCHED_MAX: usize = 10_000;
/// seq_nos sealed in one step.
const SEAL_STEP: u64 = 512;
/// Looks per `seal_after`.
const LOOKS: u32 = 4;

/// Holes that somebody has met, and since when.
#[derive(Debug, Default)]
pub(super) struct Watched {
    holes: Mutex<BTreeMap<ConversationId, (SeqNo, Instant)>>,
}

impl Watched {
    fn add(&self, conversation: &ConversationId, to: SeqNo, now: Instant) {
        let mut holes = self.holes.lock().unwrap_or_else(PoisonError::into_inner);
        if holes.len() < WATCHED_MAX {
            holes.entry(conversation.clone()).or_insert((to, now));
        }
    }

    /// Takes out the conversations whose holes were met at or before `then`.
    fn due(&self, then: Instant) -> Vec<(ConversationId, SeqNo)> {
        let mut holes = self.holes.lock().unwrap_or_else(PoisonError::into_inner);
        let due: Vec<_> =
            holes.iter().filter(|(_, (_, since))| *since <= then).map(|(c, (to, _))| (c.clone(), *to)).collect();
        for (conversation, _) in &due {
            holes.remove(conversation);
        }
        due
    }
}

impl Inner {
    /// Remembers a hole, to be sealed if it stays.
    pub(super) fn watch(&self, known: &Known, hole: SeqRange) {
        self.watched.add(&known.conversation, hole.to, Instant::now());
    }

    /// Seals what has been watched for long enough, for ever.
    pub(super) async fn seal_in_background(self: Arc<Self>) {
        let mut ticks = interval(self.config.seal_after / LOOKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Some(then) = Instant::now().checked_sub(self.config.seal_after) else { continue };
            for (conversation, to) in self.watched.due(then) {
                let known = self.directory.get(&conversation);
                if let Err(error) = self.seal_watched(&known, to).await {
                    tracing::debug!(conversation = conversation.as_str(), ?error, "sealing failed; will try again");
                    self.watched.add(&conversation, to, then);
                }
            }
        }
    }

    async fn seal_watched(&self, known: &Known, to: SeqNo) -> Result<(), AppendError> {
        let deadline = Instant::now() + self.config.append_deadline;
        let control = self.current_control(known, deadline).await?;
        let Some(end) = control.map(|c| c.layout.horizon()) else { return Ok(()) };
        let to = to.min(end.minus(1));
        let range = SeqRange::new(known.frontier(Frontier::resolved), to);
        if let (Some(range), Some(control)) = (range, known.control())
            && self.seal(known, range, deadline).await?
            && let Some(head) = self.find_head(known, &control.layout, deadline).await?.filter(|head| *head > to)
        {
            // Holes seldom come alone. All that lie below the head have been met now, so that a reader need not find
            // them one by one.
            self.watch(known, SeqRange::single(head));
        }
        // One that was met while this was already watched for another.
        if let Some(hole) = known.frontier(Frontier::hole) {
            self.watch(known, hole);
        }
        Ok(())
    }

    /// Puts a void into every hole of the range, which lies below the horizon of the known layout. Says whether there
    /// were any.
    pub(super) async fn seal(&self, known: &Known, range: SeqRange, deadline: Instant) -> Result<bool, AppendError> {
        let (mut voids, mut had_holes) = (Vec::new(), false);
        let mut from = range.from;
        while let Some(step) = SeqRange::new(from, range.to.min(from.plus(SEAL_STEP - 1))) {
            had_holes |= self.seal_step(known, step, deadline, &mut voids).await?;
            from = step.to.next();
        }
        let long: Vec<_> = runs(&voids).into_iter().filter(|run| run.count() >= VOID_RUN_MIN).collect();
        if !long.is_empty() {
            self.remember_voids(known, long, deadline).await?;
        }
        Ok(had_holes)
    }

    async fn seal_step(
        &self,
        known: &Known,
        step: SeqRange,
        deadline: Instant,
        voids: &mut Vec<SeqNo>,
    ) -> Result<bool, AppendError> {
        let control = known.control().ok_or(AppendError::Unsettled(None))?;
        let reading = Reading::new(known, &control.layout, deadline);
        let rows = self.read_rows(reading, step, Order::Ascending, Consistency::Strong, None).await?.rows;
        voids.extend(rows.iter().filter(|row| row.value.is_none()).map(|row| row.seq));
        let holes = holes(step, &rows);
        let mut sealing = Vec::with_capacity(holes.len());
        for &hole in &holes {
            sealing.push(self.void(known, hole, deadline).boxed());
        }
        let sealed = try_join_all(sealing).await?;
        voids.extend(holes.iter().zip(sealed).filter(|(_, void)| *void).map(|(hole, _)| *hole));
        known.saw(step);
        Ok(!holes.is_empty())
    }

    /// Puts a void at a place unless it has a row; `false` if it holds a message.
    pub(super) async fn void(&self, known: &Known, seq: SeqNo, deadline: Instant) -> Result<bool, AppendError> {
        let salt = self.salt(known, seq, deadline).await?;
        let key = Key::row(&known.conversation, salt, seq);
        let put = Put { key, record: Record::Void, condition: Condition::Absent };
        let outcome = self.put(known, &put, deadline).await?;
        known.saw(SeqRange::single(seq));
        match outcome {
            PutOutcome::Applied => {
                self.metrics.voids_written.inc();
                Ok(true)
            }
            PutOutcome::Refused(Some(Record::Message(_))) if self.config.sabotaged(Sabotage::SealerOverwrites) => {
                let put = Put { condition: Condition::Version(0), ..put };
                self.put(known, &put, deadline).await?;
                Ok(true)
            }
            PutOutcome::Refused(row) => Ok(matches!(row, Some(Record::Void))),
        }
    }

    /// Writes long runs of voids into the control record, for readers to step over.
    async fn remember_voids(&self, known: &Known, runs: Vec<SeqRange>, deadline: Instant) -> Result<(), AppendError> {
        let Some(control) = self.current_control(known, deadline).await? else { return Ok(()) };
        let next = control.sealed(known.frontier(Frontier::resolved), runs);
        // Lost to another change of the record? Then they are only read row by row.
        self.put_control(known, next, Condition::Version(control.ver), deadline).await?;
        Ok(())
    }
}

impl From<ReadError> for AppendError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Overloaded => Self::Overloaded,
            ReadError::Unavailable(error) => Self::Unsettled(error),
            ReadError::Lost { .. } | ReadError::Content { .. } => Self::Unsettled(None),
            ReadError::Damaged(error) => Self::Damaged(error),
        }
    }
}

/// The places of a range without a row.
fn holes(range: SeqRange, rows: &[Placed<Row>]) -> Vec<SeqNo> {
    let mut there = rows.iter().map(|row| row.seq).peekable();
    range.iter().filter(|seq| there.next_if_eq(seq).is_none()).collect()
}

/// The runs of consecutive numbers in a set of them.
fn runs(seqs: &[SeqNo]) -> Vec<SeqRange> {
    let mut seqs = seqs.to_vec();
    seqs.sort_unstable();
    let mut runs: Vec<SeqRange> = Vec::new();
    for seq in seqs {
        match runs.last_mut() {
            Some(run) if run.to.next() == seq => run.to = seq,
            _ => runs.push(SeqRange::single(seq)),
        }
    }
    runs
}
