use std::num::NonZeroUsize;
use std::sync::Arc;

use lru::LruCache;
use saltern_core::control::ControlRecord;
use saltern_core::ids::{ConversationId, MessageId};
use saltern_core::key::{Key, PartitionKey, Place};
use saltern_core::layout::{Salt, Slice};
use saltern_core::page::{Order, Placed};
use saltern_core::record::{Claim, MessageRow, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_core::verify::{Fault, check_claim, check_control, check_row};
use saltern_store::{Consistency, Query, ScanPage, StoreError, query_all};

use super::{Checked, Notice, Verifier};
use crate::conversations::{Archive, ContentProblem};
use crate::patience::patiently;

/// Rows that are read together.
const PAGE_ROWS: usize = 1_000;
const GETS: usize = 100;
/// seq_nos that are looked for together.
const WINDOW: u64 = 4_096;
const CONTROLS_REMEMBERED: NonZeroUsize = NonZeroUsize::new(4_096).unwrap();

pub(super) struct Run<'a, F> {
    of: &'a Verifier,
    tell: F,
    checked: Checked,
    /// `None`: there is none, or it cannot be read; that has been told.
    controls: LruCache<ConversationId, Option<Arc<ControlRecord>>>,
    archive: Option<Archive>,
}

struct Row {
    conversation: ConversationId,
    place: (Salt, SeqNo),
    record: Record,
}

/// What a page holds, by kind.
#[derive(Default)]
struct Sorted {
    rows: Vec<Row>,
    claims: Vec<(ConversationId, MessageId, Claim)>,
    controls: Vec<(ConversationId, ControlRecord)>,
}

impl<'a, F: FnMut(Notice) + Send> Run<'a, F> {
    pub(super) fn new(of: &'a Verifier, tell: F) -> Self {
        let archive = of.objects.clone().map(|objects| {
            Archive::for_reading(Arc::clone(&of.store), objects, Arc::clone(&of.wall_clock), of.patience)
        });
        Self { of, tell, checked: Checked::default(), controls: LruCache::new(CONTROLS_REMEMBERED), archive }
    }

    pub(super) async fn finish(
        mut self,
        mut behind: Option<Key>,
        enough: impl Fn(&Checked) -> bool + Send,
    ) -> Result<(Checked, Option<Key>), StoreError> {
        loop {
            let page = patiently(self.of.patience, || self.of.scan.scan(behind.as_ref(), PAGE_ROWS)).await?;
            behind = page.resume.clone();
            self.page(page).await?;
            (self.tell)(Notice::Progress(self.checked));
            if behind.is_none() || enough(&self.checked) {
                return Ok((self.checked, behind));
            }
        }
    }

    fn fault(&mut self, fault: Fault) {
        self.checked.faults += 1;
        (self.tell)(Notice::Fault(fault));
    }

    async fn page(&mut self, page: ScanPage) -> Result<(), StoreError> {
        let Sorted { rows, claims, controls } = self.sorted(page);
        for (conversation, control) in controls {
            self.checked.conversations += 1;
            if let Some(fault) = check_control(&conversation, &control) {
                self.fault(fault);
            }
            self.look_for_missing(&conversation, &control).await?;
        }
        for row in &rows {
            self.checked.rows += 1;
            self.row(row).await?;
        }
        for rows in rows.chunk_by(|a, b| a.conversation == b.conversation) {
            self.contents(rows).await?;
        }
        for rows in rows.chunks(GETS) {
            self.claims_of(rows).await?;
        }
        for (conversation, message, claim) in claims {
            self.checked.claims += 1;
            self.claim(conversation, message, claim).await?;
        }
        Ok(())
    }

    fn sorted(&mut self, page: ScanPage) -> Sorted {
        let mut sorted = Sorted::default();
        for (key, record) in page.rows {
            match (key.place(), record) {
                (_, Err(cause)) => self.fault(Fault::Unreadable(key, cause.to_string())),
                (None, _) => self.fault(Fault::StrangeKey(key)),
                (Some(Place::Row { conversation, salt, seq }), Ok(record @ (Record::Message(_) | Record::Void))) => {
                    sorted.rows.push(Row { conversation, place: (salt, seq), record });
                }
                (Some(Place::Control(conversation)), Ok(Record::Control(control))) => {
                    sorted.controls.push((conversation, control));
                }
                (Some(Place::Claim { conversation, message }), Ok(Record::Claim(claim))) => {
                    sorted.claims.push((conversation, message, claim));
                }
                (Some(_), Ok(_)) => self.fault(Fault::OtherKind(key)),
            }
        }
        sorted
    }

    /// What is remembered of the control record may be older than the row, and the row older than what is remembered. A fault
    /// counts only if both, read again in this order, still show it.
    async fn row(&mut self, row: &Row) -> Result<(), StoreError> {
        let Row { conversation, place, record } = row;
        let Some(control) = self.control(conversation).await? else { return Ok(()) };
        if check_row(conversation, &control, *place, record).is_empty() {
            return Ok(());
        }
        let Some(control) = self.present_control(conversation).await? else { return Ok(()) };
        let key = Key::row(conversation, place.0, place.1);
        let Some(Looked::There(record)) = self.get(&[key]).await?.pop() else { return Ok(()) };
        for fault in check_row(conversation, &control, *place, &record) {
            self.fault(fault);
        }
        Ok(())
    }

    /// Contents that are in the archive, held against their digests. One that has moved on since its row was read is looked
    /// for once more.
    async fn contents(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        let Some(archive) = &self.archive else { return Ok(()) };
        let archived = rows.iter().filter_map(|row| match &row.record {
            Record::Message(message) if message.archived_at().is_some() => {
                Some(Placed { seq: row.place.1, value: Arc::new(message.clone()) })
            }
            _ => None,
        });
        let archived: Vec<_> = archived.collect();
        let Some(conversation) = rows.first().map(|row| row.conversation.clone()) else { return Ok(()) };
        let mut faults = Vec::new();
        for (row, problem) in archived.iter().zip(archive.check(&conversation, &archived).await?) {
            self.checked.archived += 1;
            if let Some(problem) = problem
                && let Some(fault) = self.still(archive, &conversation, row, problem).await?
            {
                faults.push(fault);
            }
        }
        faults.into_iter().for_each(|fault| self.fault(fault));
        Ok(())
    }

    async fn still(
        &self,
        archive: &Archive,
        conversation: &ConversationId,
        row: &Placed<Arc<MessageRow>>,
        mut problem: ContentProblem,
    ) -> Result<Option<Fault>, StoreError> {
        let mut row = row.clone();
        while let Some(now) = self.moved_on(conversation, &row).await? {
            row.value = now;
            match archive.check(conversation, std::slice::from_ref(&row)).await?.pop().flatten() {
                Some(still) => problem = still,
                None => return Ok(None),
            }
        }
        let Some(at) = row.value.archived_at().cloned() else { return Ok(None) };
        Ok(Some(match problem {
            ContentProblem::Missing => Fault::ContentMissing(conversation.clone(), row.seq, at),
            _ => Fault::ContentDamaged(conversation.clone(), row.seq, at),
        }))
    }

    /// The row as it is now, if it has changed.
    async fn moved_on(
        &self,
        conversation: &ConversationId,
        row: &Placed<Arc<MessageRow>>,
    ) -> Result<Option<Arc<MessageRow>>, StoreError> {
        let Some(Looked::There(Record::Control(control))) = self.get(&[Key::control(conversation)]).await?.pop() else {
            return Ok(None);
        };
        let Some(salt) = control.layout.salt(row.seq) else { return Ok(None) };
        match self.get(&[Key::row(conversation, salt, row.seq)]).await?.pop() {
            Some(Looked::There(Record::Message(now))) if now.ver != row.value.ver => Ok(Some(Arc::new(now))),
            _ => Ok(None),
        }
    }

    async fn claim(
        &mut self,
        conversation: ConversationId,
        message: MessageId,
        claim: Claim,
    ) -> Result<(), StoreError> {
        let beyond = |control: Option<Arc<ControlRecord>>| control.is_some_and(|c| claim.seq >= c.layout.horizon());
        if beyond(self.control(&conversation).await?) && beyond(self.present_control(&conversation).await?) {
            self.fault(Fault::ClaimBeyondHorizon(conversation, message, claim.seq));
        }
        Ok(())
    }

    async fn claims_of(&mut self, rows: &[Row]) -> Result<(), StoreError> {
        let messages: Vec<(&Row, &MessageRow)> = rows
            .iter()
            .filter_map(|row| match &row.record {
                Record::Message(message) => Some((row, message)),
                _ => None,
            })
            .collect();
        let keys: Vec<_> = messages.iter().map(|(row, m)| Key::claim(&row.conversation, &m.message_id)).collect();
        let claims = self.get(&keys).await?;
        for ((row, message), claim) in messages.into_iter().zip(claims) {
            let claim = match claim {
                Looked::There(Record::Claim(claim)) => Some(claim),
                // Told when the scan comes there.
                Looked::There(_) | Looked::Damaged => continue,
                Looked::Absent if self.may_be_gone(message) => continue,
                Looked::Absent => None,
            };
            if let Some(fault) = check_claim(&row.conversation, row.place.1, message, claim.as_ref()) {
                self.fault(fault);
            }
        }
        Ok(())
    }

    fn may_be_gone(&self, message: &MessageRow) -> bool {
        let age_ms = (self.of.wall_clock)().saturating_sub(message.ingested_at_ms);
        self.of.claims_kept_ms.is_some_and(|kept_ms| age_ms >= kept_ms)
    }

    async fn control(&mut self, conversation: &ConversationId) -> Result<Option<Arc<ControlRecord>>, StoreError> {
        match self.controls.get(conversation) {
            Some(control) => Ok(control.clone()),
            None => self.present_control(conversation).await,
        }
    }

    async fn present_control(
        &mut self,
        conversation: &ConversationId,
    ) -> Result<Option<Arc<ControlRecord>>, StoreError> {
        let control = match self.get(&[Key::control(conversation)]).await?.pop() {
            Some(Looked::There(Record::Control(control))) => Some(Arc::new(control)),
            // Told when the scan comes there.
            Some(Looked::There(_) | Looked::Damaged) => None,
            Some(Looked::Absent) | None => {
                self.fault(Fault::NoControl(conversation.clone()));
                None
            }
        };
        self.controls.put(conversation.clone(), control.clone());
        Ok(control)
    }

    /// Every seq_no below `resolved` has a row, or was never a promise.
    async fn look_for_missing(
        &mut self,
        conversation: &ConversationId,
        control: &ControlRecord,
    ) -> Result<(), StoreError> {
        let end = control.resolved.min(control.layout.horizon());
        let (mut from, mut missing) = (SeqNo::FIRST, None::<SeqRange>);
        while let Some(window) = SeqRange::until(from, from.plus(WINDOW).min(end)) {
            let mut present = vec![false; usize::try_from(window.count()).unwrap_or(0)];
            for slice in control.layout.slices(window) {
                self.mark(conversation, slice, window.from, &mut present).await?;
            }
            if !present.contains(&true) {
                // Whatever the record says, it takes no longer than there are rows.
                let next = self.next_row(conversation, control, window.from, end).await?;
                let absent = SeqRange::until(window.from, next);
                missing = match (missing, absent) {
                    (Some(run), Some(absent)) if run.to.next() == absent.from => SeqRange::new(run.from, absent.to),
                    (run, absent) => {
                        self.tell_missing(conversation, run);
                        absent
                    }
                };
                from = next;
                continue;
            }
            for (seq, _) in window.iter().zip(present).filter(|(_, present)| !present) {
                missing = match missing {
                    Some(run) if run.to.next() == seq => SeqRange::new(run.from, seq),
                    run => {
                        self.tell_missing(conversation, run);
                        SeqRange::new(seq, seq)
                    }
                };
            }
            from = window.to.next();
        }
        self.tell_missing(conversation, missing);
        Ok(())
    }

    /// The first row at or behind a place, or the end.
    async fn next_row(
        &self,
        conversation: &ConversationId,
        control: &ControlRecord,
        from: SeqNo,
        end: SeqNo,
    ) -> Result<SeqNo, StoreError> {
        let mut next = end;
        for slice in SeqRange::until(from, end).map(|rest| control.layout.slices(rest)).unwrap_or_default() {
            let query = Query {
                partition: PartitionKey::messages(conversation, slice.salt),
                from: slice.range.from.get(),
                to: slice.range.to.get(),
                order: Order::Ascending,
                limit: 1,
                consistency: Consistency::Strong,
            };
            // A row that cannot be read is told when the scan comes there.
            let first = match patiently(self.of.patience, || query_all(&*self.of.store, &query)).await {
                Err(StoreError::Damaged(_)) => Some(slice.range.from),
                found => found?.first().map(|(sort, _)| SeqNo::clamped(*sort)),
            };
            next = first.map_or(next, |first| next.min(first));
        }
        // A damaged row must not bring it back to where it was.
        Ok(next.max(from.plus(WINDOW).min(end)))
    }

    fn tell_missing(&mut self, conversation: &ConversationId, run: Option<SeqRange>) {
        if let Some(run) = run {
            self.fault(Fault::Missing(conversation.clone(), run));
        }
    }

    async fn mark(
        &self,
        conversation: &ConversationId,
        slice: Slice,
        first: SeqNo,
        present: &mut [bool],
    ) -> Result<(), StoreError> {
        let mut query = Query {
            partition: PartitionKey::messages(conversation, slice.salt),
            from: slice.range.from.get(),
            to: slice.range.to.get(),
            order: Order::Ascending,
            limit: PAGE_ROWS,
            consistency: Consistency::Strong,
        };
        let mut mark = |seq: u64| {
            let place = usize::try_from(seq - first.get()).ok();
            if let Some(present) = place.and_then(|place| present.get_mut(place)) {
                *present = true;
            }
        };
        while query.from <= query.to {
            let page = match patiently(self.of.patience, || self.of.store.query(&query)).await {
                Ok(page) => page,
                // The row that cannot be read is told when the scan comes there; what lies about it is there.
                Err(StoreError::Damaged(_)) => {
                    (query.from..=query.to).for_each(mark);
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            page.rows.iter().for_each(|(seq, _)| mark(*seq));
            let Some(resume) = page.resume else { break };
            query.from = resume + 1;
        }
        Ok(())
    }

    async fn get(&self, keys: &[Key]) -> Result<Vec<Looked>, StoreError> {
        match patiently(self.of.patience, || self.of.store.get(keys, Consistency::Strong)).await {
            Ok(found) => Ok(found.into_iter().map(|record| record.map_or(Looked::Absent, Looked::There)).collect()),
            Err(StoreError::Damaged(_)) if keys.len() > 1 => {
                let mut all = Vec::with_capacity(keys.len());
                for key in keys {
                    all.extend(Box::pin(self.get(std::slice::from_ref(key))).await?);
                }
                Ok(all)
            }
            Err(StoreError::Damaged(_)) => Ok(vec![Looked::Damaged]),
            Err(error) => Err(error),
        }
    }
}

enum Looked {
    There(Record),
    Absent,
    Damaged,
}
