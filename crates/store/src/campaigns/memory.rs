//! Campaigns in memory: the contract in its plainest form.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use saltern_core::campaigns::{Boost, BoostKey, DeadLetter, LetterNo, Look};
use saltern_core::ids::TenantId;
use saltern_core::limits::DEAD_LETTERS_MAX;

use super::port::{BoostPut, CampaignStore, DeadLetterPage, MarketPut, MarketRecord};
use crate::misuse::batch_fits;
use crate::port::{Consistency, StoreError};

#[derive(Debug, Default)]
struct Tables {
    boosts: BTreeMap<BoostKey, Boost>,
    markets: HashMap<TenantId, MarketRecord>,
    letters: BTreeMap<LetterNo, DeadLetter>,
    letters_ever: u64,
}

/// Clones share their rows, as several servers share a table.
#[derive(Debug, Clone)]
pub struct MemoryCampaigns {
    tables: Arc<Mutex<Tables>>,
    dead_letters_max: u64,
}

impl Default for MemoryCampaigns {
    fn default() -> Self {
        Self::keeping(DEAD_LETTERS_MAX)
    }
}

impl MemoryCampaigns {
    /// With a shelf for this many dead letters.
    #[must_use]
    pub fn keeping(dead_letters_max: u64) -> Self {
        Self { tables: Arc::default(), dead_letters_max }
    }

    /// All boosts there are, in the order of their keys.
    #[must_use]
    pub fn rows(&self) -> Vec<(BoostKey, Boost)> {
        self.lock().boosts.iter().map(|(key, boost)| (key.clone(), boost.clone())).collect()
    }

    /// No code panics while it holds the lock, so a poisoned one still guards whole rows.
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl CampaignStore for MemoryCampaigns {
    async fn put_boost(&self, key: &BoostKey, boost: &Boost) -> Result<BoostPut, StoreError> {
        let boosts = &mut self.lock().boosts;
        if boosts.get(key).is_some_and(|present| present.rank() >= boost.rank()) {
            return Ok(BoostPut::Stale);
        }
        boosts.insert(key.clone(), boost.clone());
        Ok(BoostPut::Applied)
    }

    async fn boosts(&self, keys: &[BoostKey], _: Consistency) -> Result<Vec<Look>, StoreError> {
        batch_fits(keys.len())?;
        let boosts = &self.lock().boosts;
        let look = |key| boosts.get(key).map_or(Look::Absent, |boost| Look::Found(boost.clone().into()));
        Ok(keys.iter().map(look).collect())
    }

    async fn put_market(&self, tenant: &TenantId, record: &MarketRecord) -> Result<MarketPut, StoreError> {
        let markets = &mut self.lock().markets;
        if markets.get(tenant).map_or(0, |present| present.revision) + 1 != record.revision {
            return Ok(MarketPut::Conflict);
        }
        markets.insert(tenant.clone(), record.clone());
        Ok(MarketPut::Applied)
    }

    async fn market(&self, tenant: &TenantId) -> Result<Option<MarketRecord>, StoreError> {
        Ok(self.lock().markets.get(tenant).cloned())
    }

    async fn add_dead_letter(&self, letter: &DeadLetter) -> Result<(), StoreError> {
        let mut tables = self.lock();
        tables.letters_ever += 1;
        let number = tables.letters_ever;
        tables.letters.insert(LetterNo(number), letter.clone());
        if let Some(oldest) = number.checked_sub(self.dead_letters_max) {
            tables.letters.remove(&LetterNo(oldest));
        }
        Ok(())
    }

    async fn dead_letters(
        &self,
        before: Option<LetterNo>,
        limit: usize,
    ) -> Result<Vec<(LetterNo, DeadLetter)>, StoreError> {
        let mut page = DeadLetterPage::new(limit);
        for (number, letter) in self.lock().letters.range(..before.unwrap_or(LetterNo(u64::MAX))).rev() {
            if page.room() == 0 {
                break;
            }
            page.push(*number, letter.clone());
        }
        Ok(page.finish())
    }

    async fn dead_letter(&self, number: LetterNo) -> Result<Option<DeadLetter>, StoreError> {
        Ok(self.lock().letters.get(&number).cloned())
    }

    async fn remove_dead_letter(&self, number: LetterNo) -> Result<(), StoreError> {
        self.lock().letters.remove(&number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaigns::conformance;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn keeps_the_contract() {
        conformance::all(Arc::new(MemoryCampaigns::default())).await;
        conformance::dead_letters_are_bounded(&MemoryCampaigns::keeping(10), 10).await;
    }
}
