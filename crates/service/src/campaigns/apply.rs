//! Events in: one conditional put for each area, in any order.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use saltern_core::campaigns::{Boost, BoostKey, DeadLetter, Event, Market};
use saltern_core::ids::TenantId;
use saltern_store::{BoostPut, StoreError};
use tokio::time::Instant;

use super::api::{Applied, CampaignError, Rejected};
use super::handle::Inner;
use super::json;
use super::metrics::EventResult;

/// Events of one call under way at once.
const EVENTS_AT_ONCE: usize = 256;
/// Areas of one event under way at once.
const AREAS_AT_ONCE: usize = 64;

/// What became of one event.
pub(super) enum Outcome {
    Applied,
    Stale,
    Rejected(String),
}

impl Inner {
    pub(super) async fn apply<E: AsRef<[u8]> + Sync>(&self, events: &[E]) -> Result<Applied, CampaignError> {
        let events: Vec<&[u8]> = events.iter().map(AsRef::as_ref).collect();
        let one = async |index: usize| Ok::<_, StoreError>((index, self.apply_or_shelve(events[index]).await?));
        let mut outcomes = stream::iter(0..events.len()).map(one).buffer_unordered(EVENTS_AT_ONCE);
        let mut done = Applied::default();
        while let Some((index, outcome)) = outcomes.try_next().await? {
            done.count(index, outcome);
        }
        done.rejected.sort_unstable_by_key(|rejected| rejected.index);
        Ok(done)
    }

    async fn apply_or_shelve(&self, event: &[u8]) -> Result<Outcome, StoreError> {
        let outcome = self.apply_one(event).await?;
        match &outcome {
            Outcome::Applied => self.metrics.count_event(EventResult::Applied),
            Outcome::Stale => self.metrics.count_event(EventResult::Stale),
            Outcome::Rejected(reason) => self.shelve(event, reason).await?,
        }
        Ok(outcome)
    }

    /// A repeated attempt may leave two letters. One too many is better than none.
    pub(super) async fn shelve(&self, event: &[u8], reason: &str) -> Result<(), StoreError> {
        let letter = DeadLetter::new(self.now(), reason.to_owned(), event);
        self.settle(self.put_deadline(), || self.store.add_dead_letter(&letter)).await?;
        self.metrics.count_event(EventResult::Rejected);
        Ok(())
    }

    /// Never rejects for what the store could not do.
    pub(super) async fn apply_one(&self, event: &[u8]) -> Result<Outcome, StoreError> {
        match self.check_event(event).await? {
            Ok(event) => self.put_boosts(&event).await,
            Err(reason) => Ok(Outcome::Rejected(reason)),
        }
    }

    async fn check_event(&self, event: &[u8]) -> Result<Result<Event, String>, StoreError> {
        let began = Instant::now();
        let raw = match json::parse(event) {
            Ok(raw) => raw,
            Err(reason) => return Ok(Err(reason)),
        };
        let tenant = match TenantId::new(&raw.tenant) {
            Ok(tenant) => tenant,
            Err(error) => return Ok(Err(format!("tenant {error}"))),
        };
        let check = |market: &Market| Event::new(&raw, market, self.now());
        if let Some(record) = self.known_market(&tenant).await?
            && let Ok(event) = check(&record.market)
        {
            return Ok(Ok(event));
        }
        // The market may have changed on another server: nothing is rejected by an old one.
        Ok(match self.market_since(&tenant, began).await? {
            None => Err(format!("tenant {tenant:?} is not known")),
            Some(record) => check(&record.market).map_err(|rejection| rejection.to_string()),
        })
    }

    async fn put_boosts(&self, event: &Event) -> Result<Outcome, StoreError> {
        let put = |(key, boost)| async move { self.put_boost(&key, &boost).await };
        let mut puts = stream::iter(event.boosts()).map(put).buffer_unordered(AREAS_AT_ONCE);
        let mut outcome = Outcome::Stale;
        while let Some(put) = puts.try_next().await? {
            if put == BoostPut::Applied {
                outcome = Outcome::Applied;
            }
        }
        Ok(outcome)
    }

    async fn put_boost(&self, key: &BoostKey, boost: &Boost) -> Result<BoostPut, StoreError> {
        // Nobody closes the semaphore.
        let _permit = self.puts.acquire().await.ok();
        self.metrics.puts.inc();
        self.settle(self.put_deadline(), || self.store.put_boost(key, boost)).await
    }
}

impl Applied {
    pub(super) fn count(&mut self, index: usize, outcome: Outcome) {
        match outcome {
            Outcome::Applied => self.applied += 1,
            Outcome::Stale => self.stale += 1,
            Outcome::Rejected(reason) => self.rejected.push(Rejected { index, reason }),
        }
    }
}
