//! Work that must end in time.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

/// Like `timeout_at`, but without a timer for what is done at once, as most reads in this process are.
pub(crate) async fn by<T>(deadline: Instant, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    let mut work = pin!(work);
    match poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await {
        Poll::Ready(done) => Ok(done),
        Poll::Pending => timeout_at(deadline, work).await,
    }
}
