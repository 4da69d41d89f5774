//! What a connection is doing: written by the connection, read by those who choose which one to close.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hyper::body::Incoming;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No request has arrived in full head, and every answer is written.
    Waiting,
    /// A request is being served.
    Serving,
    /// An answer is being written.
    Answering,
    /// The client does not take what is written to it.
    Stalled,
}

const STATES: [State; 4] = [State::Waiting, State::Serving, State::Answering, State::Stalled];

pub(crate) struct Activity {
    /// What times are counted from.
    epoch: Instant,
    /// Milliseconds since `epoch` at which the state began, times four, plus the state.
    packed: AtomicU64,
    /// The client may still be sending what nobody will read.
    lingers: AtomicBool,
    /// The body of the present request, if its handler did not read it to the end.
    unread: Mutex<Option<Incoming>>,
}

impl Activity {
    pub(crate) fn new(epoch: Instant) -> Self {
        let activity =
            Self { epoch, packed: AtomicU64::new(0), lingers: AtomicBool::new(false), unread: Mutex::new(None) };
        activity.enter(State::Waiting);
        activity
    }

    pub(crate) fn enter(&self, state: State) {
        let since_ms = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX >> 2);
        self.packed.store(since_ms << 2 | state as u64, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> State {
        STATES[(self.packed.load(Ordering::Relaxed) & 3) as usize]
    }

    /// Since when it has been in this state, in milliseconds since the epoch.
    pub(crate) fn since_ms(&self, state: State) -> Option<u64> {
        let packed = self.packed.load(Ordering::Relaxed);
        (packed & 3 == state as u64).then_some(packed >> 2)
    }

    pub(crate) fn linger(&self) {
        self.lingers.store(true, Ordering::Relaxed);
    }

    pub(crate) fn lingers(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }

    pub(crate) fn leave_unread(&self, body: Incoming) {
        *self.unread() = Some(body);
    }

    pub(crate) fn take_unread(&self) -> Option<Incoming> {
        self.unread().take()
    }

    fn unread(&self) -> MutexGuard<'_, Option<Incoming>> {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
