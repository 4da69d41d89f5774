//! Records in the log's manifest how far the open segment has been synced, a little after the fact and beside the commits: from
//! then on, a segment that ends earlier is known to be corrupt.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::log::{LogUpkeep, SyncedEnd};

/// Without a commit for so long, the end is recorded.
const IDLE: Duration = Duration::from_millis(200);
/// With commits all the time, it is recorded this often.
const PERIOD: Duration = Duration::from_secs(1);

pub(super) struct EndRecorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    synced: Option<SyncedEnd>,
    recorded: Option<SyncedEnd>,
    is_closed: bool,
    /// Whether the thread waits for the next commit, however long that takes.
    is_asleep: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next end to record. `None` when it is over.
    fn next(&self) -> Option<SyncedEnd> {
        let mut state = self.lock();
        while state.synced == state.recorded && !state.is_closed {
            state.is_asleep = true;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_asleep = false;
        let began = Instant::now();
        loop {
            if state.is_closed {
                return None;
            }
            let before = state.synced;
            state = self.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner).0;
            if state.synced == before || began.elapsed() >= PERIOD {
                state.recorded = state.synced;
                return state.synced.filter(|_| !state.is_closed);
            }
        }
    }
}

impl EndRecorder {
    pub(super) fn start(log: LogUpkeep) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new().name("store-log-end".into()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                while let Some(end) = shared.next() {
                    // The commits are safe without it.
                    if let Err(error) = log.record(end) {
                        tracing::warn!(error = &error as &dyn std::error::Error, "end of the log was not recorded");
                    }
                }
            }
        })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Everything up to here is on the disk.
    pub(super) fn synced(&self, end: Option<SyncedEnd>) {
        let mut state = self.shared.lock();
        state.synced = end;
        if state.is_asleep {
            self.shared.wake.notify_one();
        }
    }
}

/// Nothing is written to the folder from then on.
impl Drop for EndRecorder {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that records the log's end panicked");
        }
    }
}
