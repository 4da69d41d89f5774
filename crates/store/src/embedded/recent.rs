//! Boosts that were read lately, decoded, as the last commit left them: this process alone writes the folder, so it knows.
//!
//! What is found changes nothing, so that lookups share one lock and do not wait for one another. What is used is kept by
//! being carried from the older half of what is remembered to the younger; when that is full, the older half goes.

use std::collections::HashMap;
use std::mem;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use lru::DefaultHasher;
use saltern_core::campaigns::{BoostKey, BoostPartition, Look, boost_sort};
use saltern_core::ids::PartnerId;
use smol_str::SmolStr;
use xxhash_rust::xxh3::xxh3_64;

use super::options::BOOSTS_REMEMBERED_MAX;
use crate::port::StoreError;

/// Keys share a stamp by chance alone, and then one of them is not remembered where it could be.
const STAMPS: usize = 1024;

type Partition = HashMap<SmolStr, Look, DefaultHasher>;

/// By the halves of their keys, since lookups ask for many in one partition.
#[derive(Default)]
struct Looks {
    partitions: HashMap<SmolStr, Partition, DefaultHasher>,
    len: usize,
}

impl Looks {
    fn get(&self, key: &BoostKey) -> Option<&Look> {
        self.partitions.get(key.partition())?.get(key.sort())
    }

    fn insert(&mut self, key: &BoostKey, look: Look) {
        let partition = self.partitions.entry(key.partition().into()).or_default();
        self.len += usize::from(partition.insert(key.sort().into(), look).is_none());
    }

    fn remove(&mut self, key: &BoostKey) {
        let Some(partition) = self.partitions.get_mut(key.partition()) else { return };
        self.len -= usize::from(partition.remove(key.sort()).is_some());
        if partition.is_empty() {
            self.partitions.remove(key.partition());
        }
    }
}

pub(super) struct Recent {
    halves: RwLock<Halves>,
    half_max: usize,
}

struct Halves {
    younger: Looks,
    older: Looks,
    /// How often keys with this hash were forgotten: what was read before that must not be remembered after it.
    stamps: Box<[u64]>,
}

impl Default for Recent {
    fn default() -> Self {
        Self::new(BOOSTS_REMEMBERED_MAX)
    }
}

/// A key that is not in the younger half.
struct Missed {
    key: BoostKey,
    place: usize,
    stamp: u64,
    look: Option<Look>,
}

impl Recent {
    pub(super) fn new(looks_max: usize) -> Self {
        let halves = Halves { younger: Looks::default(), older: Looks::default(), stamps: vec![0; STAMPS].into() };
        Self { halves: RwLock::new(halves), half_max: looks_max / 2 }
    }

    /// What `judge` makes of what is remembered of partners, or else of what `read` finds: partner by partner, and for each
    /// in the order of the partitions.
    pub(super) fn look<T>(
        &self,
        partitions: &[BoostPartition],
        partners: &[PartnerId],
        judge: impl Fn(&Look) -> T,
        read: impl Fn(&BoostKey) -> Result<Look, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut judged = Vec::with_capacity(partitions.len() * partners.len());
        let mut missed = Vec::new();
        let halves = self.read();
        let known: Vec<_> =
            partitions.iter().map(|partition| halves.younger.partitions.get(partition.as_str())).collect();
        for partner in partners {
            let sort = boost_sort(partner);
            for (known, partition) in known.iter().zip(partitions) {
                if let Some(look) = known.and_then(|known| known.get(&*sort)) {
                    judged.push(judge(look));
                } else {
                    missed.push(halves.missed(partition.key(partner), judged.len()));
                    // Keeps its place until it is known.
                    judged.push(judge(&Look::Unread));
                }
            }
        }
        drop(halves);
        for Missed { key, place, look, .. } in &mut missed {
            let look = match look {
                Some(look) => look,
                None => look.insert(read(key)?),
            };
            judged[*place] = judge(look);
        }
        if !missed.is_empty() {
            self.remember(missed);
        }
        Ok(judged)
    }

    fn remember(&self, missed: Vec<Missed>) {
        let mut halves = self.write();
        for Missed { key, stamp, look, .. } in missed {
            if halves.stamps[stamp_of(&key)] == stamp
                && let Some(look) = look
            {
                halves.younger.insert(&key, look);
            }
        }
        if halves.younger.len >= self.half_max {
            halves.older = mem::take(&mut halves.younger);
        }
    }

    /// To be told of every row that a commit has made visible, before its writer is answered.
    pub(super) fn forget(&self, keys: &[BoostKey]) {
        if keys.is_empty() {
            return;
        }
        let mut halves = self.write();
        for key in keys {
            halves.younger.remove(key);
            halves.older.remove(key);
            halves.stamps[stamp_of(key)] += 1;
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Halves> {
        // No code panics while it holds the lock.
        self.halves.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Halves> {
        self.halves.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Halves {
    fn missed(&self, key: BoostKey, place: usize) -> Missed {
        Missed { stamp: self.stamps[stamp_of(&key)], look: self.older.get(&key).cloned(), key, place }
    }
}

fn stamp_of(key: &BoostKey) -> usize {
    usize::try_from(xxh3_64(key.sort().as_bytes()) % STAMPS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use saltern_core::campaigns::Area;
    use saltern_core::ids::TenantId;

    use super::*;

    fn partner(i: usize) -> PartnerId {
        PartnerId::new(&i.to_string()).unwrap()
    }

    /// Of a district and of all.
    fn partitions() -> [BoostPartition; 2] {
        ["a", "*"].map(|area| BoostPartition::new(&TenantId::new("de").unwrap(), &Area::new(area).unwrap()))
    }

    /// How many of the partners' boosts are not remembered.
    fn reads(recent: &Recent, partners: &[PartnerId]) -> usize {
        let reads = Cell::new(0);
        let read = |_: &BoostKey| {
            reads.set(reads.get() + 1);
            Ok(Look::Absent)
        };
        let looks = recent.look(&partitions(), partners, Look::clone, read).unwrap();
        assert_eq!(looks, vec![Look::Absent; 2 * partners.len()]);
        reads.get()
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let recent = Recent::new(40);
        let used: Vec<_> = (0..3).map(partner).collect();
        assert_eq!(reads(&recent, &used), 6);
        for i in 10..200 {
            assert_eq!(reads(&recent, &[partner(i)]), 2);
            assert_eq!(reads(&recent, &used), 0);
            let halves = recent.read();
            assert!(halves.younger.len + halves.older.len <= 40);
        }
        assert_eq!(reads(&recent, &[partner(10)]), 2);
    }

    #[test]
    fn what_is_forgotten_is_read_again_from_either_half() {
        let recent = Recent::new(16);
        let partners: Vec<_> = (0..6).map(partner).collect();
        for partner in &partners {
            assert_eq!(reads(&recent, std::slice::from_ref(partner)), 2);
        }
        let [district, everywhere] = partitions();
        recent.forget(&[district.key(&partners[0]), everywhere.key(&partners[5]), district.key(&partner(7))]);
        assert_eq!(reads(&recent, &partners), 2);
        assert_eq!(reads(&recent, &partners), 0);
    }

    /// Those that are remembered and those that are not, each in its place.
    #[test]
    fn what_is_found_stands_where_it_was_asked_for() {
        let recent = Recent::new(1_000);
        let read = |key: &BoostKey| Ok(if key.sort().ends_with('1') { Look::Unread } else { Look::Absent });
        recent.look(&partitions()[1..], &[partner(1), partner(12)], Look::clone, read).unwrap();
        let partners = [2, 1, 11, 12].map(partner);
        let looks = recent.look(&partitions(), &partners, Look::clone, read).unwrap();
        let expected = [Look::Absent, Look::Unread, Look::Unread, Look::Absent].map(|look| [look.clone(), look]);
        assert_eq!(looks, expected.concat());
    }

    /// A commit comes between the read and the moment at which it would be remembered.
    #[test]
    fn what_is_overtaken_is_not_remembered() {
        let recent = Recent::new(8);
        let read = |key: &BoostKey| {
            recent.forget(std::slice::from_ref(key));
            Ok(Look::Absent)
        };
        recent.look(&partitions(), &[partner(1)], Look::clone, read).unwrap();
        assert_eq!(reads(&recent, &[partner(1)]), 2);
        assert_eq!(reads(&recent, &[partner(1)]), 0);
    }
}
