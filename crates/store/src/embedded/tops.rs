//! The highest sort key of each partition that has been written to lately. An append log is written at its end, and what
//! lies beyond the end need not be looked for.

use std::num::NonZeroUsize;

use lru::LruCache;

use super::physical::{Space, partition_of, sort_of};
use super::view::View;
use crate::port::StoreError;

const PARTITIONS_MAX: NonZeroUsize = NonZeroUsize::new(128 * 1_024).expect("not zero");

/// Kept by the one thread that writes, so it is always true.
pub(super) struct Tops(LruCache<Box<[u8]>, u64>);

impl Default for Tops {
    fn default() -> Self {
        Self(LruCache::new(PARTITIONS_MAX))
    }
}

impl Tops {
    /// Whether the key lies beyond the end of its partition. Only rows lie in partitions worth remembering.
    pub(super) fn proves_absent(&mut self, view: &View, space: Space, key: &[u8]) -> Result<bool, StoreError> {
        let (Space::Rows, Some(partition), Some(sort @ 1..)) = (space, partition_of(key), sort_of(key)) else {
            return Ok(false);
        };
        if let Some(top) = self.0.get(partition) {
            return Ok(sort > *top);
        }
        let top = view.top(partition)?.unwrap_or(0);
        self.0.put(partition.into(), top);
        Ok(sort > top)
    }

    pub(super) fn written(&mut self, space: Space, key: &[u8]) {
        if let (Space::Rows, Some(partition), Some(sort)) = (space, partition_of(key), sort_of(key))
            && let Some(top) = self.0.peek_mut(partition)
        {
            *top = sort.max(*top);
        }
    }
}
