//! Boosts that were read lately, decoded, as the last commit left them: this process alone writes the folder, so it knows.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use saltern_core::campaigns::{BoostKey, Look};

use super::options::BOOSTS_REMEMBERED_MAX;
use crate::port::StoreError;

const SHARDS: usize = 64;

type Shard = LruCache<Box<str>, Look>;

pub(super) struct Recent(Vec<Mutex<Shard>>);

impl Default for Recent {
    fn default() -> Self {
        let each = NonZeroUsize::new(BOOSTS_REMEMBERED_MAX / SHARDS).unwrap_or(NonZeroUsize::MIN);
        Self((0..SHARDS).map(|_| Mutex::new(LruCache::new(each))).collect())
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
        let mut shard = self.shard(key.as_str().as_bytes());
        if let Some(look) = shard.get(key.as_str()) {
            return Ok(look.clone());
        }
        let look = read()?;
        shard.put(key.as_str().into(), look.clone());
        Ok(look)
    }

    /// To be told of every row that a commit has made visible, before its writer is answered.
    pub(super) fn forget(&self, key: &[u8]) {
        if let Ok(text) = std::str::from_utf8(key) {
            self.shard(key).pop(text);
        }
    }

    fn shard(&self, key: &[u8]) -> MutexGuard<'_, Shard> {
        let hash = key.iter().fold(0_usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        // No code panics while it holds the lock.
        self.0[hash % self.0.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
