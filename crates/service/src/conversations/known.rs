//! What this server knows of each conversation: its control record as last seen, and how far its rows are final.
//! All of it can be had again from the store, so it is bounded and forgetful.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use saltern_core::control::ControlRecord;
use saltern_core::frontier::Frontier;
use saltern_core::ids::ConversationId;
use saltern_core::seq::{SeqNo, SeqRange};

/// One conversation, as far as it is known here.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) conversation: ConversationId,
    facts: Mutex<Facts>,
    /// Held while the registry is synced or the horizon extended: one at a time per conversation and server.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// How often that has succeeded: who waited for their turn can tell that another did their work.
    turns: AtomicU64,
    /// An extension ahead of need is under way.
    pub(super) extending: AtomicBool,
}

#[derive(Debug, Default)]
struct Facts {
    control: Option<Arc<ControlRecord>>,
    frontier: Frontier,
    /// The highest row was looked for, and every later one has passed through here.
    head_is_exact: bool,
}

impl Known {
    fn new(conversation: ConversationId) -> Self {
        Self {
            conversation,
            facts: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            turns: AtomicU64::new(0),
            extending: AtomicBool::new(false),
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The control record as last seen. However old, its layout is exact below its own horizon (I4).
    pub(super) fn control(&self) -> Option<Arc<ControlRecord>> {
        self.facts().control.clone()
    }

    /// A look at it, for those who need not keep it.
    pub(super) fn look<T>(&self, look: impl FnOnce(&ControlRecord) -> T) -> Option<T> {
        self.facts().control.as_deref().map(look)
    }

    /// Takes up a control record, unless a newer one is known; answers with the newer.
    pub(super) fn learn(&self, control: ControlRecord) -> Arc<ControlRecord> {
        let mut facts = self.facts();
        facts.frontier.resolve(control.resolved);
        match &facts.control {
            Some(known) if known.ver >= control.ver => Arc::clone(known),
            _ => {
                let control = Arc::new(control);
                facts.control = Some(Arc::clone(&control));
                control
            }
        }
    }

    /// Rows at all of these places exist, and rows are final.
    pub(super) fn saw(&self, rows: SeqRange) {
        self.facts().frontier.saw(rows);
    }

    /// Looks at the frontier.
    pub(super) fn frontier<T>(&self, look: impl FnOnce(&Frontier) -> T) -> T {
        look(&self.facts().frontier)
    }

    /// The highest row of all was found. Only for an exclusive store, where whatever comes after is seen here first.
    pub(super) fn found_head(&self) {
        self.facts().head_is_exact = true;
    }

    /// The highest row that can have been acknowledged, if that is known.
    pub(super) fn exact_head(&self) -> Option<SeqNo> {
        let facts = self.facts();
        facts.frontier.head().filter(|_| facts.head_is_exact)
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }

    pub(super) fn turn_done(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }
}

const SHARDS: usize = 16;

/// All conversations known here; the idlest are forgotten first.
pub(super) struct Directory {
    shards: Vec<Mutex<LruCache<ConversationId, Arc<Known>>>>,
    per_shard_max: usize,
}

impl Directory {
    pub(super) fn new(conversations_max: usize) -> Self {
        let shard = || Mutex::new(LruCache::unbounded());
        Self {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            per_shard_max: NonZeroUsize::new(conversations_max.div_ceil(SHARDS)).map_or(1, NonZeroUsize::get),
        }
    }

    pub(super) fn get(&self, conversation: &ConversationId) -> Arc<Known> {
        let mut hasher = DefaultHasher::new();
        conversation.hash(&mut hasher);
        let shard = &self.shards[usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or(0)];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = shard.get(conversation) {
            return Arc::clone(known);
        }
        let known = Arc::new(Known::new(conversation.clone()));
        shard.put(conversation.clone(), Arc::clone(&known));
        while shard.len() > self.per_shard_max && forget_idlest(&mut shard) {}
        known
    }
}

/// Forgets the idlest conversation that nobody is using: were one in use forgotten, its user would learn news that
/// the next one to look would not have. `false` if all are in use.
fn forget_idlest(shard: &mut LruCache<ConversationId, Arc<Known>>) -> bool {
    for _ in 0..shard.len() {
        match shard.pop_lru() {
            Some((conversation, known)) if Arc::strong_count(&known) > 1 => {
                shard.put(conversation, known);
            }
            _ => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(i: usize) -> ConversationId {
        ConversationId::new(&format!("c{i}")).unwrap()
    }

    #[test]
    fn the_directory_is_bounded_but_keeps_what_is_in_use() {
        let directory = Directory::new(SHARDS);
        let held = directory.get(&id(0));
        held.learn(ControlRecord::create(1, 0));
        for i in 1..1_000 {
            directory.get(&id(i));
        }
        assert!(directory.get(&id(0)).control().is_some());
        drop(held);
        for i in 1..1_000 {
            directory.get(&id(i));
        }
        assert!(directory.get(&id(0)).control().is_none());
        let len: usize = directory.shards.iter().map(|s| s.lock().unwrap().len()).sum();
        assert!(len <= SHARDS, "{len}");
    }

    #[test]
    fn an_older_control_record_does_not_replace_a_newer_one() {
        let known = Known::new(id(0));
        let first = ControlRecord::create(1, 0);
        let second = first.sealed(SeqNo::clamped(4), []);
        known.learn(second.clone());
        assert_eq!(*known.learn(first), second);
        assert_eq!(known.frontier(Frontier::stable_through), 3);
    }
}
