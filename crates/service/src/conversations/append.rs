//! Append: ticket, claim, row. Nothing is acknowledged without the row.
//!
//! What is rare is boxed, so that the common way stays a small future.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use saltern_core::ids::MessageId;
use saltern_core::key::Key;
use saltern_core::layout::Salt;
use saltern_core::message::Draft;
use saltern_core::record::{Claim, MessageRow, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_registry::TicketRequest;
use saltern_store::{Condition, Put, PutOutcome, StoreError};
use tokio::time::Instant;

use super::fingerprint::Fingerprint;
use super::known::Known;
use super::sabotage::Sabotage;
use super::{AppendError, Appended, Inner};

#[derive(Debug, thiserror::Error)]
#[error("row under a claim's key is not a claim")]
struct NotAClaim;

/// A message on its way to its place.
struct Placing<'a> {
    inner: &'a Arc<Inner>,
    known: &'a Arc<Known>,
    draft: &'a Draft,
    deadline: Instant,
}

/// What stands at a place after an attempt to put a row there.
enum Landing {
    /// This message.
    Ours,
    /// A void: whoever sealed it thought the writer gone.
    Void,
    /// Another message: the registry has issued this seq_no before.
    Taken,
}

impl Inner {
    /// Appends one message.
    pub(super) async fn append(self: &Arc<Self>, known: &Arc<Known>, draft: &Draft) -> Result<Appended, AppendError> {
        self.append_after(known, draft, false).await
    }

    /// Appends one message. `after_another` under the same message_id: then there is most likely a claim.
    async fn append_after(
        self: &Arc<Self>,
        known: &Arc<Known>,
        draft: &Draft,
        after_another: bool,
    ) -> Result<Appended, AppendError> {
        let deadline = Instant::now() + self.config.append_deadline;
        let placing = Placing { inner: self, known, draft, deadline };
        let message = placing.fingerprint();
        let entry = self.in_flight.enter(message, deadline).await;
        let entry = entry.ok_or(AppendError::Unsettled(None))?;
        let claim = match after_another || entry.waited {
            true => Box::pin(placing.read_claim()).await?,
            false => placing.earlier_claim(message).await?,
        };
        if let Some(claim) = claim {
            return Box::pin(placing.follow(claim)).await;
        }
        let request = TicketRequest { count: 1, wcu: draft.wcu() };
        let ticket = self.tickets(known, request, deadline).await?;
        placing.place(ticket).await
    }

    /// Appends several messages on one run of tickets. A message_id that occurs twice is one message.
    pub(super) async fn append_batch(
        self: &Arc<Self>,
        known: &Arc<Known>,
        drafts: &[Draft],
    ) -> Vec<Result<Appended, AppendError>> {
        let mut distinct: Vec<&Draft> = Vec::with_capacity(drafts.len());
        let mut place_of: HashMap<&MessageId, usize> = HashMap::with_capacity(drafts.len());
        for draft in drafts {
            place_of.entry(&draft.message_id).or_insert_with(|| {
                distinct.push(draft);
                distinct.len() - 1
            });
        }
        let appended = self.append_distinct(known, &distinct).await;
        let mut answers = Vec::with_capacity(drafts.len());
        for draft in drafts {
            let place = place_of[&draft.message_id];
            let first = distinct[place];
            answers.push(if std::ptr::eq(first, draft) {
                appended[place].clone()
            } else if first.digest == draft.digest {
                appended[place].clone().map(|there| Appended { replayed: true, ..there })
            } else {
                // One of the two is another message: which, only the claim can say.
                self.append_after(known, draft, true).await
            });
        }
        answers
    }

    async fn append_distinct(
        self: &Arc<Self>,
        known: &Arc<Known>,
        drafts: &[&Draft],
    ) -> Vec<Result<Appended, AppendError>> {
        let deadline = Instant::now() + self.config.append_deadline;
        let placings: Vec<_> = drafts.iter().map(|draft| Placing { inner: self, known, draft, deadline }).collect();
        let mut reading = Vec::with_capacity(drafts.len());
        for placing in &placings {
            reading.push(placing.earlier_claim(placing.fingerprint()));
        }
        let claims = join_all(reading).await;
        let fresh = || placings.iter().zip(&claims).filter(|(_, claim)| matches!(claim, Ok(None)));
        let request =
            TicketRequest { count: fresh().count() as u64, wcu: fresh().map(|(placing, _)| placing.draft.wcu()).sum() };
        let mut ticket = match request.count {
            0 => Ok(SeqNo::FIRST),
            _ => self.tickets(known, request, deadline).await,
        };
        let mut appending = Vec::with_capacity(drafts.len());
        for (placing, claim) in placings.iter().zip(claims) {
            let start = match claim {
                Ok(None) => {
                    let next = ticket.clone().map(SeqNo::next);
                    std::mem::replace(&mut ticket, next).map(Start::Ticket)
                }
                Ok(Some(claim)) => Ok(Start::Claim(claim)),
                Err(error) => Err(error),
            };
            appending.push(placing.append_from(start));
        }
        join_all(appending).await
    }
}

/// Where an append begins.
enum Start {
    Ticket(SeqNo),
    Claim(Claim),
}

impl Placing<'_> {
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.known.conversation, &self.draft.message_id)
    }

    fn claim(&self, seq: SeqNo) -> Claim {
        Claim { seq, digest: self.draft.digest }
    }

    fn claim_put(&self, seq: SeqNo, condition: Condition) -> Put {
        let key = Key::claim(&self.known.conversation, &self.draft.message_id);
        Put { key, record: Record::Claim(self.claim(seq)), condition }
    }

    async fn row_put(&self, seq: SeqNo) -> Result<Put, AppendError> {
        let mut salt = self.inner.salt(self.known, seq, self.deadline).await?;
        if let (true, Salt::Of(_)) = (self.inner.config.sabotaged(Sabotage::SaltByMessageId), salt) {
            let n = self.known.control().map_or(1, |c| c.layout.n()).max(1);
            salt = Salt::Of(u16::from(self.draft.message_id.as_str().bytes().last().unwrap_or(0)) % n);
        }
        let row = MessageRow::new(self.draft, (self.inner.config.wall_clock)());
        let key = Key::row(&self.known.conversation, salt, seq);
        Ok(Put { key, record: Record::Message(row), condition: Condition::Absent })
    }

    async fn put(&self, ticket: SeqNo, put: Put) -> Result<PutOutcome, AppendError> {
        self.or_watch(ticket, self.inner.put(self.known, &put, self.deadline).await)
    }

    /// The claim of a message that was sent before, as far as can be told without asking the store each time.
    async fn earlier_claim(&self, message: Fingerprint) -> Result<Option<Claim>, AppendError> {
        match self.inner.recent.saw_before(message) {
            true => Box::pin(self.read_claim()).await,
            false => Ok(None),
        }
    }

    async fn read_claim(&self) -> Result<Option<Claim>, AppendError> {
        let key = Key::claim(&self.known.conversation, &self.draft.message_id);
        let found = self.inner.get(self.known, &key, self.deadline).await?;
        found.map(as_claim).transpose()
    }

    async fn append_from(&self, start: Result<Start, AppendError>) -> Result<Appended, AppendError> {
        match start? {
            Start::Ticket(ticket) => self.place(ticket).await,
            Start::Claim(claim) => self.follow(claim).await,
        }
    }

    /// Places a message that is not known to be claimed, on a fresh ticket.
    async fn place(&self, ticket: SeqNo) -> Result<Appended, AppendError> {
        if self.inner.store.capabilities().atomic_puts {
            self.place_atomically(ticket).await
        } else {
            self.claim_then_put(ticket).await
        }
    }

    /// If a write that a ticket's fate hangs on could not be settled, the ticket may be lost or its row still be on
    /// its way: either way its place must not stay open for ever.
    fn or_watch<T>(&self, ticket: SeqNo, settled: Result<T, StoreError>) -> Result<T, AppendError> {
        if settled.is_err() {
            self.inner.watch(self.known, SeqRange::single(ticket));
        }
        Ok(settled?)
    }

    /// Claim and row in one atomic commit: both stand, or neither.
    async fn place_atomically(&self, mut ticket: SeqNo) -> Result<Appended, AppendError> {
        loop {
            let row = self.row_put(ticket).await?;
            if self.inner.config.sabotaged(Sabotage::AcknowledgeBeforeRow) {
                return self.acknowledge_early(row, ticket);
            }
            if self.inner.config.sabotaged(Sabotage::ClaimsSkipped) {
                return self.put_row_at(Claim { seq: ticket, digest: self.draft.digest }, false).await;
            }
            let puts = vec![self.claim_put(ticket, Condition::Absent), row];
            let outcomes = self.inner.put_all(self.known, &puts, self.deadline).await;
            let outcomes = self.or_watch(ticket, outcomes)?;
            let mut outcomes = outcomes.into_iter();
            match (outcomes.next(), outcomes.next()) {
                (Some(PutOutcome::Applied), Some(PutOutcome::Applied)) => return Ok(self.landed(ticket, false)),
                (Some(PutOutcome::Refused(there)), _) => return Box::pin(self.already_claimed(there, ticket)).await,
                (_, Some(PutOutcome::Refused(row))) => match self.landing(row)? {
                    Landing::Ours => return Ok(self.landed(ticket, true)),
                    landing => ticket = Box::pin(self.next_ticket(ticket, landing)).await?,
                },
                _ => return Err(AppendError::Unsettled(None)),
            }
        }
    }

    async fn claim_then_put(&self, ticket: SeqNo) -> Result<Appended, AppendError> {
        let claim = self.claim(ticket);
        if self.inner.config.sabotaged(Sabotage::ClaimsSkipped) {
            return self.put_row_at(claim, false).await;
        }
        match self.put(ticket, self.claim_put(ticket, Condition::Absent)).await? {
            PutOutcome::Applied => self.put_row_at(claim, false).await,
            PutOutcome::Refused(there) => Box::pin(self.already_claimed(there, ticket)).await,
        }
    }

    /// The message_id had a claim when ours came.
    async fn already_claimed(&self, there: Option<Record>, ticket: SeqNo) -> Result<Appended, AppendError> {
        let claim = as_claim(there.ok_or_else(not_a_claim)?)?;
        if claim == self.claim(ticket) {
            // Our own, from an attempt whose outcome was not known.
            return self.put_row_at(claim, false).await;
        }
        self.waste(ticket).await;
        self.follow(claim).await
    }

    /// Goes on from a claim that another request, or an earlier one of the same client, has made.
    async fn follow(&self, claim: Claim) -> Result<Appended, AppendError> {
        if claim.digest != self.draft.digest {
            return Err(AppendError::Conflict(claim.seq));
        }
        self.put_row_at(claim, true).await
    }

    /// Puts the row where the claim says; if that place turns out to be final without it, moves the claim.
    async fn put_row_at(&self, mut claim: Claim, replayed: bool) -> Result<Appended, AppendError> {
        loop {
            let put = self.row_put(claim.seq).await?;
            if self.inner.config.sabotaged(Sabotage::AcknowledgeBeforeRow) {
                return self.acknowledge_early(put, claim.seq);
            }
            let landing = match self.put(claim.seq, put).await? {
                PutOutcome::Applied => Landing::Ours,
                PutOutcome::Refused(row) => self.landing(row)?,
            };
            if let Landing::Ours = landing {
                return Ok(self.landed(claim.seq, replayed));
            }
            claim = Box::pin(self.move_claim(claim, landing)).await?;
        }
    }

    async fn move_claim(&self, claim: Claim, landing: Landing) -> Result<Claim, AppendError> {
        let ticket = self.next_ticket(claim.seq, landing).await?;
        let moved = self.claim(ticket);
        if self.inner.config.sabotaged(Sabotage::ClaimsSkipped) {
            return Ok(moved);
        }
        match self.put(ticket, self.claim_put(ticket, Condition::Version(claim.seq.get()))).await? {
            PutOutcome::Applied => Ok(moved),
            PutOutcome::Refused(there) => {
                let there = as_claim(there.ok_or_else(not_a_claim)?)?;
                if there != moved {
                    self.waste(ticket).await;
                }
                Ok(there)
            }
        }
    }

    /// A ticket after one that cannot be used: `landing` says what is in its place.
    async fn next_ticket(&self, lost: SeqNo, landing: Landing) -> Result<SeqNo, AppendError> {
        self.inner.metrics.tickets_wasted.inc();
        self.known.saw(SeqRange::single(lost));
        if let Landing::Taken = landing {
            tracing::info!(
                conversation = self.known.conversation.as_str(),
                seq = lost.get(),
                "registry has gone back; syncing"
            );
            self.inner.sync(self.known, 1, self.deadline).await?;
        }
        let request = TicketRequest { count: 1, wcu: self.draft.wcu() };
        self.inner.tickets(self.known, request, self.deadline).await
    }

    fn landing(&self, row: Option<Record>) -> Result<Landing, AppendError> {
        match row {
            Some(Record::Message(row)) if row.message_id == self.draft.message_id => Ok(Landing::Ours),
            Some(Record::Message(_)) => Ok(Landing::Taken),
            Some(Record::Void) => Ok(Landing::Void),
            _ => Err(AppendError::Damaged(StoreError::Damaged(Arc::new(NotAClaim)))),
        }
    }

    fn landed(&self, seq: SeqNo, replayed: bool) -> Appended {
        self.known.saw(SeqRange::single(seq));
        Appended { seq, replayed }
    }

    /// Voids a ticket that will not be used, so that no reader has to wait for it.
    async fn waste(&self, ticket: SeqNo) {
        self.inner.metrics.tickets_wasted.inc();
        if self.inner.void(self.known, ticket, self.deadline).await.is_err() {
            self.inner.watch(self.known, SeqRange::single(ticket));
        }
    }

    /// The defect: answers before the row is there.
    fn acknowledge_early(&self, row: Put, seq: SeqNo) -> Result<Appended, AppendError> {
        let inner = Arc::clone(self.inner);
        self.inner.spawn(async move {
            let _ = inner.store.put(&row).await;
        });
        Ok(Appended { seq, replayed: false })
    }
}

fn as_claim(record: Record) -> Result<Claim, AppendError> {
    match record {
        Record::Claim(claim) => Ok(claim),
        _ => Err(not_a_claim()),
    }
}

fn not_a_claim() -> AppendError {
    AppendError::Damaged(StoreError::Damaged(Arc::new(NotAClaim)))
}
