//! A store and an object storage that fail or stall at a step of one's choice, counted over both.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use saltern_core::key::Key;
use saltern_core::record::Record;
use saltern_store::objects::{ObjectError, ObjectPage, Objects};
use saltern_store::{
    Capabilities, Consistency, Due, DueMark, DuePage, Put, PutOutcome, Query, QueryPage, Store, StoreError,
};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

#[derive(Debug, thiserror::Error)]
#[error("crashed")]
struct Crashed;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// Nothing of the step happens, nor of any after it.
    CrashBefore,
    /// The step happens, and nobody hears of it; none after it does.
    CrashAfter,
    /// The step does not begin until it is released.
    Held,
    /// The step takes so many seconds.
    Stall(u64),
    /// It takes a minute, and a step after it is the last.
    StallAndCrashAfter(u64),
}

#[derive(Debug)]
pub(crate) struct Steps {
    made: AtomicU64,
    at: u64,
    what: At,
    waiting: Notify,
    released: Notify,
}

impl Steps {
    pub(crate) fn new(at: u64, what: At) -> Arc<Self> {
        let (made, waiting, released) = (AtomicU64::new(0), Notify::new(), Notify::new());
        Arc::new(Self { made, at, what, waiting, released })
    }

    /// Begins work, and returns once it is held, or done.
    pub(crate) async fn hold<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let steps = Arc::clone(self);
        let work = tokio::spawn(async move {
            let done = work.await;
            steps.waiting.notify_one();
            done
        });
        self.waiting.notified().await;
        work
    }

    pub(crate) fn release(&self) {
        self.released.notify_one();
    }

    pub(crate) fn crashes(&self) -> bool {
        matches!(self.what, At::CrashBefore | At::CrashAfter)
    }

    /// Whether the step was reached.
    pub(crate) fn reached(&self) -> bool {
        self.made.load(Ordering::SeqCst) > self.at
    }

    async fn step<T, E>(&self, failed: impl Fn() -> E, call: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let step = self.made.fetch_add(1, Ordering::SeqCst);
        match self.what {
            At::CrashBefore if step >= self.at => Err(failed()),
            At::CrashAfter if step > self.at => Err(failed()),
            At::CrashAfter if step == self.at => {
                call.await?;
                Err(failed())
            }
            At::StallAndCrashAfter(last) if step > last => Err(failed()),
            At::StallAndCrashAfter(_) if step == self.at => {
                sleep(Duration::from_secs(60)).await;
                call.await
            }
            At::Held if step == self.at => {
                self.waiting.notify_one();
                self.released.notified().await;
                call.await
            }
            At::Stall(seconds) if step == self.at => {
                sleep(Duration::from_secs(seconds)).await;
                call.await
            }
            _ => call.await,
        }
    }
}

/// One of the ports, with steps.
pub(crate) struct Stepping<T: ?Sized> {
    pub(crate) beneath: Arc<T>,
    pub(crate) steps: Arc<Steps>,
}

fn store_failed() -> StoreError {
    StoreError::Unavailable(Arc::new(Crashed))
}

fn put_failed() -> StoreError {
    StoreError::Unknown(Arc::new(Crashed))
}

fn objects_failed() -> ObjectError {
    ObjectError::Unavailable(Arc::new(Crashed))
}

#[async_trait]
impl<T: Store + ?Sized> Store for Stepping<T> {
    fn capabilities(&self) -> Capabilities {
        self.beneath.capabilities()
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        self.steps.step(put_failed, self.beneath.put(put)).await
    }

    async fn put_all(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        self.steps.step(put_failed, self.beneath.put_all(puts)).await
    }

    async fn get(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        self.steps.step(store_failed, self.beneath.get(keys, consistency)).await
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.steps.step(store_failed, self.beneath.query(query)).await
    }
}

#[async_trait]
impl<T: Due + ?Sized> Due for Stepping<T> {
    async fn due(&self, oldest_ms_max: u64, behind: Option<&DueMark>, limit: usize) -> Result<DuePage, StoreError> {
        self.steps.step(store_failed, self.beneath.due(oldest_ms_max, behind, limit)).await
    }
}

#[async_trait]
impl<T: Objects + ?Sized> Objects for Stepping<T> {
    fn root(&self) -> &str {
        self.beneath.root()
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        self.steps.step(objects_failed, self.beneath.put(name, bytes)).await
    }

    async fn get(&self, name: &str, range: Option<Range<u64>>) -> Result<Bytes, ObjectError> {
        self.steps.step(objects_failed, self.beneath.get(name, range)).await
    }

    async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        self.steps.step(objects_failed, self.beneath.delete(name)).await
    }

    async fn list(&self, folder: &str, behind: Option<&str>, limit: usize) -> Result<ObjectPage, ObjectError> {
        self.steps.step(objects_failed, self.beneath.list(folder, behind, limit)).await
    }
}
