//! Lookups: exactly the keys that can hold an answer, in as few calls as possible.

use std::collections::HashSet;

use futures_util::future::join_all;
use saltern_core::campaigns::{Answer, Area, Areas, BoostKey, BoostPartition, Look, MarketModel, decide};
use saltern_core::ids::PartnerId;
use saltern_core::limits::BOOST_BATCH_MAX;
use saltern_store::{Consistency, MarketRecord, StoreError};
use tokio::time::{Instant, timeout_at};

use super::api::{Boosted, Boosts, CampaignError, LookupError, LookupQuery, MarketQuestion};
use super::handle::Inner;

/// Of 50 partners two share a place in one search of fourteen.
const DISTINCT_PLACES: usize = 16 * 1024;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl Inner {
    pub(super) async fn lookup(&self, query: &LookupQuery) -> Result<Boosts, LookupError> {
        let began = Instant::now();
        let _permit = self.lookups.try_acquire().map_err(|_| LookupError::Overloaded)?;
        let deadline = began + self.config.lookup_deadline;
        let market = timeout_at(deadline, self.known_market(&query.tenant)).await;
        let market = market.unwrap_or(Err(StoreError::Throttled))?;
        let Some(market) = market else { return Err(LookupError::UnknownTenant(query.tenant.clone())) };
        let areas = areas(&market, query)?.list();
        let partners = distinct(&query.partners);
        let partitions: Vec<_> = areas.iter().map(|area| BoostPartition::new(&query.tenant, area)).collect();
        let mut keys = Vec::with_capacity(partners.len() * partitions.len());
        for partner in &partners {
            keys.extend(partitions.iter().map(|partition| partition.key(partner)));
        }
        let looks = self.read(&keys, deadline).await?;
        let now = market.market.local_time(query.at.unwrap_or_else(|| self.now()));
        let mut boosts = Boosts { boosts: Vec::with_capacity(partners.len()), unread: Vec::new() };
        for (partner, looks) in partners.into_iter().zip(looks.chunks(areas.len())) {
            match decide(looks, &now) {
                Answer::Boosted(winner) => {
                    let area = areas.get(winner.place).cloned().unwrap_or(Area::Wildcard);
                    boosts.boosts.push(Boosted { partner: partner.clone(), score: winner.score, area });
                }
                Answer::NotBoosted => {}
                Answer::Unread => boosts.unread.push(partner.clone()),
            }
        }
        self.metrics.partners_unread.inc_by(boosts.unread.len() as u64);
        self.metrics.lookup_seconds.observe(began.elapsed().as_secs_f64());
        Ok(boosts)
    }

    /// Asks for all keys at once, and again for those that were left out, until time is up. An answer of which nothing
    /// could be read, because the store is down, is none.
    async fn read(&self, keys: &[BoostKey], deadline: Instant) -> Result<Vec<Look>, CampaignError> {
        let mut round = self.read_round(keys, deadline).await?;
        let mut looks = std::mem::take(&mut round.looks);
        for attempt in 0.. {
            let left: Vec<_> = (0..looks.len()).filter(|i| looks[*i] == Look::Unread).collect();
            if left.is_empty() || !self.pause(attempt, deadline).await {
                break;
            }
            self.metrics.store_retries.inc();
            let again: Vec<_> = left.iter().map(|i| keys[*i].clone()).collect();
            round = self.read_round(&again, deadline).await?;
            for (i, look) in left.into_iter().zip(std::mem::take(&mut round.looks)) {
                looks[i] = look;
            }
        }
        match round.down {
            Some(error) if looks.iter().all(|look| *look == Look::Unread) => Err(CampaignError::Unavailable(error)),
            _ => Ok(looks),
        }
    }

    async fn read_round(&self, keys: &[BoostKey], deadline: Instant) -> Result<Round, CampaignError> {
        self.metrics.lookup_keys.inc_by(keys.len() as u64);
        self.metrics.lookup_calls.inc_by(keys.len().div_ceil(BOOST_BATCH_MAX) as u64);
        let batch = |keys| timeout_at(deadline, self.store.boosts(keys, Consistency::Eventual));
        let batches = join_all(keys.chunks(BOOST_BATCH_MAX).map(batch)).await;
        let mut round = Round { looks: Vec::with_capacity(keys.len()), down: None };
        for (batch, keys) in batches.into_iter().zip(keys.chunks(BOOST_BATCH_MAX)) {
            match batch {
                Ok(Ok(looks)) => {
                    round.looks.extend(looks);
                    continue;
                }
                Ok(Err(error @ StoreError::Damaged(_))) => return Err(error.into()),
                Ok(Err(StoreError::Throttled)) => drop(self.metrics.store_throttles.inc()),
                Ok(Err(error)) => round.down = Some(error),
                Err(_) => {}
            }
            round.looks.extend(std::iter::repeat_n(Look::Unread, keys.len()));
        }
        Ok(round)
    }
}

/// What one attempt brought.
struct Round {
    looks: Vec<Look>,
    /// The store could not serve at all, for some of the keys.
    down: Option<StoreError>,
}

fn areas(record: &MarketRecord, query: &LookupQuery) -> Result<Areas, MarketQuestion> {
    match (record.market.model(), &query.district) {
        (MarketModel::Wildcard, _) => Ok(Areas::Wildcard),
        (MarketModel::Zoned, Some(district)) => Ok(Areas::Zoned(district.clone())),
        (MarketModel::Zoned, None) => Err(MarketQuestion::NoDistrict),
    }
}

/// Whether it is plain that no partner is named twice, as in nearly every search: copies would share a place. So may others,
/// by chance.
fn are_distinct(partners: &[PartnerId]) -> bool {
    let mut taken = [0_u64; DISTINCT_PLACES / 64];
    partners.iter().all(|partner| {
        let hash = partner.as_str().bytes().fold(0_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
        let place = usize::try_from(hash % DISTINCT_PLACES as u64).unwrap_or(0);
        let (word, bit) = (&mut taken[place / 64], 1 << (place % 64));
        let is_free = *word & bit == 0;
        *word |= bit;
        is_free
    })
}

/// In the order in which they are first named.
fn distinct(partners: &[PartnerId]) -> Vec<&PartnerId> {
    if are_distinct(partners) {
        return partners.iter().collect();
    }
    let mut seen = HashSet::with_capacity_and_hasher(partners.len(), lru::DefaultHasher::default());
    partners.iter().filter(|partner| seen.insert(*partner)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few and many, with and without copies; of many, some share a place though they are different.
    #[test]
    fn copies_are_asked_about_once_and_all_others_are_asked_about() {
        for count in [1_usize, 2, 50, 1_000] {
            let all: Vec<_> = (0..count).map(|i| PartnerId::new(&format!("partner {i}")).unwrap()).collect();
            assert_eq!(distinct(&all), all.iter().collect::<Vec<_>>());
            let copied: Vec<_> = all.iter().chain(&all).chain(&all[..1]).cloned().collect();
            assert_eq!(distinct(&copied), all.iter().collect::<Vec<_>>());
        }
    }
}
