//! Lanes: each partition is worked on by a task of its own, in its order, and holds a bounded share of memory.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{info, warn};

use super::event::{Event, Partition};
use super::metrics::ConsumerMetrics;
use crate::campaigns::source::Piece;
use crate::campaigns::target::{Done, Target};

/// What a lane holds, with the batch that is under way.
const LANE_BYTES: usize = 2 * 1024 * 1024;
/// What an event takes beside its text, so that many small ones are bounded too.
const EVENT_BYTES: usize = 512;
/// Events that are sent together.
const BATCH_EVENTS_MAX: usize = 500;
/// A lane without room is waited for so long before its partition is paused, which costs reading again.
const ROOM_PATIENCE: Duration = Duration::from_millis(500);
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Of many attempts in a row, one in so many is logged.
const RETRIES_PER_LOG: u64 = 30;
const NO_OFFSET: i64 = -1;

/// An event and the room that it takes.
struct Held {
    event: Event,
    _room: OwnedSemaphorePermit,
}

struct Lane {
    events: mpsc::UnboundedSender<Held>,
    room: Arc<Semaphore>,
    /// Came while there was no room. Not empty: the partition is paused.
    waiting: VecDeque<Event>,
    /// Behind the last event that has been written.
    next_offset: Arc<AtomicI64>,
    stored: i64,
    worker: JoinHandle<()>,
}

impl Lane {
    /// What is new since it was last asked for.
    fn take_offset(&mut self) -> Option<i64> {
        let next = self.next_offset.load(Ordering::Acquire);
        (next != std::mem::replace(&mut self.stored, next)).then_some(next)
    }

    /// What has come is still worked off until the deadline, but nothing more is taken.
    async fn end(self, deadline: Instant) -> Option<i64> {
        let Self { events, worker, next_offset, stored, .. } = self;
        drop(events);
        let abort = worker.abort_handle();
        if timeout_at(deadline, worker).await.is_err() {
            abort.abort();
        }
        let next = next_offset.load(Ordering::Acquire);
        (next != stored).then_some(next)
    }
}

pub(super) struct Lanes {
    lanes: Mutex<HashMap<Partition, Lane>>,
    target: Arc<Target>,
    metrics: ConsumerMetrics,
    failures: mpsc::Sender<anyhow::Error>,
}

impl Lanes {
    pub(super) fn new(target: Arc<Target>, metrics: ConsumerMetrics, failures: mpsc::Sender<anyhow::Error>) -> Self {
        Self { lanes: Mutex::default(), target, metrics, failures }
    }

    /// `false` if the partition is to be paused: the event is kept, but there is no room for another.
    pub(super) async fn offer(&self, partition: &Partition, event: Event) -> bool {
        let cost = cost(&event);
        let room = {
            let mut lanes = self.locked();
            let lane = match lanes.entry(partition.clone()) {
                Entry::Occupied(lane) => lane.into_mut(),
                Entry::Vacant(place) => place.insert(self.start(partition)),
            };
            if !lane.waiting.is_empty() {
                lane.waiting.push_back(event);
                return false;
            }
            Arc::clone(&lane.room)
        };
        // Nobody closes the semaphore.
        let room = timeout(ROOM_PATIENCE, room.acquire_many_owned(cost)).await.ok().and_then(Result::ok);
        let mut lanes = self.locked();
        // Only this task takes lanes away, and it is waiting here.
        let Some(lane) = lanes.get_mut(partition) else { return true };
        match room {
            Some(room) => {
                // A worker that has failed has ended the whole.
                let _ = lane.events.send(Held { event, _room: room });
                true
            }
            None => {
                lane.waiting.push_back(event);
                false
            }
        }
    }

    /// Which paused partitions have room again.
    pub(super) fn go_on(&self) -> Vec<Partition> {
        let (mut going_on, mut held_up) = (Vec::new(), 0);
        for (partition, lane) in self.locked().iter_mut().filter(|(_, lane)| !lane.waiting.is_empty()) {
            while let Some(event) = lane.waiting.pop_front() {
                let Ok(room) = Arc::clone(&lane.room).try_acquire_many_owned(cost(&event)) else {
                    lane.waiting.push_front(event);
                    break;
                };
                let _ = lane.events.send(Held { event, _room: room });
            }
            if lane.waiting.is_empty() {
                going_on.push(partition.clone());
            } else {
                held_up += 1;
            }
        }
        self.metrics.held_up.set(held_up);
        going_on
    }

    /// Offsets behind what has been written since the last time.
    pub(super) fn offsets(&self) -> Vec<(Partition, i64)> {
        let mut lanes = self.locked();
        lanes.iter_mut().filter_map(|(partition, lane)| Some((partition.clone(), lane.take_offset()?))).collect()
    }

    /// Ends the lanes of these partitions, and answers how far they came.
    pub(super) async fn end(&self, partitions: &[Partition], within: Duration) -> Vec<(Partition, i64)> {
        let lanes: Vec<_> = {
            let mut lanes = self.locked();
            partitions.iter().filter_map(|partition| lanes.remove_entry(partition)).collect()
        };
        end_lanes(lanes, within).await
    }

    pub(super) async fn end_all(&self, within: Duration) -> Vec<(Partition, i64)> {
        let lanes = std::mem::take(&mut *self.locked());
        end_lanes(lanes.into_iter().collect(), within).await
    }

    fn start(&self, partition: &Partition) -> Lane {
        let (events, receiver) = mpsc::unbounded_channel();
        let next_offset = Arc::new(AtomicI64::new(NO_OFFSET));
        let worker = Worker {
            partition: partition.clone(),
            target: Arc::clone(&self.target),
            metrics: self.metrics.clone(),
            next_offset: Arc::clone(&next_offset),
        };
        let failures = self.failures.clone();
        let worker = tokio::spawn(async move {
            if let Err(error) = worker.work(receiver).await {
                // One is enough.
                let _ = failures.try_send(error);
            }
        });
        let room = Arc::new(Semaphore::new(LANE_BYTES));
        Lane { events, room, waiting: VecDeque::new(), next_offset, stored: NO_OFFSET, worker }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Partition, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cost(event: &Event) -> u32 {
    u32::try_from((event.line.len() + EVENT_BYTES).min(LANE_BYTES)).unwrap_or(u32::MAX)
}

async fn end_lanes(lanes: Vec<(Partition, Lane)>, within: Duration) -> Vec<(Partition, i64)> {
    let deadline = Instant::now() + within;
    let mut offsets = Vec::new();
    // All of them work on meanwhile: the senders go first.
    let ended = lanes.into_iter().map(|(partition, lane)| async move { (partition, lane.end(deadline).await) });
    for (partition, offset) in futures_util::future::join_all(ended).await {
        offsets.extend(offset.map(|offset| (partition, offset)));
    }
    offsets
}

struct Worker {
    partition: Partition,
    target: Arc<Target>,
    metrics: ConsumerMetrics,
    next_offset: Arc<AtomicI64>,
}

impl Worker {
    async fn work(self, mut events: mpsc::UnboundedReceiver<Held>) -> anyhow::Result<()> {
        let mut batch = Vec::new();
        while events.recv_many(&mut batch, BATCH_EVENTS_MAX).await > 0 {
            let done = self.send(&piece(&batch)).await?;
            self.metrics.count(done.counts);
            self.tell_rejected(&batch, &done);
            if let Some(last) = batch.last() {
                self.next_offset.store(last.event.offset + 1, Ordering::Release);
            }
            batch.clear();
        }
        Ok(())
    }

    /// Events may be sent again whatever has become of them, so this only ends when they have been taken or refused.
    async fn send(&self, piece: &Piece) -> anyhow::Result<Done> {
        let mut retries = 0;
        loop {
            match self.target.send(piece).await {
                Ok(done) => {
                    if retries > 0 {
                        info!(partition = %self.partition, retries, "events are taken again");
                    }
                    return Ok(done);
                }
                Err(failed) if !failed.passing => return Err(failed.error),
                Err(failed) => {
                    if retries % RETRIES_PER_LOG == 0 {
                        let error = format!("{:#}", failed.error);
                        warn!(partition = %self.partition, retries, %error, "events are not taken; trying again");
                    }
                    retries += 1;
                    self.metrics.retries.inc();
                    sleep(RETRY_PAUSE).await;
                }
            }
        }
    }

    fn tell_rejected(&self, batch: &[Held], done: &Done) {
        let Some((line, reason)) = done.rejected.first() else { return };
        let offset = usize::try_from(*line).ok().and_then(|line| batch.get(line)).map(|held| held.event.offset);
        let rejected = done.counts.rejected;
        warn!(partition = %self.partition, offset, reason, rejected, "events are dead letters now");
    }
}

fn piece(batch: &[Held]) -> Piece {
    let mut text = Vec::with_capacity(batch.iter().map(|held| held.event.line.len() + 1).sum());
    for held in batch {
        text.extend_from_slice(&held.event.line);
        text.push(b'\n');
    }
    Piece { first_line: 0, lines: batch.len() as u64, text }
}
