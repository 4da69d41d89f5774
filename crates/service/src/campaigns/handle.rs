use std::fmt;
use std::sync::Arc;

use saltern_core::campaigns::{LetterNo, Market, Moment};
use saltern_core::ids::TenantId;
use saltern_store::CampaignStore;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::api::{
    Applied, Boosts, CampaignError, Config, DeadLetterFilter, DeadLetters, LookupError, LookupQuery, Replayed,
};
use super::markets::Markets;
use super::metrics::CampaignMetrics;
use crate::backoff::Jitter;

/// A cheap handle on the campaign service.
///
/// Nothing that it does outlives its caller: every write may be repeated, so one that is cut off does no harm.
#[derive(Clone)]
pub struct Campaigns {
    inner: Arc<Inner>,
}

impl fmt::Debug for Campaigns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Campaigns").finish_non_exhaustive()
    }
}

pub(super) struct Inner {
    pub(super) store: Arc<dyn CampaignStore>,
    pub(super) config: Config,
    pub(super) metrics: CampaignMetrics,
    pub(super) markets: Markets,
    pub(super) jitter: Jitter,
    pub(super) puts: Semaphore,
    pub(super) lookups: Semaphore,
    pub(super) stop: CancellationToken,
}

impl Inner {
    pub(super) fn now(&self) -> Moment {
        let ms = i64::try_from((self.config.wall_clock)()).unwrap_or(i64::MAX);
        // A clock beyond the year 9999 shows nothing worth knowing.
        Moment::from_ms(ms).unwrap_or(Moment::EPOCH)
    }

    pub(super) fn put_deadline(&self) -> Instant {
        Instant::now() + self.config.put_deadline
    }
}

impl Campaigns {
    #[must_use]
    pub fn new(store: Arc<dyn CampaignStore>, config: Config) -> Self {
        let inner = Inner {
            store,
            metrics: CampaignMetrics::default(),
            markets: Markets::new(config.markets_max),
            jitter: Jitter::new(config.jitter_seed),
            puts: Semaphore::new(config.puts_max),
            lookups: Semaphore::new(config.lookups_max),
            stop: CancellationToken::new(),
            config,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes up events, each as the JSON that it came as. Order and repetition make no difference to what they end in
    /// (I8). One that is malformed becomes a dead letter and stands in nobody's way.
    pub async fn apply<E: AsRef<[u8]> + Sync>(&self, events: &[E]) -> Result<Applied, CampaignError> {
        self.inner.apply(events).await
    }

    /// Makes a dead letter of what is no event for a reason that the caller knows.
    pub async fn reject(&self, event: &[u8], reason: &str) -> Result<(), CampaignError> {
        Ok(self.inner.shelve(event, reason).await?)
    }

    /// Which of the partners are boosted in the area, now or at the time asked for.
    pub async fn lookup(&self, query: LookupQuery) -> Result<Boosts, LookupError> {
        self.inner.lookup(query).await
    }

    /// Sets a tenant's market, whatever it was before.
    pub async fn put_market(&self, tenant: &TenantId, market: &Market) -> Result<(), CampaignError> {
        self.inner.put_market(tenant, market).await
    }

    /// A tenant's market as it is in the store.
    pub async fn market(&self, tenant: &TenantId) -> Result<Option<Market>, CampaignError> {
        let record = self.inner.read_market(tenant).await?;
        Ok(record.map(|record| record.market.clone()))
    }

    /// Rejected events, newest first, from the one after this letter on. A page may be shorter than its limit: where it
    /// ends, `next_after` says.
    pub async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        after: Option<LetterNo>,
        limit: usize,
    ) -> Result<DeadLetters, CampaignError> {
        self.inner.dead_letters(filter, after, limit).await
    }

    /// Applies rejected events once more, in the order of the list. Those that are taken now are dead letters no longer; the
    /// others stay, and stand in nobody's way: the next call goes on after them.
    pub async fn replay(
        &self,
        filter: &DeadLetterFilter,
        after: Option<LetterNo>,
        limit: usize,
    ) -> Result<Replayed, CampaignError> {
        self.inner.replay(filter, after, limit).await
    }

    /// The same with these alone.
    pub async fn replay_these(&self, numbers: &[LetterNo]) -> Result<Replayed, CampaignError> {
        self.inner.replay_these(numbers).await
    }

    #[must_use]
    pub fn metrics(&self) -> &CampaignMetrics {
        &self.inner.metrics
    }

    /// Gives up on retries: what is under way ends with the store's next answer.
    pub fn abort(&self) {
        self.inner.stop.cancel();
    }
}
