//! The whole messages table, for whoever checks it.

use async_trait::async_trait;
use saltern_core::key::Key;
use saltern_core::record::Record;

use crate::port::{Cause, StoreError};

/// A part of the table.
#[derive(Debug)]
pub struct ScanPage {
    /// One that is not what was written stands for itself, and for no other.
    pub rows: Vec<(Key, Result<Record, Cause>)>,
    /// Go on behind this key. An empty page with a `resume` is legal.
    pub resume: Option<Key>,
}

/// # Contract
/// - **N1 Each once.** Pages from the beginning to one without `resume` hold every row that was there all the while exactly
///   once, in an order of the adapter's own; those that are written meanwhile, at most once.
/// - **N2 As it is.** A row is as a strong read would have found it at some time during its page.
#[async_trait]
pub trait Scan: Send + Sync + 'static {
    /// At most `limit` rows behind a key, or from the beginning.
    async fn scan(&self, behind: Option<&Key>, limit: usize) -> Result<ScanPage, StoreError>;

    /// Lets go, on the disk too, of what has been overwritten or removed. Where others see to that, there is nothing to do.
    async fn compact(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
