//! Pages of history, assembled from rows without touching a store: which window to read next, what the rows
//! read so far amount to, and when a page is whole.

use std::sync::Arc;

use crate::limits::PAGE_LOOKED_AT_MAX;
use crate::record::MessageRow;
use crate::seq::{SeqNo, SeqRange};
use crate::voids::VoidRuns;

/// A row of history: a message, or `None` for a void. Rows are final, so they can be shared.
pub type Row = Option<Arc<MessageRow>>;

/// A row and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<T> {
    pub seq: SeqNo,
    pub value: T,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapState {
    /// Holds a void: nothing will ever appear here.
    Void,
    /// No row yet, but rows above: a writer is late, or gone.
    Pending,
}

/// Consecutive seq_nos without a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub range: SeqRange,
    pub state: GapState,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OlderPage {
    pub messages: Vec<Placed<Arc<MessageRow>>>,
    /// The lowest seq_no looked at, unless nothing can be older.
    pub next_before: Option<SeqNo>,
    pub gaps: Vec<Gap>,
    pub stable_through: u64,
}

/// Oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewerPage {
    pub messages: Vec<Placed<Arc<MessageRow>>>,
    /// Where to go on; 0 before the first message.
    pub next_after: u64,
    /// No row is above `next_after`.
    pub at_end: bool,
    pub gaps: Vec<Gap>,
    pub stable_through: u64,
}

impl OlderPage {
    /// Keeps the first messages alone: the page that a smaller limit would have given.
    pub fn shorten(&mut self, limit: usize) {
        if limit >= self.messages.len() {
            return;
        }
        self.messages.truncate(limit);
        let Some(lowest) = self.messages.last().map(|message| message.seq) else { return };
        self.next_before = Some(lowest);
        self.gaps.retain(|gap| gap.range.from > lowest);
    }
}

impl NewerPage {
    /// Keeps the first messages alone: the page that a smaller limit would have given.
    pub fn shorten(&mut self, limit: usize) {
        if limit >= self.messages.len() {
            return;
        }
        self.messages.truncate(limit);
        let Some(highest) = self.messages.last().map(|message| message.seq) else { return };
        self.next_after = highest.get();
        self.at_end = false;
        self.gaps.retain(|gap| gap.range.to < highest);
    }
}

/// Joins sorted runs of rows from several partitions into one sequence by seq_no.
///
/// Rust's stable sort finds the runs and merges them, so this is the k-way merge.
#[must_use]
pub fn merge<T>(mut runs: Vec<Vec<Placed<T>>>, order: Order) -> Vec<Placed<T>> {
    let mut rows = if runs.len() == 1 { runs.swap_remove(0) } else { runs.into_iter().flatten().collect() };
    match order {
        Order::Ascending => rows.sort_by_key(|row| row.seq),
        Order::Descending => rows.sort_by_key(|row| std::cmp::Reverse(row.seq)),
    }
    rows
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    Ascending,
    Descending,
}

/// Gaps in the order they are met, neighbours of one state joined.
#[derive(Debug, Default)]
struct Gaps(Vec<Gap>);

impl Gaps {
    fn add(&mut self, range: SeqRange, state: GapState) {
        if let Some(last) = self.0.last_mut().filter(|g| g.state == state) {
            let joined = if range.to.next() == last.range.from {
                SeqRange::new(range.from, last.range.to)
            } else if last.range.to.next() == range.from {
                SeqRange::new(last.range.from, range.to)
            } else {
                None
            };
            if let Some(joined) = joined {
                last.range = joined;
                return;
            }
        }
        self.0.push(Gap { range, state });
    }
}

/// How far to read next: as much as is wanted, and more only while nothing but gaps was found, so that rows read in
/// vain are never more than gaps met; and never beyond what a page may look at.
fn window_len(missing: usize, barren: u64, looked_at: u64) -> u64 {
    (missing as u64).max(barren).min(PAGE_LOOKED_AT_MAX.saturating_sub(looked_at))
}

/// An older page in the making: from some seq_no downwards.
#[derive(Debug)]
pub struct Descent {
    limit: usize,
    /// The next seq_no to look at, downwards; `None` when the first has been seen.
    next: Option<SeqNo>,
    lowest: Option<SeqNo>,
    barren: u64,
    looked_at: u64,
    messages: Vec<Placed<Arc<MessageRow>>>,
    gaps: Gaps,
}

impl Descent {
    /// `next`: the highest seq_no of the page; every hole below it counts as pending.
    #[must_use]
    pub fn new(next: Option<SeqNo>, limit: usize) -> Self {
        Self {
            limit,
            next,
            lowest: None,
            barren: 0,
            looked_at: 0,
            messages: Vec::with_capacity(limit),
            gaps: Gaps::default(),
        }
    }

    /// The next range to read, or `None` when the page is whole. Steps over runs of voids that are known.
    pub fn window(&mut self, voids: &VoidRuns) -> Option<SeqRange> {
        loop {
            let next = self.next?;
            if self.messages.len() >= self.limit || self.looked_at >= PAGE_LOOKED_AT_MAX {
                return None;
            }
            if let Some(run) = voids.run_at(next) {
                self.gap(SeqRange { from: run.from, to: next }, GapState::Void);
                self.pass(run.from);
                continue;
            }
            let len = window_len(self.limit - self.messages.len(), self.barren, self.looked_at);
            let floor = voids.below(next).map_or(SeqNo::FIRST, |run| run.to.next());
            return SeqRange::new(next.minus(len - 1).max(floor), next);
        }
    }

    /// Takes the rows of a range, highest first: all that exist in it, or at least down to the message that makes the
    /// page whole. Anything else that is left out would be taken for a hole.
    pub fn absorb(&mut self, range: SeqRange, rows: Vec<Placed<Row>>) {
        let found = self.messages.len();
        let mut looked_down_to = range.to.next();
        for row in rows {
            if self.messages.len() >= self.limit {
                break;
            }
            if let Some(hole) = SeqRange::until(row.seq.next(), looked_down_to) {
                self.gap(hole, GapState::Pending);
            }
            looked_down_to = row.seq;
            match row.value {
                Some(message) => self.messages.push(Placed { seq: row.seq, value: message }),
                None => self.gap(SeqRange::single(row.seq), GapState::Void),
            }
        }
        if self.messages.len() < self.limit {
            if let Some(hole) = SeqRange::until(range.from, looked_down_to) {
                self.gap(hole, GapState::Pending);
            }
            looked_down_to = range.from;
        }
        let looked_at = range.to.get() + 1 - looked_down_to.get();
        self.looked_at += looked_at;
        self.barren = if self.messages.len() == found { self.barren + looked_at } else { 0 };
        self.pass(looked_down_to);
    }

    fn gap(&mut self, range: SeqRange, state: GapState) {
        self.gaps.add(range, state);
    }

    fn pass(&mut self, lowest: SeqNo) {
        self.lowest = Some(lowest);
        self.next = lowest.prev();
    }

    /// The pending gaps met so far.
    pub fn pending(&self) -> impl Iterator<Item = SeqRange> {
        self.gaps.0.iter().filter(|g| g.state == GapState::Pending).map(|g| g.range)
    }

    #[must_use]
    pub fn finish(self, stable_through: u64) -> OlderPage {
        let next_before = if self.next.is_none() { None } else { self.lowest };
        OlderPage { messages: self.messages, next_before, gaps: self.gaps.0, stable_through }
    }
}

/// A newer page in the making: upwards, up to the first pending gap.
#[derive(Debug)]
pub struct Ascent {
    limit: usize,
    /// The last seq_no passed; 0 before the first.
    after: u64,
    barren: u64,
    looked_at: u64,
    stopped: bool,
    messages: Vec<Placed<Arc<MessageRow>>>,
    gaps: Gaps,
}

impl Ascent {
    #[must_use]
    pub fn new(after: u64, limit: usize) -> Self {
        Self {
            limit,
            after,
            barren: 0,
            looked_at: 0,
            stopped: false,
            messages: Vec::with_capacity(limit),
            gaps: Gaps::default(),
        }
    }

    /// The last seq_no passed; 0 before the first.
    #[must_use]
    pub fn after(&self) -> u64 {
        self.after
    }

    /// The next range to read, or `None` when the page is whole or a pending gap bars the way.
    pub fn window(&mut self, voids: &VoidRuns) -> Option<SeqRange> {
        loop {
            let full = self.messages.len() >= self.limit || self.looked_at >= PAGE_LOOKED_AT_MAX;
            if full || self.stopped {
                return None;
            }
            let next = SeqNo::new(self.after + 1).filter(|s| *s < SeqNo::END)?;
            if let Some(run) = voids.run_at(next) {
                self.gaps.add(SeqRange { from: next, to: run.to }, GapState::Void);
                self.after = run.to.get();
                continue;
            }
            let len = window_len(self.limit - self.messages.len(), self.barren, self.looked_at);
            let end = voids.above(next).map_or(SeqNo::END, |run| run.from);
            return SeqRange::until(next, next.plus(len).min(end));
        }
    }

    /// Takes the rows of a range, lowest first: all that exist in it, or at least up to the message that makes the page
    /// whole. `head` is the highest row known: a hole below it is a pending gap and ends the page; a hole above it is
    /// the end of the conversation.
    pub fn absorb(&mut self, range: SeqRange, rows: Vec<Placed<Row>>, head: Option<SeqNo>) {
        let (found, came_from) = (self.messages.len(), self.after);
        let mut rows = rows.into_iter().peekable();
        while let Some(row) = rows.next_if(|r| r.seq.get() == self.after + 1) {
            if self.messages.len() >= self.limit {
                return;
            }
            self.after = row.seq.get();
            match row.value {
                Some(message) => self.messages.push(Placed { seq: row.seq, value: message }),
                None => self.gaps.add(SeqRange::single(row.seq), GapState::Void),
            }
        }
        let looked_at = self.after - came_from;
        self.looked_at += looked_at;
        self.barren = if self.messages.len() == found { self.barren + looked_at } else { 0 };
        if self.after >= range.to.get() || self.messages.len() >= self.limit {
            return;
        }
        self.stopped = true;
        let above = rows.next().map(|r| r.seq).or(head.filter(|h| h.get() > self.after));
        let hole = above.and_then(|above| SeqRange::until(SeqNo::clamped(self.after + 1), above));
        if let Some(hole) = hole {
            let hole = hole.intersect(range).unwrap_or(hole);
            self.gaps.add(hole, GapState::Pending);
        }
    }

    /// The pending gap that ended the page, if one did.
    pub fn pending(&self) -> impl Iterator<Item = SeqRange> {
        self.gaps.0.iter().filter(|g| g.state == GapState::Pending).map(|g| g.range)
    }

    #[must_use]
    pub fn finish(self, head: Option<SeqNo>, stable_through: u64) -> NewerPage {
        let at_end = head.is_none_or(|h| h.get() <= self.after);
        NewerPage { messages: self.messages, next_after: self.after, at_end, gaps: self.gaps.0, stable_through }
    }
}

#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
mod tests;
