//! Markets, remembered for a while.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use saltern_core::campaigns::Market;
use saltern_core::ids::TenantId;
use saltern_store::{MarketPut, MarketRecord, StoreError};
use tokio::time::Instant;

use super::api::CampaignError;
use super::handle::Inner;

struct Remembered {
    record: Arc<MarketRecord>,
    /// When it was asked for: it is at least as new as that.
    as_of: Instant,
}

/// Bounded, and never wrong for longer than the staleness that the settings name. What is absent is not remembered.
pub(super) struct Markets(Mutex<LruCache<TenantId, Remembered>>);

impl Markets {
    pub(super) fn new(max: usize) -> Self {
        Self(Mutex::new(LruCache::new(NonZeroUsize::new(max).unwrap_or(NonZeroUsize::MIN))))
    }

    fn lock(&self) -> MutexGuard<'_, LruCache<TenantId, Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, tenant: &TenantId, not_before: Instant) -> Option<Arc<MarketRecord>> {
        let mut markets = self.lock();
        let remembered = markets.get(tenant).filter(|remembered| remembered.as_of >= not_before);
        remembered.map(|remembered| Arc::clone(&remembered.record))
    }

    fn learn(&self, tenant: &TenantId, record: Option<MarketRecord>, as_of: Instant) -> Option<Arc<MarketRecord>> {
        let record = record.map(Arc::new);
        let mut markets = self.lock();
        match &record {
            None => drop(markets.pop(tenant)),
            // A slow answer does not replace a newer one.
            Some(record) if markets.peek(tenant).is_none_or(|known| known.record.revision <= record.revision) => {
                markets.put(tenant.clone(), Remembered { record: Arc::clone(record), as_of });
            }
            Some(_) => {}
        }
        record
    }
}

impl Inner {
    /// The market, at the most so stale as the settings allow.
    pub(super) async fn known_market(&self, tenant: &TenantId) -> Result<Option<Arc<MarketRecord>>, StoreError> {
        let oldest = Instant::now().checked_sub(self.config.market_staleness);
        match oldest.and_then(|oldest| self.markets.get(tenant, oldest)) {
            Some(record) => Ok(Some(record)),
            None => self.read_market(tenant).await,
        }
    }

    /// The market as it was at this time or later.
    pub(super) async fn market_since(
        &self,
        tenant: &TenantId,
        then: Instant,
    ) -> Result<Option<Arc<MarketRecord>>, StoreError> {
        match self.markets.get(tenant, then) {
            Some(record) => Ok(Some(record)),
            None => self.read_market(tenant).await,
        }
    }

    pub(super) async fn read_market(&self, tenant: &TenantId) -> Result<Option<Arc<MarketRecord>>, StoreError> {
        self.metrics.markets_read.inc();
        let as_of = Instant::now();
        let record = self.settle(self.put_deadline(), || self.store.market(tenant)).await?;
        Ok(self.markets.learn(tenant, record, as_of))
    }

    pub(super) async fn put_market(&self, tenant: &TenantId, market: &Market) -> Result<(), CampaignError> {
        let deadline = self.put_deadline();
        for attempt in 0.. {
            let present = self.read_market(tenant).await?;
            // So also if an earlier attempt has happened after all.
            if present.as_ref().is_some_and(|present| present.market == *market) {
                return Ok(());
            }
            let record = MarketRecord { market: market.clone(), revision: present.map_or(0, |p| p.revision) + 1 };
            let as_of = Instant::now();
            let failed = match self.store.put_market(tenant, &record).await {
                Ok(MarketPut::Applied) => {
                    self.markets.learn(tenant, Some(record), as_of);
                    return Ok(());
                }
                Ok(MarketPut::Conflict) => None,
                Err(error @ StoreError::Damaged(_)) => return Err(error.into()),
                Err(error) => Some(error),
            };
            if !self.pause(attempt, deadline).await {
                return Err(CampaignError::Unavailable(failed.unwrap_or(StoreError::Throttled)));
            }
        }
        Err(CampaignError::Unavailable(StoreError::Throttled))
    }
}
