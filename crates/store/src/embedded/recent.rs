//! Boosts that were read lately, decoded, as the last commit left them: this process alone writes the folder, so it knows.

use std::hash::BuildHasher as _;
use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::{DefaultHasher, LruCache};
use saltern_core::campaigns::{BoostKey, Look};

use super::options::BOOSTS_REMEMBERED_MAX;
use crate::port::StoreError;

const SHARDS: usize = 32;
const HITS_PER_MOVE: u32 = 8;

#[derive(Default)]
pub(super) struct Recent {
    shards: [Mutex<Shard>; SHARDS],
    hasher: DefaultHasher,
}

struct Shard {
    looks: LruCache<Box<str>, Look>,
    hits: u32,
}

impl Default for Shard {
    fn default() -> Self {
        let each = NonZeroUsize::new(BOOSTS_REMEMBERED_MAX / SHARDS).unwrap_or(NonZeroUsize::MIN);
        Self { looks: LruCache::new(each), hits: 0 }
    }
}

impl Shard {
    /// Being used moves a row to the front, which costs more than to find it; now and then is enough to keep those that
    /// are used often.
    fn get(&mut self, key: &str) -> Option<&Look> {
        self.hits = self.hits.wrapping_add(1);
        if self.hits.is_multiple_of(HITS_PER_MOVE) { self.looks.get(key) } else { self.looks.peek(key) }
    }
}

impl Recent {
    /// What is remembered, or else what `read` finds. The lock is held meanwhile, so that a commit is either seen by the
    /// read, or forgets what it found.
    pub(super) fn look(
        &self,
        key: &BoostKey,
        read: impl FnOnce() -> Result<Look, StoreError>,
    ) -> Result<Look, StoreError> {
        let mut shard = self.shard(key.as_str());
        if let Some(look) = shard.get(key.as_str()) {
            return Ok(look.clone());
        }
        let look = read()?;
        shard.looks.put(key.as_str().into(), look.clone());
        Ok(look)
    }

    /// To be told of every row that a commit has made visible, before its writer is answered.
    pub(super) fn forget(&self, key: &[u8]) {
        if let Ok(text) = std::str::from_utf8(key) {
            self.shard(text).looks.pop(text);
        }
    }

    fn shard(&self, key: &str) -> MutexGuard<'_, Shard> {
        let place = usize::try_from(self.hasher.hash_one(key) % SHARDS as u64).unwrap_or(0);
        // No code panics while it holds the lock.
        self.shards[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
