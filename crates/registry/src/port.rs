//! The registry port: issues tickets, meters heat. An accelerator, never the truth (I5).
//!
//! # Contract
//! - **R1 Distinct.** As long as its state of a conversation lives, no seq_no is issued twice, however many ask at once.
//! - **R2 Below the horizon.** Nothing is issued at or above the horizon it was last told.
//! - **R3 Only up.** `install` and `raise` never lower what is there: the larger of old and new stays.
//! - **R4 Forgetful.** State may vanish or jump back at any time; then tickets answer `Absent`, or old numbers again.
//!   The store catches that, so nothing here has to be durable.
//! - **R5 Runs.** A request for `count` tickets gets that many consecutive ones, or none.
//! - **R6 `raise` alone never creates state**: without a known next seq_no it does nothing.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use saltern_core::heat::Sample;
use saltern_core::ids::ConversationId;
use saltern_core::seq::SeqNo;

/// What one request for tickets asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TicketRequest {
    /// Consecutive seq_nos wanted, at least 1.
    pub count: u64,
    /// What the messages will cost to write: metered whether or not tickets are issued.
    pub wcu: u64,
}

/// Answer to a request for tickets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tickets {
    /// `first` and the `count - 1` after it are the caller's.
    Issued { first: SeqNo, horizon: SeqNo },
    /// The horizon leaves no room: extend it.
    Exhausted { next: SeqNo, horizon: SeqNo },
    /// Nothing is known of the conversation: sync it.
    Absent,
}

/// One line of the hot list.
#[derive(Debug, Clone, PartialEq)]
pub struct Hot {
    pub conversation: ConversationId,
    pub rate_wcu_per_s: f64,
    /// Rows whose write was throttled since the conversation is known.
    pub throttles: u64,
}

/// Hottest first, ties by name, cut at the limit.
pub(crate) fn cut_to_hottest(hot: &mut Vec<Hot>, limit: usize) {
    hot.sort_unstable_by(|a, b| {
        b.rate_wcu_per_s.total_cmp(&a.rate_wcu_per_s).then_with(|| a.conversation.cmp(&b.conversation))
    });
    hot.truncate(limit);
}

/// A row whose write was throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottledRow {
    pub wcu: u64,
    /// Where its epoch starts: a row tells of the n that placed it, and of no other.
    pub epoch: SeqNo,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("registry unavailable")]
pub struct RegistryError(#[source] pub Arc<dyn Error + Send + Sync>);

#[async_trait]
pub trait Registry: Send + Sync + 'static {
    /// Issues tickets and meters the load, in one atomic step (R1, R2, R5).
    async fn tickets(&self, conversation: &ConversationId, request: TicketRequest) -> Result<Tickets, RegistryError>;

    /// Makes a conversation known (R3).
    async fn install(&self, conversation: &ConversationId, next: SeqNo, horizon: SeqNo) -> Result<(), RegistryError>;

    /// Raises the horizon of a conversation that is known (R3, R6).
    async fn raise(&self, conversation: &ConversationId, horizon: SeqNo) -> Result<(), RegistryError>;

    /// The present heat, with what was throttled of the rows of this epoch. Changes nothing.
    async fn sample(&self, conversation: &ConversationId, epoch: SeqNo) -> Result<Sample, RegistryError>;

    /// A store throttled the first attempt to write a row of this conversation.
    async fn throttled(&self, conversation: &ConversationId, row: ThrottledRow) -> Result<(), RegistryError>;

    /// The rate now, 0 for a conversation that is not known. Changes nothing.
    async fn rate_wcu_per_s(&self, conversation: &ConversationId) -> Result<f64, RegistryError>;

    /// The hottest conversations, hottest first, over all servers.
    async fn hot(&self, limit: usize) -> Result<Vec<Hot>, RegistryError>;
}
