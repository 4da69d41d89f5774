//! Which claims may be in the engine's tables.
//!
//! Nearly every claim that is looked for is new. The engine has a filter for each table, and would ask a dozen of them. This is one
//! for all tables: it says "no" after a look or two into memory. Where it says "perhaps", the engine is asked.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// Blocks of each stage: 1, 8 and 64 MiB. A stage is made when those before it are full, so that few claims take little memory.
/// The last is filled on and on, and says "perhaps" ever more often.
const STAGES: [usize; 3] = [16 * 1_024, 128 * 1_024, 1_024 * 1_024];
/// With 16 bits for each of its claims, a full stage says "perhaps" to about one new claim in five hundred.
const CLAIMS_PER_BLOCK: usize = 32;

/// A cache line. A claim sets a bit in each of its words.
#[derive(Default)]
#[repr(align(64))]
struct Block([AtomicU64; 8]);

/// Claims are told by their hashes.
#[derive(Default)]
pub(super) struct Filter {
    stages: [OnceLock<Box<[Block]>>; STAGES.len()],
    claims: AtomicUsize,
    is_complete: AtomicBool,
}

impl Filter {
    /// With more, it would say "perhaps" to half of what is new.
    pub(super) const CLAIMS_MAX: usize = 160_000_000;

    /// One that is told of again, as few are, takes room again.
    pub(super) fn insert(&self, hash: u64) {
        let mut before = self.claims.fetch_add(1, Relaxed);
        let mut stage = 0;
        while stage < STAGES.len() - 1 && before >= STAGES[stage] * CLAIMS_PER_BLOCK {
            before -= STAGES[stage] * CLAIMS_PER_BLOCK;
            stage += 1;
        }
        let blocks = self.stages[stage].get_or_init(|| (0..STAGES[stage]).map(|_| Block::default()).collect());
        for (word, bit) in words(blocks, hash) {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// From now on, what has not been inserted is not there.
    pub(super) fn complete(&self) {
        self.is_complete.store(true, Release);
    }

    /// Whether the claim has surely not been inserted, and all that are there have been.
    pub(super) fn excludes(&self, hash: u64) -> bool {
        self.is_complete.load(Acquire) && !self.may_have(hash)
    }

    fn may_have(&self, hash: u64) -> bool {
        let mut stages = self.stages.iter().filter_map(OnceLock::get);
        stages.any(|blocks| words(blocks, hash).all(|(word, bit)| word.load(Relaxed) & bit != 0))
    }
}

/// The upper bits of a hash tell the block, the lower ones the bit of each word.
fn words(blocks: &[Block], hash: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
    let block = ((hash >> 32) * blocks.len() as u64) >> 32;
    let words = &blocks[usize::try_from(block).unwrap_or_default()].0;
    words.iter().enumerate().map(move |(nth, word)| (word, 1 << ((hash >> (6 * nth)) & 63)))
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use hashbrown::DefaultHashBuilder;

    use super::*;

    #[test]
    fn excludes_nothing_until_complete() {
        let filter = Filter::default();
        assert!(!filter.excludes(7));
        filter.complete();
        assert!(filter.excludes(7));
        filter.insert(7);
        assert!(!filter.excludes(7));
    }

    /// Through all stages, with the hashes that claims have.
    #[test]
    fn never_excludes_what_is_there_and_most_of_what_is_not() {
        const THERE: usize = (STAGES[0] + STAGES[1]) * CLAIMS_PER_BLOCK + 100_000;
        const LOOKS: usize = 100_000;
        let hasher = DefaultHashBuilder::default();
        let hash = |nth: usize| hasher.hash_one(format!("c{}#id#m{nth}", nth % 1_000).as_bytes());
        let filter = Filter::default();
        filter.complete();
        (0..THERE).for_each(|nth| filter.insert(hash(nth)));
        assert!(filter.stages.iter().all(|stage| stage.get().is_some()));
        assert!((0..THERE).all(|nth| !filter.excludes(hash(nth))));
        let perhaps = (THERE..THERE + LOOKS).filter(|nth| !filter.excludes(hash(*nth))).count();
        // Of two full stages and one that is nearly empty.
        assert!(perhaps < LOOKS / 100, "{perhaps}");
    }

    /// What two threads insert at the same time is there for a third one.
    #[test]
    fn is_filled_by_several_threads() {
        let (filter, hasher) = (Filter::default(), DefaultHashBuilder::default());
        filter.complete();
        std::thread::scope(|scope| {
            for thread in 0..2_u64 {
                let (filter, hasher) = (&filter, &hasher);
                scope.spawn(move || (0..500_000_u64).for_each(|nth| filter.insert(hasher.hash_one(2 * nth + thread))));
            }
        });
        assert!((0..1_000_000_u64).all(|n| !filter.excludes(hasher.hash_one(n))));
    }
}
