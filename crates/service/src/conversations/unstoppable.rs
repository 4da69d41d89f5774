//! Work that comes to its end even if nobody waits for it any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Inner, mortal};

/// Runs inside its caller's task, which is cheaper than one of its own; if the caller drops it half-way, it goes on as a
/// task. `None` if the service was aborted.
pub(super) struct Unstoppable<T: Send + 'static> {
    work: Option<Pin<Box<dyn Future<Output = Option<T>> + Send>>>,
    inner: Arc<Inner>,
    /// Shutdown waits for it.
    _under_way: TaskTrackerToken,
}

impl<T: Send + 'static> Unstoppable<T> {
    pub(super) fn new(inner: &Arc<Inner>, work: impl Future<Output = T> + Send + 'static) -> Self {
        let work: Pin<Box<dyn Future<Output = Option<T>> + Send>> = Box::pin(mortal(&inner.stop, work));
        Self { work: Some(work), inner: Arc::clone(inner), _under_way: inner.tasks.token() }
    }
}

impl<T: Send + 'static> Future for Unstoppable<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(work) = &mut self.work else { return Poll::Ready(None) };
        let polled = work.as_mut().poll(context);
        if polled.is_ready() {
            self.work = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Unstoppable<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take() else { return };
        // Without a runtime the process is about to end, and this with it.
        if !self.inner.stop.is_cancelled()
            && let Ok(runtime) = Handle::try_current()
        {
            self.inner.tasks.spawn_on(work, &runtime);
        }
    }
}
