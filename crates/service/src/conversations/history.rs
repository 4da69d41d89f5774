//! Reads: pages of history, single rows, the head. The core plans and assembles; this asks the store.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{join, try_join_all};
use saltern_core::control::ControlRecord;
use saltern_core::frontier::Frontier;
use saltern_core::key::PartitionKey;
use saltern_core::layout::{Layout, Slice};
use saltern_core::limits::PAGE_LIMIT_DEFAULT;
use saltern_core::page::{Ascent, Descent, NewerPage, OlderPage, Order, Placed, Row, merge};
use saltern_core::record::{MessageRow, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_core::voids::VoidRuns;
use saltern_store::{Consistency, Query, StoreError};
use tokio::time::Instant;

use super::archive::{ContentProblem, Unread};
use super::known::Known;
use super::{Contents, Inner, Lookup, ReadError, View};

/// How often a page is read again because contents have moved on.
const REREADS_MAX: usize = 4;

#[derive(Debug, thiserror::Error)]
#[error("row {0} is neither a message nor a void")]
struct NotARow(SeqNo);

/// Whose rows are read, by which layout, until when.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    known: &'a Known,
    layout: &'a Layout,
    deadline: Instant,
    /// Below it every place had a row before the read began, so a hole there is loss.
    resolved: SeqNo,
}

impl<'a> Reading<'a> {
    pub(super) fn new(known: &'a Known, layout: &'a Layout, deadline: Instant) -> Self {
        Self { known, layout, deadline, resolved: known.frontier(Frontier::resolved) }
    }
}

/// Rows of a range, and the part of it that they are the whole of.
pub(super) struct Rows {
    pub(super) rows: Vec<Placed<Row>>,
    covered: SeqRange,
}

impl Inner {
    /// The page below `before`, or the newest.
    pub(super) async fn read_older(
        &self,
        known: &Known,
        before: Option<SeqNo>,
        limit: usize,
        contents: Contents,
    ) -> Result<OlderPage, ReadError> {
        let deadline = Instant::now() + self.config.read_deadline;
        let mut page = self.read_older_rows(known, before, limit, deadline).await?;
        self.fetch(known, contents, &mut page.messages, deadline).await?;
        Ok(page)
    }

    async fn read_older_rows(
        &self,
        known: &Known,
        before: Option<SeqNo>,
        limit: usize,
        deadline: Instant,
    ) -> Result<OlderPage, ReadError> {
        let control = match known.control() {
            Some(control) if before.is_some_and(|before| before <= control.layout.horizon()) => Some(control),
            Some(seen) if before.is_none() && !self.store.capabilities().exclusive => {
                // At once, by the layout as last seen, and whether that still holds. If it does, no row can lie beyond it.
                let (current, page) =
                    join(self.read_control(known, deadline), self.older_page(known, &seen, None, limit, deadline))
                        .await;
                match current?.filter(|current| current.layout.horizon() > seen.layout.horizon()) {
                    Some(moved_on) => Some(moved_on),
                    None => return page,
                }
            }
            _ => self.current_control(known, deadline).await?,
        };
        match control {
            Some(control) => self.older_page(known, &control, before, limit, deadline).await,
            None => Ok(Descent::new(None, limit).finish(0)),
        }
    }

    /// The page below `before`, or the newest, of what lies below the horizon of this control record.
    async fn older_page(
        &self,
        known: &Known,
        control: &ControlRecord,
        before: Option<SeqNo>,
        limit: usize,
        deadline: Instant,
    ) -> Result<OlderPage, ReadError> {
        let reading = Reading::new(known, &control.layout, deadline);
        let top = before.map_or(control.layout.horizon(), |b| b.min(control.layout.horizon())).prev();
        let Some(top) = top else { return Ok(Descent::new(None, limit).finish(0)) };
        let mut descent = match before {
            None => self.descent_from_head(reading, top, limit).await?,
            Some(_) => self.descent_from(reading, top, limit, &control.voids).await?,
        };
        while let Some(window) = descent.window(&control.voids) {
            let rows = self.read_window(reading, window, Order::Descending).await?;
            descent.absorb(window, rows);
        }
        let stable_through = self.met_holes(known, descent.pending());
        let page = descent.finish(stable_through);
        self.metrics.rows_returned.inc_by(page.messages.len() as u64);
        Ok(page)
    }

    /// Starts the newest page, with its first rows unless the head is known.
    async fn descent_from_head(&self, reading: Reading<'_>, top: SeqNo, limit: usize) -> Result<Descent, ReadError> {
        if let Some(head) = reading.known.exact_head() {
            return Ok(Descent::new(Some(head), limit));
        }
        let Some(Rows { rows, covered }) = self.read_top(reading, top, limit).await? else {
            return Ok(Descent::new(None, limit));
        };
        self.check_loss(reading, covered, &rows)?;
        self.note_rows(reading, covered, &rows);
        let mut descent = Descent::new(Some(covered.to), limit);
        descent.absorb(covered, rows);
        Ok(descent)
    }

    /// Starts a page at `top`, or at the head if that is lower. Only if there is no row at `top` and none is known
    /// above it does it take more than the page's own rows to tell.
    async fn descent_from(
        &self,
        reading: Reading<'_>,
        top: SeqNo,
        limit: usize,
        voids: &VoidRuns,
    ) -> Result<Descent, ReadError> {
        let mut descent = Descent::new(Some(top), limit);
        if reading.known.frontier(Frontier::head) >= Some(top) {
            return Ok(descent);
        }
        let Some(window) = descent.window(voids) else { return Ok(descent) };
        let rows = self.read_window(reading, window, Order::Descending).await?;
        let row_at_top = window.to < top || rows.first().is_some_and(|row| row.seq == top);
        if !row_at_top {
            let head = self.find_head(reading.known, reading.layout, reading.deadline).await?;
            if head < Some(top) {
                return Ok(Descent::new(head, limit));
            }
        }
        descent.absorb(window, rows);
        Ok(descent)
    }

    /// Fetches what of a page is in the archive. A row that was read before its content moved on is read once more.
    async fn fetch(
        &self,
        known: &Known,
        contents: Contents,
        messages: &mut [Placed<Arc<MessageRow>>],
        deadline: Instant,
    ) -> Result<(), ReadError> {
        let archived = || messages.iter().filter(|row| row.value.archived_at().is_some()).map(|row| row.seq);
        let (Contents::Fetched, Some(first), Some(last)) = (contents, archived().min(), archived().max()) else {
            return Ok(());
        };
        let unread = |seq, problem| ReadError::Content { conversation: known.conversation.clone(), seq, problem };
        let range = SeqRange { from: first, to: last };
        for _ in 0..REREADS_MAX {
            let Err(Unread { seq, problem }) = self.archive.fill(&known.conversation, messages).await else {
                return Ok(());
            };
            if let ContentProblem::Unavailable(_) = problem {
                return Err(unread(seq, problem));
            }
            self.rows.forget(&known.conversation, range);
            let Some(control) = known.control() else { return Err(unread(seq, problem)) };
            let reading = Reading::new(known, &control.layout, deadline);
            let rows = self.read_rows(reading, range, Order::Ascending, Consistency::Strong, None).await?.rows;
            let mut moved_on = false;
            for message in messages.iter_mut() {
                let now = rows.iter().find(|row| row.seq == message.seq).and_then(|row| row.value.as_ref());
                if let Some(now) = now.filter(|now| now.ver != message.value.ver) {
                    moved_on |= message.seq == seq;
                    message.value = Arc::clone(now);
                }
            }
            if !moved_on {
                self.metrics.contents_unread.inc();
                let conversation = &known.conversation;
                tracing::error!(
                    conversation = conversation.as_str(),
                    seq = seq.get(),
                    error = &problem as &dyn std::error::Error,
                    "content cannot be had from the archive"
                );
                return Err(unread(seq, problem));
            }
        }
        Err(ReadError::Unavailable(None))
    }

    /// The page above `after`.
    pub(super) async fn read_newer(
        &self,
        known: &Known,
        after: u64,
        limit: usize,
        contents: Contents,
    ) -> Result<NewerPage, ReadError> {
        let deadline = Instant::now() + self.config.read_deadline;
        let mut ascent = Ascent::new(after, limit);
        let mut current: Option<Arc<ControlRecord>> = None;
        let mut cut_short = false;
        loop {
            let (head, known_control) = (known.frontier(Frontier::head), known.control());
            let no_voids = VoidRuns::default();
            let voids = known_control.as_ref().map_or(&no_voids, |c| &c.voids);
            let Some(window) = ascent.window(voids) else { break };
            if let Some(control) = known_control.filter(|_| head > Some(window.to)) {
                let reading = Reading::new(known, &control.layout, deadline);
                let rows = self.read_window(reading, window, Order::Ascending).await?;
                ascent.absorb(window, rows, head);
                continue;
            }
            // At the tail, only the present control record says how far rows can reach.
            if current.is_none() {
                current = self.current_control(known, deadline).await?;
            }
            let Some(control) = &current else { break };
            let Some(tail) = SeqRange::until(window.from, control.layout.horizon()) else { break };
            let reading = Reading::new(known, &control.layout, deadline);
            let ahead = usize::try_from(window.count()).unwrap_or(limit) + 1;
            let found = self.read_rows(reading, tail, Order::Ascending, Consistency::Strong, Some(ahead)).await?;
            let Rows { mut rows, covered } = found;
            cut_short = covered.to < tail.to;
            self.note_rows(reading, tail, &rows);
            rows.retain(|row| covered.contains(row.seq));
            self.check_loss(reading, covered, &rows)?;
            ascent.absorb(covered, rows, known.frontier(Frontier::head));
        }
        let stable_through = self.met_holes(known, ascent.pending());
        let beyond = SeqNo::clamped(ascent.after() + 1);
        let head = known.frontier(Frontier::head).max(cut_short.then_some(beyond));
        let mut page = ascent.finish(head, stable_through);
        self.fetch(known, contents, &mut page.messages, deadline).await?;
        self.metrics.rows_returned.inc_by(page.messages.len() as u64);
        Ok(page)
    }

    /// What one place holds.
    pub(super) async fn read_one(&self, known: &Known, seq: SeqNo, contents: Contents) -> Result<Lookup, ReadError> {
        let deadline = Instant::now() + self.config.read_deadline;
        let control = match known.control().filter(|c| seq < c.layout.horizon()) {
            Some(control) => Some(control),
            None => self.current_control(known, deadline).await?,
        };
        let Some(control) = control.filter(|c| seq < c.layout.horizon()) else { return Ok(Lookup::BeyondHead) };
        let reading = Reading::new(known, &control.layout, deadline);
        let mut rows = self.read_window(reading, SeqRange::single(seq), Order::Ascending).await?;
        if let Some(row) = rows.pop() {
            let Some(value) = row.value else { return Ok(Lookup::Void) };
            let mut message = [Placed { seq, value }];
            self.fetch(known, contents, &mut message, deadline).await?;
            let [message] = message;
            return Ok(Lookup::Message(message.value));
        }
        let mut head = known.frontier(Frontier::head);
        if head < Some(seq) {
            let control = self.current_control(known, deadline).await?.unwrap_or(control);
            head = self.find_head(known, &control.layout, deadline).await?;
        }
        if head < Some(seq) {
            return Ok(Lookup::BeyondHead);
        }
        self.met_holes(known, std::iter::once(SeqRange::single(seq)));
        Ok(Lookup::Pending)
    }

    /// The operator's view.
    pub(super) async fn read_view(&self, known: &Known) -> Result<Option<View>, ReadError> {
        let deadline = Instant::now() + self.config.read_deadline;
        let Some(control) = self.current_control(known, deadline).await? else { return Ok(None) };
        let newest = self.read_older(known, None, PAGE_LIMIT_DEFAULT, Contents::Refs).await?;
        let head = known.frontier(Frontier::head);
        Ok(Some(View {
            head_seq: head.map_or(0, SeqNo::get),
            stable_through: newest.stable_through,
            n: control.layout.n(),
            max_n: control.layout.max_n(),
            rate_wcu_per_s: self.registry.rate_wcu_per_s(&known.conversation).await.ok(),
            horizon: control.layout.horizon(),
            epochs: control.layout.epochs().to_vec(),
            recent_gaps: newest.gaps,
        }))
    }

    /// The highest row: last epoch first, one row from each of its partitions.
    pub(super) async fn find_head(
        &self,
        known: &Known,
        layout: &Layout,
        deadline: Instant,
    ) -> Result<Option<SeqNo>, ReadError> {
        let Some(top) = layout.horizon().prev() else { return Ok(None) };
        let reading = Reading::new(known, layout, deadline);
        let found = self.read_top(reading, top, 1).await?;
        Ok(found.map(|rows| {
            self.note_rows(reading, rows.covered, &rows.rows);
            rows.covered.to
        }))
    }

    /// The highest rows at or below `top`, at least `limit` of them if there are that many in their epoch; `None` if
    /// there is no row at all. The range covered ends at the highest row.
    ///
    /// A row known to exist makes the search shorter: what is wanted cannot lie more than `limit` below it.
    async fn read_top(&self, reading: Reading<'_>, top: SeqNo, limit: usize) -> Result<Option<Rows>, ReadError> {
        let hint = reading.known.frontier(Frontier::head).filter(|head| *head <= top);
        let mut from = match hint {
            Some(head) => head.minus(limit as u64 - 1),
            None => reading.layout.epoch_start(top),
        };
        let mut top = top;
        loop {
            let range = SeqRange { from, to: top };
            let found = self.read_rows(reading, range, Order::Descending, Consistency::Strong, Some(limit)).await?;
            let highest = found.rows.first().map(|row| row.seq);
            if let Some(lost) = hint.filter(|head| highest < Some(*head)) {
                return Err(self.lost(reading, lost));
            }
            if let Some(highest) = highest {
                if self.store.capabilities().exclusive {
                    reading.known.saw(SeqRange::single(highest));
                    reading.known.found_head();
                }
                let Rows { mut rows, covered } = found;
                rows.retain(|row| covered.contains(row.seq));
                return Ok(Some(Rows { rows, covered: SeqRange { from: covered.from.min(highest), to: highest } }));
            }
            let Some(below) = from.prev() else { return Ok(None) };
            (top, from) = (below, reading.layout.epoch_start(below));
        }
    }

    /// All rows of a range that may have holes only above what is resolved: a hole below is looked at once more, with
    /// a strong read, and is then detected loss.
    async fn read_window(
        &self,
        reading: Reading<'_>,
        window: SeqRange,
        order: Order,
    ) -> Result<Vec<Placed<Row>>, ReadError> {
        let conversation = &reading.known.conversation;
        if let Some(rows) = self.rows.get(conversation, window, order) {
            self.metrics.reads_cached.inc();
            return Ok(rows);
        }
        let read = self.rows.before_read(conversation);
        if window.to < reading.resolved {
            let rows = self.read_rows(reading, window, order, Consistency::Eventual, None).await?.rows;
            if rows.len() as u64 == window.count() {
                self.rows.put(conversation, &rows, read);
                return Ok(rows);
            }
        }
        let rows = self.read_rows(reading, window, order, Consistency::Strong, None).await?.rows;
        self.check_loss(reading, window, &rows)?;
        self.note_rows(reading, window, &rows);
        self.rows.put(conversation, &rows, read);
        Ok(rows)
    }

    fn check_loss(&self, reading: Reading<'_>, range: SeqRange, rows: &[Placed<Row>]) -> Result<(), ReadError> {
        let resolved = SeqRange::until(range.from, reading.resolved);
        let Some(due) = resolved.and_then(|resolved| resolved.intersect(range)) else { return Ok(()) };
        if rows.iter().filter(|row| due.contains(row.seq)).count() as u64 == due.count() {
            return Ok(());
        }
        let lost = due.iter().find(|seq| !rows.iter().any(|row| row.seq == *seq)).unwrap_or(due.from);
        Err(self.lost(reading, lost))
    }

    /// Sounds the alarm.
    fn lost(&self, reading: Reading<'_>, seq: SeqNo) -> ReadError {
        self.metrics.rows_lost.inc();
        let conversation = reading.known.conversation.clone();
        tracing::error!(
            conversation = conversation.as_str(),
            seq = seq.get(),
            "a row that must exist is missing from the store"
        );
        ReadError::Lost { conversation, seq }
    }

    /// Rows of a range, from all its partitions at once, at most `each` from any one.
    pub(super) async fn read_rows(
        &self,
        reading: Reading<'_>,
        range: SeqRange,
        order: Order,
        consistency: Consistency,
        each: Option<usize>,
    ) -> Result<Rows, ReadError> {
        let slices = reading.layout.slices(range);
        self.metrics.read_partitions.inc_by(slices.len() as u64);
        let answers = match slices[..] {
            [slice] => vec![self.read_slice(reading, slice, order, consistency, each).await?],
            _ => {
                let mut asked = Vec::with_capacity(slices.len());
                for slice in slices {
                    asked.push(self.read_slice(reading, slice, order, consistency, each).boxed());
                }
                try_join_all(asked).await?
            }
        };
        // What a partition that was cut short has beyond its last row is not known.
        let cut = answers.iter().filter(|(_, cut)| *cut).filter_map(|(rows, _)| Some(rows.last()?.seq));
        let covered = match order {
            Order::Descending => SeqRange { from: cut.max().unwrap_or(range.from), to: range.to },
            Order::Ascending => SeqRange { from: range.from, to: cut.min().unwrap_or(range.to) },
        };
        let rows = merge(answers.into_iter().map(|(rows, _)| rows).collect(), order);
        self.metrics.rows_read.inc_by(rows.len() as u64);
        Ok(Rows { rows, covered })
    }

    /// Rows of one partition, and whether there may be more of them.
    async fn read_slice(
        &self,
        reading: Reading<'_>,
        slice: Slice,
        order: Order,
        consistency: Consistency,
        each: Option<usize>,
    ) -> Result<(Vec<Placed<Row>>, bool), ReadError> {
        let conversation = &reading.known.conversation;
        let places = usize::try_from(slice.places).unwrap_or(usize::MAX);
        let limit = each.map_or(places, |each| each.min(places));
        let query = Query {
            partition: PartitionKey::messages(conversation, slice.salt),
            from: slice.range.from.get(),
            to: slice.range.to.get(),
            order,
            limit,
            consistency,
        };
        let found = self.query(reading.known, &query, reading.deadline).await?;
        let cut = found.len() >= limit && limit < places;
        let rows = found.into_iter().map(|(sort, record)| placed(sort, record)).collect::<Result<_, _>>()?;
        Ok((rows, cut))
    }

    /// Rows are final: what was seen once need not be asked again.
    fn note_rows(&self, reading: Reading<'_>, range: SeqRange, rows: &[Placed<Row>]) {
        if rows.len() as u64 == range.count() {
            return reading.known.saw(range);
        }
        let mut run: Option<SeqRange> = None;
        for row in rows {
            run = match run {
                Some(r) if r.to.next() == row.seq => Some(SeqRange { to: row.seq, ..r }),
                Some(r) if row.seq.next() == r.from => Some(SeqRange { from: row.seq, ..r }),
                other => {
                    other.into_iter().for_each(|r| reading.known.saw(r));
                    Some(SeqRange::single(row.seq))
                }
            };
        }
        run.into_iter().for_each(|r| reading.known.saw(r));
    }

    /// Remembers the holes of a page. Answers how far all is final, as far as can be said beside those holes, which
    /// may have been filled since the page was read.
    fn met_holes(&self, known: &Known, holes: impl Iterator<Item = SeqRange>) -> u64 {
        let mut stable_through = known.frontier(Frontier::stable_through);
        for hole in holes {
            self.metrics.pending_gaps_seen.inc();
            self.watch(known, hole);
            stable_through = stable_through.min(hole.from.get() - 1);
        }
        stable_through
    }
}

fn placed(sort: u64, record: Record) -> Result<Placed<Row>, ReadError> {
    let seq = SeqNo::clamped(sort);
    let value = match record {
        Record::Message(row) => Some(Arc::new(row)),
        Record::Void => None,
        _ => return Err(ReadError::Damaged(StoreError::Damaged(Arc::new(NotARow(seq))))),
    };
    Ok(Placed { seq, value })
}

impl From<StoreError> for ReadError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => Self::Damaged(error),
            error => Self::Unavailable(Some(error)),
        }
    }
}
