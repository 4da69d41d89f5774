//! What callers of the conversation service see.

use std::sync::Arc;
use std::time::Duration;

use saltern_core::heat::HeatPolicy;
use saltern_core::ids::ConversationId;
use saltern_core::layout::Epoch;
use saltern_core::page::Gap;
use saltern_core::record::MessageRow;
use saltern_core::seq::SeqNo;
use saltern_registry::RegistryError;
use saltern_store::StoreError;
use saltern_store::objects::Objects;

use super::archive::{ArchiveError, ContentProblem, ObjectLayout};
use crate::{Patience, WallClock};

/// The settings of the conversation service.
#[derive(Clone)]
pub struct Config {
    pub heat: HeatPolicy,
    /// How long an append may take, from its ticket to its answer.
    pub append_deadline: Duration,
    /// How long a read may take.
    pub read_deadline: Duration,
    /// A hole seen for this long is sealed with a void.
    pub seal_after: Duration,
    /// Appends under way at once (a batch counts its messages); beyond it, callers are told to come back.
    pub appends_max: usize,
    /// Reads under way at once.
    pub reads_max: usize,
    /// Bytes of history kept in memory.
    pub cache_bytes_max: usize,
    /// Where old contents go, and come from.
    pub objects: Option<Arc<dyn Objects>>,
    pub object_layout: ObjectLayout,
    /// Of passes and erasures.
    pub patience: Patience,
    /// Bytes of archived contents kept in memory.
    pub archive_cache_bytes_max: usize,
    /// Conversations remembered (layout, frontier); the idlest are forgotten first.
    pub conversations_max: usize,
    /// Only for `ingested_at` and the pace of leases, never for order.
    pub wall_clock: WallClock,
    /// Where the jitter of pauses starts: differs between servers, so that they do not march in step.
    pub jitter_seed: u64,
    #[cfg(feature = "sabotage")]
    pub sabotage: Option<super::Sabotage>,
}

impl Config {
    /// The product's settings.
    pub fn new(wall_clock: WallClock, jitter_seed: u64) -> Self {
        Self {
            heat: HeatPolicy::default(),
            append_deadline: Duration::from_secs(10),
            read_deadline: Duration::from_secs(5),
            seal_after: Duration::from_secs(5),
            appends_max: 4_096,
            reads_max: 4_096,
            cache_bytes_max: 128 * 1024 * 1024,
            objects: None,
            object_layout: ObjectLayout::default(),
            archive_cache_bytes_max: 64 * 1024 * 1024,
            patience: Patience::default(),
            conversations_max: 100_000,
            wall_clock,
            jitter_seed,
            #[cfg(feature = "sabotage")]
            sabotage: None,
        }
    }
}

/// What to do about contents that are in the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Contents {
    #[default]
    Fetched,
    /// Leave them there: rows say where they are.
    Refs,
}

/// Why a message was not erased, or not everywhere. It may be asked for again.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EraseError {
    #[error("too many requests under way")]
    Overloaded,
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No reader finds the content any more, or all of them do; what is begun is carried to its end by the next pass.
    #[error("not erased everywhere")]
    Archive(#[from] ArchiveError),
}

/// An append that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub seq: SeqNo,
    /// The message had been appended before.
    pub replayed: bool,
}

/// Why an append was not acknowledged.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// The message_id stands for another message, at this place. Nothing was changed.
    #[error("message_id is used by another message, at seq_no {0}")]
    Conflict(SeqNo),
    /// Too much under way. Nothing happened.
    #[error("too many requests under way")]
    Overloaded,
    /// The registry is out of reach. The message may be sent again with the same message_id.
    #[error("registry out of reach")]
    Registry(#[from] RegistryError),
    /// The store failed or throttled past the deadline. The message may have been stored or not: it may be sent again
    /// with the same message_id (I7).
    #[error("outcome not known in time")]
    Unsettled(#[source] Option<StoreError>),
    /// The conversation has no seq_no left.
    #[error("conversation is full")]
    Full,
    /// The store holds damaged data.
    #[error("store failed")]
    Damaged(#[source] StoreError),
}

/// Why a read has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    #[error("too many requests under way")]
    Overloaded,
    /// The store failed, throttled or was too slow. Nothing is known to be missing.
    #[error("store did not answer in time")]
    Unavailable(#[source] Option<StoreError>),
    /// Content that is in the archive cannot be had from there.
    #[error("content of seq_no {seq} of conversation {conversation}")]
    Content {
        conversation: ConversationId,
        seq: SeqNo,
        #[source]
        problem: ContentProblem,
    },
    /// A row that must exist does not: detected loss.
    #[error("row {seq} of conversation {conversation} is missing from the store")]
    Lost { conversation: ConversationId, seq: SeqNo },
    #[error("store failed")]
    Damaged(#[source] StoreError),
}

/// What a seq_no holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    Message(Arc<MessageRow>),
    Void,
    /// Below the head, but without a row yet.
    Pending,
    BeyondHead,
}

/// The operator's view of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The highest row; 0 if there is none.
    pub head_seq: u64,
    pub stable_through: u64,
    pub n: u16,
    pub max_n: u16,
    /// `None` while the registry is out of reach.
    pub rate_wcu_per_s: Option<f64>,
    pub horizon: SeqNo,
    pub epochs: Vec<Epoch>,
    /// Gaps among the newest rows.
    pub recent_gaps: Vec<Gap>,
}

/// One line of the hot list.
#[derive(Debug, Clone, PartialEq)]
pub struct HotConversation {
    pub conversation: ConversationId,
    pub rate_wcu_per_s: f64,
    pub n: u16,
    pub max_n: u16,
    pub throttles: u64,
}
