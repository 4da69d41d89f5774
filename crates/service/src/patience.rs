//! For work that nobody waits for by the second.

use std::time::Duration;

use saltern_store::StoreError;
use saltern_store::objects::ObjectError;
use tokio::time::sleep;

/// How often what cannot answer is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub attempts: u32,
}

/// About half a minute.
impl Default for Patience {
    fn default() -> Self {
        Self { attempts: 30 }
    }
}

/// Pauses double up to such a one.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Whether a call may go well another time.
pub(crate) trait Passing {
    fn passes(&self) -> bool;
}

impl Passing for StoreError {
    fn passes(&self) -> bool {
        !matches!(self, Self::Damaged(_))
    }
}

impl Passing for ObjectError {
    fn passes(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}

pub(crate) async fn patiently<T, E: Passing, C>(patience: Patience, call: impl Fn() -> C) -> Result<T, E>
where
    C: Future<Output = Result<T, E>>,
{
    let mut attempts = 0;
    loop {
        match call().await {
            Err(error) if attempts + 1 < patience.attempts && error.passes() => {
                sleep(PAUSE_FIRST.saturating_mul(1 << attempts.min(10)).min(PAUSE_MAX)).await;
            }
            settled => return settled,
        }
        attempts += 1;
    }
}
