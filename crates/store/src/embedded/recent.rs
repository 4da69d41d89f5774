//! Boosts that were read lately, decoded, as the last commit left them: this process alone writes the folder, so it knows.
//!
//! What is found changes nothing, so that lookups share one lock and do not wait for one another. What is used is kept by
//! being carried from the older half of what is remembered to the younger; when that is full, the older half goes.

use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::mem;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use lru::DefaultHasher;
use saltern_core::campaigns::{BoostKey, Look};

use super::options::BOOSTS_REMEMBERED_MAX;
use crate::port::StoreError;

/// Keys share a stamp by chance alone, and then one of them is not remembered where it could be.
const STAMPS: usize = 1024;

type Looks = HashMap<BoostKey, Look, DefaultHasher>;

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
    place: usize,
    stamp: u64,
}

impl Recent {
    pub(super) fn new(looks_max: usize) -> Self {
        let halves = Halves { younger: Looks::default(), older: Looks::default(), stamps: vec![0; STAMPS].into() };
        Self { halves: RwLock::new(halves), half_max: looks_max / 2 }
    }

    /// What is remembered, or else what `read` finds.
    pub(super) fn look(
        &self,
        keys: &[BoostKey],
        read: impl Fn(&BoostKey) -> Result<Look, StoreError>,
    ) -> Result<Vec<Look>, StoreError> {
        let mut missed = Vec::new();
        let mut looks = Vec::with_capacity(keys.len());
        let halves = self.read();
        for (place, key) in keys.iter().enumerate() {
            let look = halves.younger.get(key);
            if look.is_none() {
                missed.push(Missed { place, stamp: halves.stamps[halves.stamp_of(key)] });
            }
            looks.push(look.or_else(|| halves.older.get(key)).cloned());
        }
        drop(halves);
        for Missed { place, .. } in &missed {
            if looks[*place].is_none() {
                looks[*place] = Some(read(&keys[*place])?);
            }
        }
        let looks = looks.into_iter().map(|look| look.unwrap_or(Look::Unread)).collect::<Vec<_>>();
        if !missed.is_empty() {
            self.remember(keys, &looks, &missed);
        }
        Ok(looks)
    }

    fn remember(&self, keys: &[BoostKey], looks: &[Look], missed: &[Missed]) {
        let mut halves = self.write();
        for Missed { place, stamp } in missed {
            let key = &keys[*place];
            if halves.stamps[halves.stamp_of(key)] == *stamp {
                halves.younger.insert(key.clone(), looks[*place].clone());
            }
        }
        if halves.younger.len() >= self.half_max {
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
            let stamp = halves.stamp_of(key);
            halves.stamps[stamp] += 1;
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
    fn stamp_of(&self, key: &BoostKey) -> usize {
        usize::try_from(self.younger.hasher().hash_one(key) % STAMPS as u64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use saltern_core::campaigns::Area;
    use saltern_core::ids::{PartnerId, TenantId};

    use super::*;

    fn key(partner: usize) -> BoostKey {
        let (tenant, partner) = (TenantId::new("de").unwrap(), PartnerId::new(&partner.to_string()).unwrap());
        BoostKey::new(&tenant, &Area::Wildcard, &partner)
    }

    /// How many of the keys are not remembered.
    fn reads(recent: &Recent, keys: &[BoostKey]) -> usize {
        let reads = Cell::new(0);
        let read = |_: &BoostKey| {
            reads.set(reads.get() + 1);
            Ok(Look::Absent)
        };
        assert_eq!(recent.look(keys, read).unwrap(), vec![Look::Absent; keys.len()]);
        reads.get()
    }

    #[test]
    fn what_is_used_stays_and_what_is_not_goes() {
        let recent = Recent::new(20);
        let used: Vec<_> = (0..3).map(key).collect();
        assert_eq!(reads(&recent, &used), 3);
        for i in 10..200 {
            assert_eq!(reads(&recent, &[key(i)]), 1);
            assert_eq!(reads(&recent, &used), 0);
            let halves = recent.read();
            assert!(halves.younger.len() + halves.older.len() <= 20);
        }
        assert_eq!(reads(&recent, &[key(10)]), 1);
    }

    #[test]
    fn what_is_forgotten_is_read_again_from_either_half() {
        let recent = Recent::new(8);
        let keys: Vec<_> = (0..6).map(key).collect();
        for key in &keys {
            assert_eq!(reads(&recent, std::slice::from_ref(key)), 1);
        }
        recent.forget(&[keys[0].clone(), keys[5].clone()]);
        assert_eq!(reads(&recent, &keys), 2);
        assert_eq!(reads(&recent, &keys), 0);
    }

    /// A commit comes between the read and the moment at which it would be remembered.
    #[test]
    fn what_is_overtaken_is_not_remembered() {
        let recent = Recent::new(8);
        let read = |key: &BoostKey| {
            recent.forget(std::slice::from_ref(key));
            Ok(Look::Absent)
        };
        recent.look(&[key(1)], read).unwrap();
        assert_eq!(reads(&recent, &[key(1)]), 1);
        assert_eq!(reads(&recent, &[key(1)]), 0);
    }
}
