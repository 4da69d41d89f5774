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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_done_at_once_is_never_late_and_what_waits_is_cut_off() {
        let now = Instant::now();
        assert_eq!(by(now - Duration::from_secs(1), async { 7 }).await.ok(), Some(7));
        let second = Duration::from_secs(1);
        assert!(by(now + second, tokio::time::sleep(second / 2)).await.is_ok());
        assert!(by(now + second, std::future::pending::<()>()).await.is_err());
        assert_eq!(now.elapsed(), second);
    }
}
