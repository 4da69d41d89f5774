//! The one thread that writes. It judges every waiting request, syncs all of them at once, and then answers.

use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fjall::Slice;
use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry, HashTable};
use saltern_core::campaigns::Rank;
use tokio::sync::{mpsc, oneshot, watch};

use super::codec;
use super::end_recorder::EndRecorder;
use super::error::EngineFailure;
use super::log::{Change, Log};
use super::metrics::EmbeddedMetrics;
use super::mover::Mover;
use super::options::COMMIT_BYTES_MAX;
use super::physical::{Space, boost_of};
use super::recent::Recent;
use super::tops::Tops;
use super::view::{Found, View};
use crate::port::{Condition, StoreError};

/// Shorter than a sync takes on most disks.
const COMPANY_PAUSE: Duration = Duration::from_micros(200);

/// Segments that killed processes may leave. Each process begins one, however little it writes.
const SEGMENTS_MAX: usize = 16;

pub(super) enum Message {
    Write(Request),
    /// Moves everything that has been written into tables, and then answers.
    Settle(oneshot::Sender<Result<(), EngineFailure>>),
    /// Ends the thread, with everything in tables.
    Close(oneshot::Sender<Result<(), EngineFailure>>),
}

/// Writes that are applied together or not at all.
pub(super) struct Request {
    pub(super) writes: Vec<Write>,
    pub(super) answer: oneshot::Sender<Answer>,
}

pub(super) struct Write {
    change: Change,
    premise: Premise,
    /// What the caller found there, if it looked.
    found: Option<Found>,
    verdict: Verdict,
}

impl Write {
    pub(super) fn new(change: Change, premise: Premise, found: Option<Found>) -> Self {
        Self { change, premise, found, verdict: Verdict::Applied }
    }

    /// What the commit thread has said of it.
    pub(super) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    pub(super) fn is_applied(&self) -> bool {
        matches!(self.verdict, Verdict::Applied)
    }
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

/// The writes, each with its verdict. They go back to where they were made, because memory is let go of most cheaply there.
pub(super) type Answer = Result<Vec<Write>, StoreError>;

pub(super) struct Committer {
    pub(super) view: View,
    pub(super) log: Log,
    pub(super) end_recorder: EndRecorder,
    pub(super) mover: Mover,
    /// The last layer's, until somebody has asked how it went.
    pub(super) moving: Option<JoinHandle<Result<(), EngineFailure>>>,
    pub(super) tops: Tops,
    pub(super) recent: Arc<Recent>,
    pub(super) failure: Arc<watch::Sender<Option<EngineFailure>>>,
    pub(super) metrics: EmbeddedMetrics,
    pub(super) batch_max: usize,
    /// Requests that the last commit took up.
    pub(super) company: usize,
    pub(super) layer_bytes: usize,
}

/// Judged requests on their way to disk.
#[derive(Default)]
struct Batch {
    requests: Vec<Judged>,
    /// What later requests of the same batch must already see: where the last change of each key is.
    last: HashTable<Place>,
    hasher: DefaultHashBuilder,
    bytes: usize,
}

struct Judged {
    answer: oneshot::Sender<Answer>,
    verdicts: Answer,
    is_applied: bool,
}

impl Judged {
    fn applied(&self) -> &[Write] {
        self.verdicts.as_deref().ok().filter(|_| self.is_applied).unwrap_or_default()
    }
}

/// Of a write in a batch.
#[derive(Clone, Copy)]
struct Place {
    request: usize,
    write: usize,
}

impl Batch {
    fn push(&mut self, request: Judged) {
        self.requests.push(request);
        let Self { requests, last, hasher, bytes } = self;
        let request = requests.len() - 1;
        let at = |place: Place| &requests[place.request].applied()[place.write].change;
        let hash = |place: Place| hash(hasher, at(place));
        for write in 0..requests[request].applied().len() {
            let place = Place { request, write };
            *bytes += at(place).len();
            match last.entry(hash(place), |there| is_same_key(at(*there), at(place)), |there| hash(*there)) {
                Entry::Occupied(mut there) => *there.get_mut() = place,
                Entry::Vacant(free) => drop(free.insert(place)),
            }
        }
    }

    fn get(&self, change: &Change) -> Option<&Change> {
        let at = |place: &Place| &self.requests[place.request].applied()[place.write].change;
        self.last.find(hash(&self.hasher, change), |place| is_same_key(at(place), change)).map(at)
    }

    /// What is to be written, in order.
    fn changes(&self) -> impl Iterator<Item = &Change> {
        self.requests.iter().flat_map(Judged::applied).map(|write| &write.change)
    }
}

fn hash(hasher: &DefaultHashBuilder, change: &Change) -> u64 {
    hasher.hash_one((change.space, change.key()))
}

fn is_same_key(a: &Change, b: &Change) -> bool {
    (a.space, a.key()) == (b.space, b.key())
}

impl Committer {
    pub(super) fn run(mut self, mut queue: mpsc::Receiver<Message>) {
        if self.log.segments() > SEGMENTS_MAX
            && let Err(failure) = self.move_layer()
        {
            self.fail(failure);
        }
        let mut messages = Vec::new();
        while queue.blocking_recv_many(&mut messages, self.batch_max.max(1)) > 0 {
            self.wait_for_company(&mut queue, &mut messages);
            self.metrics.waiting(queue.len());
            let mut batch = Batch::default();
            for message in messages.drain(..) {
                match message {
                    Message::Write(request) => self.take_up(request, &mut batch),
                    Message::Settle(settled) => {
                        self.commit(std::mem::take(&mut batch));
                        let _ = settled.send(self.settle());
                    }
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
        // The folder is not to be let go of while a layer moves; how that went has been told.
        let _ = self.wait_for_move();
    }

    /// A sync costs the same for one as for many. Right after a large commit those that it answered are on their way back, so
    /// it pays to wait for more of them; a lone writer never waits.
    fn wait_for_company(&mut self, queue: &mut mpsc::Receiver<Message>, messages: &mut Vec<Message>) {
        if messages.len() * 2 < self.company {
            std::thread::sleep(COMPANY_PAUSE);
            while messages.len() < self.batch_max
                && let Ok(message) = queue.try_recv()
            {
                messages.push(message);
            }
        }
        self.company = messages.len();
    }

    fn failed(&self) -> Option<EngineFailure> {
        self.failure.borrow().clone()
    }

    fn fail(&self, failure: EngineFailure) {
        tracing::error!(error = &failure as &dyn std::error::Error, "store has failed");
        self.failure.send_replace(Some(failure));
    }

    fn close(&mut self) -> Result<(), EngineFailure> {
        self.settle()?;
        self.failure.send_replace(Some(EngineFailure::Closed));
        Ok(())
    }

    fn settle(&mut self) -> Result<(), EngineFailure> {
        self.failed().map_or(Ok(()), Err)?;
        self.move_layer()?;
        self.wait_for_move()
    }

    /// Sets everything in the log apart, and lets it move into tables. Waits for what is still moving.
    fn move_layer(&mut self) -> Result<(), EngineFailure> {
        self.wait_for_move()?;
        if self.view.fresh.waiting_bytes() == 0 {
            return Ok(());
        }
        let last_segment = self.log.rotate();
        let layer = self.view.fresh.set_apart();
        let mover = self.mover.clone();
        let thread = std::thread::Builder::new().name("store-move".into());
        let moving = thread.spawn(move || mover.run(&layer, last_segment));
        self.moving = Some(moving.map_err(EngineFailure::log)?);
        Ok(())
    }

    fn wait_for_move(&mut self) -> Result<(), EngineFailure> {
        match self.moving.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(moved)) => moved,
            Some(Err(_)) => Err(EngineFailure::Closed),
        }
    }

    fn take_up(&mut self, request: Request, batch: &mut Batch) {
        if let Some(failure) = self.failed() {
            let _ = request.answer.send(Err(failure.into()));
            return;
        }
        let Request { mut writes, answer } = request;
        let mut is_applied = true;
        let judged: Result<(), StoreError> = writes.iter_mut().try_for_each(|write| {
            write.verdict = self.judge(write, batch)?;
            write.change.is_new = write.premise.is_absent();
            is_applied &= write.is_applied();
            Ok(())
        });
        let request = Judged { answer, is_applied, verdicts: judged.map(|()| writes) };
        request.applied().iter().for_each(|write| self.tops.written(write.change.space, write.change.key()));
        batch.push(request);
        if batch.bytes >= COMMIT_BYTES_MAX {
            self.commit(std::mem::take(batch));
        }
    }

    fn judge(&mut self, write: &Write, batch: &Batch) -> Result<Verdict, StoreError> {
        let Write { change, premise, found, .. } = write;
        if premise.is_absent() && self.tops.proves_absent(&self.view, change.space, change.key())? {
            return Ok(Verdict::Applied);
        }
        let present = match batch.get(change) {
            Some(earlier) => earlier.value().map(Slice::from),
            None => self.view.confirm(change.space, change.key(), found.as_ref())?,
        };
        let holds = premise.holds(present.as_deref())?;
        Ok(if holds { Verdict::Applied } else { Verdict::Refused(present) })
    }

    fn commit(&mut self, batch: Batch) {
        if batch.bytes > 0 {
            let began = Instant::now();
            if let Err(error) = self.log.commit(batch.changes()) {
                let failure = EngineFailure::log(error);
                let unknown = StoreError::Unknown(Arc::new(failure.clone()));
                self.fail(failure);
                for Judged { answer, .. } in batch.requests {
                    let _ = answer.send(Err(unknown.clone()));
                }
                return;
            }
            self.end_recorder.synced(self.log.synced_end());
            let is_boost = |change: &&Change| change.space == Space::Campaigns;
            let boosts: Vec<_> = batch.changes().filter(is_boost).filter_map(|c| boost_of(c.key())).collect();
            self.view.fresh.apply(batch.changes());
            self.recent.forget(&boosts);
            self.metrics.committed(batch.requests.len(), began.elapsed());
        }
        for Judged { answer, verdicts, .. } in batch.requests {
            // A caller that has gone counts its write as unknown.
            let _ = answer.send(verdicts);
        }
        if self.view.fresh.waiting_bytes() >= self.layer_bytes
            && let Err(failure) = self.move_layer()
        {
            self.fail(failure);
        }
    }
}
