//! What the one process that writes remembers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use saltern_core::campaigns::{Boost, BoostKey, Rank};
use saltern_core::key::{Key, PartitionKey};

use super::calendar::DaySlot;

/// One document of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) day_slot: DaySlot,
    pub(super) shard: u32,
}

impl Place {
    /// Day and slot above the shard, so that the shards of one follow one another.
    pub(super) fn sort(self) -> u64 {
        u64::from(self.day_slot.0) << u32::BITS | u64::from(self.shard)
    }

    pub(super) fn key(self, partition: &PartitionKey) -> Key {
        Key { partition: partition.clone(), sort: self.sort() }
    }
}

#[derive(Default)]
pub(super) struct Known(Mutex<Memory>);

#[derive(Default)]
struct Memory {
    partners: HashMap<BoostKey, (Rank, Vec<Place>)>,
    versions: HashMap<Key, u64>,
    open_shards: HashMap<(PartitionKey, DaySlot), u32>,
}

impl Known {
    /// Where the boost that this one replaces is written, if it does replace it.
    pub(super) fn outranked(&self, key: &BoostKey, boost: &Boost) -> Option<Vec<Place>> {
        let (partners, rank) = (&mut self.lock().partners, boost.rank());
        if partners.get(key).is_some_and(|(present, _)| *present >= rank) {
            return None;
        }
        Some(partners.insert(key.clone(), (rank, Vec::new())).map(|(_, places)| places).unwrap_or_default())
    }

    pub(super) fn written(&self, key: &BoostKey, places: Vec<Place>) {
        if let Some((_, present)) = self.lock().partners.get_mut(key) {
            *present = places;
        }
    }

    /// A document that was written with all these partners.
    pub(super) fn imported<'a>(
        &self,
        partition: &PartitionKey,
        place: Place,
        partners: impl Iterator<Item = &'a BoostKey>,
    ) {
        let mut memory = self.lock();
        memory.open_shards.insert((partition.clone(), place.day_slot), place.shard);
        for key in partners {
            if let Some((_, places)) = memory.partners.get_mut(key) {
                places.push(place);
            }
        }
    }

    /// The document that new partners go to.
    pub(super) fn open_shard(&self, partition: &PartitionKey, day_slot: DaySlot) -> Place {
        let shard = self.lock().open_shards.get(&(partition.clone(), day_slot)).copied().unwrap_or(0);
        Place { day_slot, shard }
    }

    pub(super) fn full(&self, partition: &PartitionKey, place: Place) {
        let mut memory = self.lock();
        let open = memory.open_shards.entry((partition.clone(), place.day_slot)).or_default();
        *open = (*open).max(place.shard + 1);
    }

    /// Whether the document still has the version that was read; then it counts as having the next.
    pub(super) fn step(&self, key: &Key, read: u64) -> bool {
        let mut memory = self.lock();
        let version = memory.versions.entry(key.clone()).or_insert(read);
        let holds = *version == read;
        *version += u64::from(holds);
        holds
    }

    /// Whatever became of the write, the next read tells.
    pub(super) fn unsure(&self, key: &Key) {
        self.lock().versions.remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
