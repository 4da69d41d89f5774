//! Store calls with deadlines. Every write of campaigns may be repeated, so whatever is not final is tried again.

use std::sync::Arc;

use saltern_store::StoreError;
use tokio::time::{Instant, sleep};

use super::handle::Inner;
use crate::deadline::by;

#[derive(Debug, thiserror::Error)]
#[error("deadline passed")]
pub(super) struct DeadlinePassed;

impl Inner {
    /// The last error stands for all of them, but a write that may have happened once stays `Unknown`.
    pub(super) async fn settle<T, F>(&self, deadline: Instant, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut unknown = None;
        for attempt in 0.. {
            let error = match by(deadline, call()).await {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(error)) => error,
                Err(_) => StoreError::Unknown(Arc::new(DeadlinePassed)),
            };
            match &error {
                StoreError::Damaged(_) => return Err(error),
                StoreError::Throttled => drop(self.metrics.store_throttles.inc()),
                StoreError::Unknown(_) => unknown = unknown.or_else(|| Some(error.clone())),
                StoreError::Unavailable(_) => {}
            }
            if !self.pause(attempt, deadline).await {
                return Err(unknown.unwrap_or(error));
            }
            self.metrics.store_retries.inc();
        }
        Err(StoreError::Unknown(Arc::new(DeadlinePassed)))
    }

    /// Waits for the next attempt; `false` if there is no time for one.
    pub(super) async fn pause(&self, attempt: u32, deadline: Instant) -> bool {
        let pause = self.jitter.pause(attempt);
        if self.stop.is_cancelled() || Instant::now() + pause >= deadline {
            return false;
        }
        sleep(pause).await;
        true
    }
}
