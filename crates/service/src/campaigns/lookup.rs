//! Lookups: exactly the keys that can hold an answer, in as few calls as possible.

use std::collections::HashSet;

use futures_util::future::join_all;
use saltern_core::campaigns::{Areas, BoostPartition, DistrictId, LocalTime, MarketModel, Standing};
use saltern_core::ids::PartnerId;
use saltern_core::limits::BOOST_BATCH_MAX;
use saltern_store::{Consistency, MarketRecord, StoreError};
use tokio::time::Instant;

use super::api::{Boosts, CampaignError, LookupError, LookupQuery, MarketQuestion};
use super::handle::Inner;
use crate::deadline::by;

/// Of 50 partners two share a place in one search of fourteen.
const DISTINCT_PLACES: usize = 16 * 1024;
/// Bits without a pattern.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Inner {
    pub(super) async fn lookup(&self, query: LookupQuery) -> Result<Boosts, LookupError> {
        let began = Instant::now();
        let _permit = self.lookups.try_acquire().map_err(|_| LookupError::Overloaded)?;
        let deadline = began + self.config.lookup_deadline;
        let market = by(deadline, self.known_market(&query.tenant)).await;
        let market = market.unwrap_or(Err(StoreError::Throttled))?;
        let Some(market) = market else { return Err(LookupError::UnknownTenant(query.tenant)) };
        let areas = areas(&market, query.district)?.list();
        let partners = distinct(query.partners);
        let partitions: Vec<_> = areas.iter().map(|area| BoostPartition::new(&query.tenant, area)).collect();
        let now = market.market.local_time(query.at.unwrap_or_else(|| self.now()));
        let standings = self.read(&partitions, &partners, &now, deadline).await?;
        let boosts = Boosts { partners, areas, standings };
        self.metrics.partners_unread.inc_by(boosts.unread().count() as u64);
        self.metrics.lookup_seconds.observe(began.elapsed().as_secs_f64());
        Ok(boosts)
    }

    /// Asks about all partners at once, and again about those with a row that was left out, until time is up. An answer of
    /// which nothing could be read, because the store is down, is none.
    async fn read(
        &self,
        partitions: &[BoostPartition],
        partners: &[PartnerId],
        now: &LocalTime<'_>,
        deadline: Instant,
    ) -> Result<Vec<Standing>, CampaignError> {
        let areas = partitions.len();
        let mut round = self.read_round(partitions, partners, now, deadline).await?;
        let mut standings = std::mem::take(&mut round.standings);
        for attempt in 0.. {
            let is_left = |i: &usize| standings[i * areas..][..areas].contains(&Standing::Unread);
            let left: Vec<_> = (0..partners.len()).filter(is_left).collect();
            if left.is_empty() || !self.pause(attempt, deadline).await {
                break;
            }
            self.metrics.store_retries.inc();
            let again: Vec<_> = left.iter().map(|i| partners[*i].clone()).collect();
            round = self.read_round(partitions, &again, now, deadline).await?;
            for (i, found) in left.into_iter().zip(round.standings.chunks(areas)) {
                for (standing, found) in standings[i * areas..][..areas].iter_mut().zip(found) {
                    // What was read once stays read.
                    if *standing == Standing::Unread {
                        *standing = *found;
                    }
                }
            }
        }
        match round.down {
            Some(error) if standings.iter().all(|standing| *standing == Standing::Unread) => {
                Err(CampaignError::Unavailable(error))
            }
            _ => Ok(standings),
        }
    }

    async fn read_round(
        &self,
        partitions: &[BoostPartition],
        partners: &[PartnerId],
        now: &LocalTime<'_>,
        deadline: Instant,
    ) -> Result<Round, CampaignError> {
        let batches = partners.chunks(BOOST_BATCH_MAX / partitions.len());
        let keys = partners.len() * partitions.len();
        self.metrics.lookup_keys.inc_by(keys as u64);
        self.metrics.lookup_calls.inc_by(batches.len() as u64);
        let read = |batch| by(deadline, self.store.standings(partitions, batch, now, Consistency::Eventual));
        let answers = join_all(batches.clone().map(read)).await;
        let mut round = Round { standings: Vec::with_capacity(keys), down: None };
        for (answer, batch) in answers.into_iter().zip(batches) {
            match answer {
                Ok(Ok(standings)) => {
                    round.standings.extend(standings);
                    continue;
                }
                Ok(Err(error @ StoreError::Damaged(_))) => return Err(error.into()),
                Ok(Err(StoreError::Throttled)) => drop(self.metrics.store_throttles.inc()),
                Ok(Err(error)) => round.down = Some(error),
                Err(_) => {}
            }
            round.standings.extend(std::iter::repeat_n(Standing::Unread, batch.len() * partitions.len()));
        }
        Ok(round)
    }
}

/// What one attempt brought.
struct Round {
    standings: Vec<Standing>,
    /// The store could not serve at all, for some of the keys.
    down: Option<StoreError>,
}

fn areas(record: &MarketRecord, district: Option<DistrictId>) -> Result<Areas, MarketQuestion> {
    match (record.market.model(), district) {
        (MarketModel::Wildcard, _) => Ok(Areas::Wildcard),
        (MarketModel::Zoned, Some(district)) => Ok(Areas::Zoned(district)),
        (MarketModel::Zoned, None) => Err(MarketQuestion::NoDistrict),
    }
}

/// Of the first and the last eight bytes: ids that differ in neither are few, and then a set tells them apart.
/// The map's hasher takes 2,500 instructions more for a search of 50.
fn hash(id: &[u8]) -> u64 {
    let word = |bytes: Option<&[u8; 8]>| bytes.map(|bytes| u64::from_le_bytes(*bytes));
    let (first, last) = match word(id.first_chunk()).zip(word(id.last_chunk())) {
        Some(ends) => ends,
        None => (id.iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte)), 0),
    };
    let product = u128::from(first ^ MIX) * u128::from(last ^ MIX.rotate_left(32));
    #[expect(clippy::cast_possible_truncation, reason = "both halves count")]
    let halves = (product as u64, (product >> 64) as u64);
    halves.0 ^ halves.1
}

/// Whether it is plain that no partner is named twice, as in nearly every search: copies would share a place. So may others,
/// by chance.
fn are_distinct(partners: &[PartnerId]) -> bool {
    let mut taken = [0_u64; DISTINCT_PLACES / 64];
    partners.iter().all(|partner| {
        let place = usize::try_from(hash(partner.as_str().as_bytes()) % DISTINCT_PLACES as u64).unwrap_or(0);
        let (word, bit) = (&mut taken[place / 64], 1 << (place % 64));
        let is_free = *word & bit == 0;
        *word |= bit;
        is_free
    })
}

/// In the order in which they are first named.
fn distinct(mut partners: Vec<PartnerId>) -> Vec<PartnerId> {
    if !are_distinct(&partners) {
        let mut seen = HashSet::with_capacity_and_hasher(partners.len(), lru::DefaultHasher::default());
        partners.retain(|partner| seen.insert(partner.clone()));
    }
    partners
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few and many, with and without copies; of many, some share a place though they are different.
    #[test]
    fn copies_are_asked_about_once_and_all_others_are_asked_about() {
        for count in [1_usize, 2, 50, 1_000] {
            let all: Vec<_> = (0..count).map(|i| PartnerId::new(&format!("partner {i}")).unwrap()).collect();
            assert_eq!(distinct(all.clone()), all);
            let copied: Vec<_> = all.iter().chain(&all).chain(&all[..1]).cloned().collect();
            assert_eq!(distinct(copied), all);
        }
    }
}
