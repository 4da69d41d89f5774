//! The one thread that writes. It judges every waiting request, syncs all of them at once, and then answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use fjall::Slice;
use saltern_core::campaigns::Rank;
use tokio::sync::{mpsc, oneshot, watch};

use super::codec;
use super::engine::Engine;
use super::error::{EngineFailure, read_failed};
use super::lookahead::{Found, Latest};
use super::metrics::EmbeddedMetrics;
use super::options::COMMIT_BYTES_MAX;
use super::physical::Space;
use super::recent::Recent;
use super::tops::Tops;
use crate::port::{Condition, StoreError};

pub(super) enum Message {
    Write(Request),
    /// Ends the thread, with everything in tables.
    Close(oneshot::Sender<Result<(), EngineFailure>>),
}

/// Writes that are applied together or not at all.
pub(super) struct Request {
    pub(super) writes: Vec<Write>,
    pub(super) answer: oneshot::Sender<Answer>,
}

pub(super) struct Write {
    pub(super) space: Space,
    pub(super) key: Slice,
    /// `None` removes the row.
    pub(super) value: Option<Slice>,
    pub(super) premise: Premise,
    /// What the caller found there, if it looked.
    pub(super) found: Option<Found>,
}

/// What a write is conditional on.
pub(super) enum Premise {
    Row(Condition),
    /// No boost under the key, or one of lower rank.
    Outranks(Rank),
    /// Nothing. Only for removals, and keys that nobody else writes.
    Nothing,
}

impl Premise {
    fn holds(&self, present: Option<&[u8]>) -> Result<bool, StoreError> {
        Ok(match self {
            Self::Row(condition) => condition.holds(present.map(codec::version).transpose()?),
            Self::Outranks(rank) => present.map(codec::rank).transpose()?.is_none_or(|present| *rank > present),
            Self::Nothing => true,
        })
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Row(Condition::Absent))
    }
}

/// Rows in the way travel as bytes: to decode them is the caller's work.
pub(super) enum Verdict {
    Applied,
    Refused(Option<Slice>),
}

pub(super) type Answer = Result<Vec<Verdict>, StoreError>;

pub(super) struct Committer {
    pub(super) engine: Engine,
    pub(super) tops: Tops,
    pub(super) latest: Latest,
    pub(super) recent: Arc<Recent>,
    pub(super) failure: Arc<watch::Sender<Option<EngineFailure>>>,
    pub(super) metrics: EmbeddedMetrics,
    pub(super) batch_max: usize,
}

/// Judged requests on their way to disk.
#[derive(Default)]
struct Batch {
    /// What later requests of the same batch must already see. One value per key: the engine numbers a batch as a
    /// whole, and could not tell two writes of one key apart.
    written: HashMap<(Space, Slice), Option<Slice>>,
    bytes: usize,
    answers: Vec<(oneshot::Sender<Answer>, Answer)>,
}

impl Committer {
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        let mut messages = Vec::new();
        while queue.blocking_recv_many(&mut messages, self.batch_max.max(1)) > 0 {
            self.metrics.waiting(queue.len());
            let mut batch = Batch::default();
            for message in messages.drain(..) {
                match message {
                    Message::Write(request) => self.take_up(request, &mut batch),
                    Message::Close(closed) => {
                        self.commit(std::mem::take(&mut batch));
                        queue.close();
                        // Whoever asked may have gone; closing goes on.
                        let _ = closed.send(self.close());
                    }
                }
            }
            self.commit(batch);
        }
    }

    fn failed(&self) -> Option<EngineFailure> {
        self.failure.borrow().clone()
    }

    fn fail(&self, failure: EngineFailure) {
        tracing::error!(error = &failure as &dyn std::error::Error, "store has failed");
        self.failure.send_replace(Some(failure));
    }

    fn close(&self) -> Result<(), EngineFailure> {
        self.failed().map_or(Ok(()), Err)?;
        self.engine.flush()?;
        self.failure.send_replace(Some(EngineFailure::Closed));
        Ok(())
    }

    fn take_up(&mut self, request: Request, batch: &mut Batch) {
        if let Some(failure) = self.failed() {
            let _ = request.answer.send(Err(failure.into()));
            return;
        }
        let mut judged = Vec::with_capacity(request.writes.len());
        for write in &request.writes {
            judged.push(self.judge(write, batch));
        }
        let verdicts = judged.into_iter().collect::<Result<Vec<_>, _>>();
        if let Ok(verdicts) = &verdicts
            && verdicts.iter().all(|verdict| matches!(verdict, Verdict::Applied))
        {
            for write in request.writes {
                self.tops.written(write.space, &write.key);
                batch.bytes += write.key.len() + write.value.as_ref().map_or(0, |value| value.len());
                batch.written.insert((write.space, write.key), write.value);
            }
        }
        batch.answers.push((request.answer, verdicts));
        if batch.bytes >= COMMIT_BYTES_MAX {
            self.commit(std::mem::take(batch));
        }
    }

    fn judge(&mut self, write: &Write, batch: &Batch) -> Result<Verdict, StoreError> {
        if write.premise.is_absent() && self.tops.proves_absent(&self.engine, write.space, &write.key)? {
            return Ok(Verdict::Applied);
        }
        let present = match batch.written.get(&(write.space, write.key.clone())) {
            Some(row) => row.clone(),
            None => match &write.found {
                Some(found) if self.latest.confirms(&write.key, found) => found.row.clone(),
                _ => self.engine.space(write.space).get(&write.key).map_err(read_failed)?,
            },
        };
        let holds = write.premise.holds(present.as_deref())?;
        Ok(if holds { Verdict::Applied } else { Verdict::Refused(present) })
    }

    fn commit(&mut self, batch: Batch) {
        let requests = batch.answers.len();
        if !batch.written.is_empty() {
            let began = Instant::now();
            let mut writes: Vec<_> =
                batch.written.into_iter().map(|((space, key), value)| (space, key, value)).collect();
            // Neighbours find each other's way through the engine's memory still warm.
            writes.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
            let keys = |wanted: fn(Space) -> bool| -> Vec<Slice> {
                writes.iter().filter(|(space, ..)| wanted(*space)).map(|(_, key, _)| key.clone()).collect()
            };
            let looked_up = keys(|space| space != Space::Rows);
            let campaigns = keys(|space| space == Space::Campaigns);
            if let Err(failure) = self.engine.commit(writes) {
                let unknown = StoreError::Unknown(Arc::new(failure.clone()));
                self.fail(failure);
                for (answer, _) in batch.answers {
                    let _ = answer.send(Err(unknown.clone()));
                }
                return;
            }
            campaigns.iter().for_each(|key| self.recent.forget(key));
            self.latest.committed(looked_up);
            self.metrics.committed(requests, began.elapsed());
        }
        for (answer, verdicts) in batch.answers {
            // A caller that has gone counts its write as unknown.
            let _ = answer.send(verdicts);
        }
    }
}
