//! Tickets: seq_nos from the registry, below a horizon that the control record vouches for.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use saltern_core::control::{ControlRecord, Extension};
use saltern_core::frontier::Frontier;
use saltern_core::key::Key;
use saltern_core::layout::{Epoch, Layout, Salt};
use saltern_core::record::Record;
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_registry::{TicketRequest, Tickets};
use saltern_store::{Condition, Put, PutOutcome, StoreError};
use tokio::time::Instant;

use super::known::Known;
use super::sabotage::Sabotage;
use super::settle::DeadlinePassed;
use super::{AppendError, Inner};

#[derive(Debug, thiserror::Error)]
#[error("control record of {0} is missing or is something else")]
struct NoControl(String);

/// Why an extension is wanted.
#[derive(Debug, Clone, Copy)]
struct Need {
    next: SeqNo,
    count: u64,
    /// The horizon that is too near.
    horizon: SeqNo,
    /// How many turns had been taken when it was seen.
    turns: u64,
}

impl Inner {
    /// Takes a run of tickets, whatever has to be synced or extended for it.
    pub(super) async fn tickets(
        self: &Arc<Self>,
        known: &Arc<Known>,
        mut request: TicketRequest,
        deadline: Instant,
    ) -> Result<SeqNo, AppendError> {
        let conversation = &known.conversation;
        loop {
            match self.registry.tickets(conversation, request).await? {
                Tickets::Issued { first, horizon } => {
                    self.extend_ahead(known, first.plus(request.count), horizon);
                    return Ok(first);
                }
                Tickets::Exhausted { next, horizon } => {
                    let need = Need { next, count: request.count, horizon, turns: known.turns() };
                    Box::pin(self.extend(known, need, deadline)).await?;
                    // Metered already, though nothing was issued.
                    request.wcu = 0;
                }
                Tickets::Absent => Box::pin(self.sync(known, request.count, deadline)).await?,
            }
            if Instant::now() >= deadline {
                return Err(AppendError::Unsettled(None));
            }
        }
    }

    /// Where a seq_no lives. A ticket is always below the durable horizon, so a layout that does not know is old.
    pub(super) async fn salt(&self, known: &Known, seq: SeqNo, deadline: Instant) -> Result<Salt, AppendError> {
        if let Some(salt) = known.look(|c| c.layout.salt(seq)).flatten() {
            return Ok(salt);
        }
        let control = Box::pin(self.read_control(known, deadline)).await?;
        control.and_then(|c| c.layout.salt(seq)).ok_or(AppendError::Unsettled(None))
    }

    /// Reads the control record.
    pub(super) async fn read_control(
        &self,
        known: &Known,
        deadline: Instant,
    ) -> Result<Option<Arc<ControlRecord>>, StoreError> {
        let key = Key::control(&known.conversation);
        match self.get(known, &key, deadline).await? {
            None => Ok(None),
            Some(Record::Control(control)) => Ok(Some(known.learn(control))),
            Some(_) => Err(no_control(known)),
        }
    }

    /// The control record as it is now. Nobody else can change an exclusive store's, so there what is known holds.
    pub(super) async fn current_control(
        &self,
        known: &Known,
        deadline: Instant,
    ) -> Result<Option<Arc<ControlRecord>>, StoreError> {
        if self.store.capabilities().exclusive
            && let Some(control) = known.control()
        {
            return Ok(Some(control));
        }
        self.read_control(known, deadline).await
    }

    /// Extends in the background when half of the lease is used up, so that appends need not wait for it.
    fn extend_ahead(self: &Arc<Self>, known: &Arc<Known>, next: SeqNo, horizon: SeqNo) {
        // It may have been extended since the ticket was issued.
        let is_near = |c: &ControlRecord| c.layout.horizon() <= horizon && next.plus(c.lease / 2) >= horizon;
        if !known.look(is_near).unwrap_or(false) || known.extending.swap(true, Ordering::Relaxed) {
            return;
        }
        let need = Need { next, count: 1, horizon, turns: known.turns() };
        let (inner, known) = (Arc::clone(self), Arc::clone(known));
        self.spawn(async move {
            let deadline = Instant::now() + inner.config.append_deadline;
            if let Err(error) = inner.extend(&known, need, deadline).await {
                tracing::debug!(conversation = known.conversation.as_str(), ?error, "extension ahead of need failed");
            }
            known.extending.store(false, Ordering::Relaxed);
        });
    }

    /// Moves the horizon on: adopts a further one that another server has set, or sets one.
    async fn extend(self: &Arc<Self>, known: &Arc<Known>, need: Need, deadline: Instant) -> Result<(), AppendError> {
        let _turn = known.turn.lock().await;
        if known.turns() != need.turns {
            return Ok(());
        }
        let control = self.current_control(known, deadline).await?.ok_or_else(|| no_control(known))?;
        let control = if control.layout.horizon() > need.horizon {
            control
        } else {
            self.set_horizon(known, &control, need, deadline).await?
        };
        self.registry.raise(&known.conversation, control.layout.horizon()).await?;
        known.turn_done();
        if let Some(hole) = known.frontier(Frontier::hole) {
            self.watch(known, hole);
        }
        Ok(())
    }

    async fn set_horizon(
        &self,
        known: &Known,
        control: &ControlRecord,
        need: Need,
        deadline: Instant,
    ) -> Result<Arc<ControlRecord>, AppendError> {
        let sample = self.registry.sample(&known.conversation, control.layout.newest_epoch().from).await?;
        let extension = Extension {
            policy: &self.config.heat,
            next: need.next,
            count: need.count,
            sample,
            resolved: known.frontier(Frontier::resolved),
            now_ms: (self.config.wall_clock)(),
        };
        let mut next = control.extended(extension).ok_or(AppendError::Full)?;
        if self.config.sabotaged(Sabotage::EpochBelowHorizon) {
            next.layout = epoch_moved_down(&next.layout, &control.layout);
        }
        let opened = next.layout.epochs().len() > control.layout.epochs().len();
        let set = self.put_control(known, next, Condition::Version(control.ver), deadline).await?;
        self.metrics.extensions.inc();
        if opened && set.ver == control.ver + 1 {
            self.metrics.epochs_opened.inc();
            let (conversation, n) = (&known.conversation, set.layout.n());
            tracing::info!(
                conversation = conversation.as_str(),
                n,
                from = control.layout.horizon().get(),
                "spread changed"
            );
        }
        Ok(set)
    }

    /// Puts a control record; answers with the one that is there afterwards, ours or another's.
    pub(super) async fn put_control(
        &self,
        known: &Known,
        control: ControlRecord,
        condition: Condition,
        deadline: Instant,
    ) -> Result<Arc<ControlRecord>, StoreError> {
        let conversation = &known.conversation;
        let put = Put { key: Key::control(conversation), record: Record::Control(control.clone()), condition };
        match self.put(known, &put, deadline).await? {
            PutOutcome::Applied => Ok(known.learn(control)),
            PutOutcome::Refused(Some(Record::Control(there))) => Ok(known.learn(there)),
            PutOutcome::Refused(_) => Err(no_control(known)),
        }
    }

    /// Makes a conversation known to a registry that has lost or never had its state.
    pub(super) async fn sync(
        self: &Arc<Self>,
        known: &Arc<Known>,
        count: u64,
        deadline: Instant,
    ) -> Result<(), AppendError> {
        let turns = known.turns();
        let _turn = known.turn.lock().await;
        if known.turns() != turns {
            return Ok(());
        }
        let _permit = self.syncs.acquire().await.map_err(|_| AppendError::Overloaded)?;
        self.metrics.syncs.inc();
        let control = match self.read_control(known, deadline).await? {
            Some(control) => control,
            None => {
                let first = ControlRecord::create(count, (self.config.wall_clock)());
                self.put_control(known, first, Condition::Absent, deadline).await?
            }
        };
        let head = self.find_head(known, &control.layout, deadline).await?;
        if self.store.capabilities().exclusive
            && let Some(head) = head
            && let Some(unresolved) = SeqRange::new(known.frontier(Frontier::resolved), head)
        {
            // Nobody else writes, and what this process began before it forgot the conversation takes a new ticket
            // when it finds a void: holes need not wait.
            self.seal(known, unresolved, deadline).await?;
        }
        let next = head.map_or(SeqNo::FIRST, SeqNo::next);
        self.registry.install(&known.conversation, next, control.layout.horizon()).await?;
        known.turn_done();
        Ok(())
    }
}

fn no_control(known: &Known) -> StoreError {
    StoreError::Damaged(Arc::new(NoControl(known.conversation.to_string())))
}

/// The defect: the newest epoch reaches back to where tickets may already be out.
fn epoch_moved_down(next: &Layout, before: &Layout) -> Layout {
    let mut epochs: Vec<Epoch> = next.epochs().to_vec();
    if epochs.len() > before.epochs().len()
        && let [.., previous, last] = epochs.as_mut_slice()
    {
        last.from = last.from.minus(6).max(previous.from.next());
    }
    Layout::from_parts(epochs, next.horizon()).unwrap_or_else(|_| next.clone())
}

impl From<StoreError> for AppendError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => Self::Damaged(error),
            StoreError::Unknown(ref cause) if cause.is::<DeadlinePassed>() => Self::Unsettled(None),
            error => Self::Unsettled(Some(error)),
        }
    }
}
