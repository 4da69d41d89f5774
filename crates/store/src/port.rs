//! The store port: what every adapter can do natively, and nothing else.
//!
//! # Contract
//! - **S1 Atomic conditions.** A put happens wholly or not at all, and its condition is judged in the same atomic step.
//!   Of any number of concurrent puts with `Condition::Absent` on one key, exactly one is applied.
//! - **S2 Durable before answered.** `PutOutcome::Applied` means that the row survives a crash of this process.
//! - **S3 The row that was in the way.** A put whose condition fails answers with the row as it was in that very step.
//! - **S4 Honest outcomes.** `Throttled` and `Unavailable` on a write: certainly nothing happened. `Unknown`: it may
//!   have happened, or may yet. A write whose future is dropped counts as `Unknown`.
//! - **S5 Strong reads.** A read with `Consistency::Strong` that begins after a put was answered sees it, on any handle.
//!   With `Eventual` it may miss it, but never sees half a row or a row that never was.
//! - **S6 Ordered, bounded queries.** A page holds rows of one partition in the order asked for, inside the bounds,
//!   at most `limit`. `resume` is `Some` exactly when rows beyond may exist; an empty page with a `resume` is legal.
//!   Rows never vanish from the middle of a page: what cannot be read is an error.
//! - **S7 All or nothing.** With `Capabilities::atomic_puts`, `put_all` applies every put or none, and answers for
//!   each put whose condition failed.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use saltern_core::key::{Key, PartitionKey};
use saltern_core::page::Order;
use saltern_core::record::Record;

/// What a put is conditional on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// No row under the key.
    Absent,
    /// A row under the key whose `Record::version` is this.
    Version(u64),
}

impl Condition {
    /// Whether the condition holds for the row that is there.
    #[must_use]
    pub fn holds(self, present: Option<u64>) -> bool {
        match self {
            Self::Absent => present.is_none(),
            Self::Version(version) => present == Some(version),
        }
    }
}

/// One conditional write of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    pub key: Key,
    pub record: Record,
    pub condition: Condition,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutOutcome {
    Applied,
    /// The condition failed; this is the row that is there, if any.
    Refused(Option<Record>),
}

/// A bounded range of one partition's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub partition: PartitionKey,
    /// Lowest sort key, included.
    pub from: u64,
    /// Highest sort key, included.
    pub to: u64,
    pub order: Order,
    pub limit: usize,
    pub consistency: Consistency,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Consistency {
    Strong,
    Eventual,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryPage {
    /// Sort keys and rows, in the order asked for.
    pub rows: Vec<(u64, Record)>,
    /// Go on behind this sort key.
    pub resume: Option<u64>,
}

/// What an adapter offers beyond the minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// `put_all` costs about as much as one put.
    pub atomic_puts: bool,
    /// This process is the only one that writes: what it has seen of a control record is its present state.
    pub exclusive: bool,
}

/// The cause of a failure, for people.
pub type Cause = Arc<dyn Error + Send + Sync>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Nothing happened; the partition is too busy. Try again after a pause.
    #[error("throttled")]
    Throttled,
    /// Nothing happened; the store cannot serve now.
    #[error("store unavailable")]
    Unavailable(#[source] Cause),
    /// A write that may have happened, or may yet happen (I7).
    #[error("outcome of the write unknown")]
    Unknown(#[source] Cause),
    /// What was read is not what was written. Trying again does not help.
    #[error("store holds damaged data")]
    Damaged(#[source] Cause),
}

/// The messages table.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    fn capabilities(&self) -> Capabilities;

    /// Writes one row if its condition holds (S1–S4).
    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError>;

    /// Writes several rows in one atomic step if all their conditions hold (S7), and answers `Applied` for each; or
    /// writes nothing, answers `Refused` for each put whose condition failed and `Applied` for those that stood ready.
    ///
    /// Only for adapters with `Capabilities::atomic_puts`. Keys must differ.
    async fn put_all(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError>;

    /// Reads rows by exact key, in the order of the keys (S5).
    async fn get(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Record>>, StoreError>;

    /// Reads one page of a range (S5, S6).
    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError>;
}

/// Follows a query through its continuations, until its limit or its end.
pub async fn query_all(store: &dyn Store, query: &Query) -> Result<Vec<(u64, Record)>, StoreError> {
    let first = store.query(query).await?;
    let (mut rows, mut resume) = (first.rows, first.resume);
    let mut query = query.clone();
    query.limit = query.limit.saturating_sub(rows.len());
    loop {
        let Some(behind) = resume.filter(|_| query.limit > 0) else { return Ok(rows) };
        match query.order {
            Order::Ascending if behind == u64::MAX => return Ok(rows),
            Order::Ascending => query.from = behind + 1,
            Order::Descending if behind == 0 => return Ok(rows),
            Order::Descending => query.to = behind - 1,
        }
        if query.from > query.to {
            return Ok(rows);
        }
        let page = store.query(&query).await?;
        query.limit = query.limit.saturating_sub(page.rows.len());
        rows.extend(page.rows);
        resume = page.resume;
    }
}
