//! Conversations: append logs with dense order, idempotent appends and stable pages.

mod api;
mod metrics;

use std::sync::Arc;

pub use api::{AppendError, Appended, Config, HotConversation, Lookup, ReadError, View, WallClock};
pub use metrics::Metrics;
use saltern_core::ids::ConversationId;
use saltern_core::message::Draft;
use saltern_core::page::{NewerPage, OlderPage};
use saltern_core::seq::SeqNo;
use saltern_registry::{Registry, RegistryError};
use saltern_store::Store;

/// A cheap handle on the conversation service.
#[derive(Clone)]
pub struct Conversations {}

impl Conversations {
    pub fn new(_store: Arc<dyn Store>, _registry: Arc<dyn Registry>, _config: Config) -> Self {
        todo!()
    }

    /// Appends one message. Once begun, it runs to its end even if this future is dropped.
    pub async fn append(&self, _conversation: &ConversationId, _draft: Draft) -> Result<Appended, AppendError> {
        todo!()
    }

    /// Appends up to 500 messages; one answer for each, in order.
    pub async fn append_batch(
        &self,
        _conversation: &ConversationId,
        _drafts: Vec<Draft>,
    ) -> Vec<Result<Appended, AppendError>> {
        todo!()
    }

    /// The page before a seq_no, newest first; without one, the newest page.
    pub async fn older(
        &self,
        _conversation: &ConversationId,
        _before: Option<SeqNo>,
        _limit: usize,
    ) -> Result<Arc<OlderPage>, ReadError> {
        todo!()
    }

    /// The page after a seq_no, oldest first; 0 starts at the beginning.
    pub async fn newer(
        &self,
        _conversation: &ConversationId,
        _after: u64,
        _limit: usize,
    ) -> Result<Arc<NewerPage>, ReadError> {
        todo!()
    }

    /// What one seq_no holds.
    pub async fn lookup(&self, _conversation: &ConversationId, _seq: SeqNo) -> Result<Lookup, ReadError> {
        todo!()
    }

    /// The operator's view; `None` for a conversation that was never written to.
    pub async fn view(&self, _conversation: &ConversationId) -> Result<Option<View>, ReadError> {
        todo!()
    }

    /// The hottest conversations, hottest first.
    pub async fn hot(&self, _limit: usize) -> Result<Vec<HotConversation>, RegistryError> {
        todo!()
    }

    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        todo!()
    }

    /// Takes no more appends, and waits for those under way.
    pub async fn shut_down(&self) {
        todo!()
    }
}
