//! The conversations that the archive has to look at, without a look at the others.

use async_trait::async_trait;
use saltern_core::ids::ConversationId;

use crate::port::StoreError;

/// A part of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuePage {
    pub conversations: Vec<ConversationId>,
    /// Go on behind this. An empty page with a `resume` is legal.
    pub resume: Option<DueMark>,
}

/// A place in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueMark {
    pub(crate) shard: u16,
    pub(crate) last: Option<(u64, ConversationId)>,
}

/// # Contract
/// - **U1 Complete.** Pages from the beginning to one without `resume` name every conversation whose control record says all
///   the while that its archive's `oldest_ms` is at or before the time given.
/// - **U2 By the record.** The index follows the control record, in the same atomic step or soon after. A conversation whose
///   record has changed meanwhile may be named or not: who acts on it looks at the record.
/// - **U3 In proportion.** A page costs what it names, not what the table holds.
#[async_trait]
pub trait Due: Send + Sync + 'static {
    /// At most `limit` conversations behind a mark, or from the beginning.
    async fn due(&self, oldest_ms_max: u64, behind: Option<&DueMark>, limit: usize) -> Result<DuePage, StoreError>;
}
