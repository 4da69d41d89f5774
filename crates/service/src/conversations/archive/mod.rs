//! The archive: contents that have gone from rows to objects, and how they go, are read and are erased.
//!
//! Rows are the truth: a row says where its content is, and changes by compare-and-set alone. Objects have names that are
//! used once. Whoever is about to write objects first notes it in the control record (`Move`), together with the objects
//! that are to go when it is done. Who finds such a note left behind carries the same range over once more, into
//! objects of its own, and so ends whatever the other has begun:
//!
//! - A row follows only from the version at which it was read. When all rows of a range have moved on, nobody who read them
//!   before can make one of them refer to an older object again, however late. So those objects can go.
//! - Nobody moves a row that refers to an object not named in their own note: they have been overtaken, and stop.
//! - A row that is found erased when it should follow means that its text is in the object just written: the range is
//!   carried over once more, before the note is struck out.
//!
//! No clock is part of this argument; ages only save needless work.

mod absent;
mod carry;
mod erase;
mod fetch;
mod pass;
mod single;
mod sweep;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use saltern_core::archive::{Nonce, folder};
use saltern_core::ids::ConversationId;
use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use saltern_store::objects::{ObjectError, Objects};
use saltern_store::{Store, StoreError};
use tokio::sync::{Mutex, MutexGuard, Semaphore};

use self::absent::Absent;
pub use self::fetch::ContentProblem;
pub(super) use self::fetch::Unread;
use self::fetch::{BlockCache, FETCHES_MAX};
pub use self::pass::{Estimate, PassOptions, PassReport, Progress};
pub use self::sweep::Swept;
use super::rows::RowCache;
use crate::{Patience, WallClock};

/// How contents are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectLayout {
    /// Many messages of a conversation in one object.
    #[default]
    Segments,
    /// One JSON object for each message.
    Messages,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum ArchiveError {
    #[error("store")]
    Store(#[from] StoreError),
    #[error("object storage")]
    Objects(#[from] ObjectError),
    /// Another process is at work on the same messages. Nothing is lost by coming back later.
    #[error("another process is at work on this conversation")]
    Busy,
    /// What an earlier pass has archived cannot be read back.
    #[error("content of seq_no {seq}")]
    Content { seq: SeqNo, source: ContentProblem },
    #[error("object {0} does not read back as it was written")]
    NotAsWritten(String),
    /// Removing the object could lose contents, so it stays, and so does the note of the move.
    #[error("object {object} may hold messages outside the range that was written anew; it has not been removed")]
    NotReplaced { object: String, source: Option<ContentProblem> },
}

/// Passes and erasures that touch one conversation take turns; conversations that share a turn wait in vain now and then.
const TURNS: usize = 64;

/// Who reads everything once needs neighbours only.
const READ_CACHE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The archive of one service.
pub struct Archive {
    store: Arc<dyn Store>,
    objects: Arc<dyn Objects>,
    present: bool,
    patience: Patience,
    layout: ObjectLayout,
    wall_clock: WallClock,
    /// A hole with a row above it is sealed when the row is so old.
    seal_after_ms: u64,
    nonces: AtomicU64,
    turns: Vec<Mutex<()>>,
    /// What rows were before they moved must not be remembered.
    rows: Arc<RowCache>,
    blocks: BlockCache,
    fetches: Semaphore,
    pass: Mutex<()>,
}

pub(super) struct Parts {
    pub(super) store: Arc<dyn Store>,
    pub(super) objects: Option<Arc<dyn Objects>>,
    pub(super) layout: ObjectLayout,
    pub(super) wall_clock: WallClock,
    pub(super) seal_after: Duration,
    pub(super) seed: u64,
    pub(super) rows: Arc<RowCache>,
    pub(super) cache_bytes_max: usize,
    pub(super) patience: Patience,
}

impl Archive {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { store, objects, layout, wall_clock, seal_after, seed, rows, cache_bytes_max, patience } = parts;
        let first = SplitMix64::new(seed ^ wall_clock().rotate_left(20)).next_u64();
        Self {
            store,
            present: objects.is_some(),
            patience,
            objects: objects.unwrap_or_else(|| Arc::new(Absent)),
            layout,
            wall_clock,
            seal_after_ms: u64::try_from(seal_after.as_millis()).unwrap_or(u64::MAX),
            nonces: AtomicU64::new(first),
            turns: std::iter::repeat_with(Mutex::default).take(TURNS).collect(),
            rows,
            blocks: BlockCache::new(cache_bytes_max),
            fetches: Semaphore::new(FETCHES_MAX),
            pass: Mutex::default(),
        }
    }

    /// One that only reads.
    pub(crate) fn for_reading(
        store: Arc<dyn Store>,
        objects: Arc<dyn Objects>,
        wall_clock: WallClock,
        patience: Patience,
    ) -> Self {
        Self::new(Parts {
            store,
            objects: Some(objects),
            layout: ObjectLayout::default(),
            wall_clock,
            seal_after: Duration::MAX,
            seed: 0,
            rows: Arc::new(RowCache::new(0, None)),
            cache_bytes_max: READ_CACHE_BYTES_MAX,
            patience,
        })
    }

    /// Whether there is somewhere for contents to go.
    #[must_use]
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Where it is, for people.
    #[must_use]
    pub fn root(&self) -> &str {
        self.objects.root()
    }

    /// Where the objects of a conversation are, for people.
    #[must_use]
    pub fn place_of(&self, conversation: &ConversationId) -> String {
        format!("{}/{}", self.root(), folder(conversation))
    }

    fn nonce(&self) -> Nonce {
        Nonce(SplitMix64::new(self.nonces.fetch_add(1, Ordering::Relaxed)).next_u64())
    }

    async fn turn(&self, conversation: &ConversationId) -> MutexGuard<'_, ()> {
        let hash = conversation.as_str().bytes().fold(7_usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte));
        self.turns[hash % TURNS].lock().await
    }

    fn now_ms(&self) -> u64 {
        (self.wall_clock)()
    }
}

fn name(conversation: &ConversationId, leaf: &str) -> String {
    format!("{}/{leaf}", folder(conversation))
}
