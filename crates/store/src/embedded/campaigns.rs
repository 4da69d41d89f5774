//! The campaigns table in the same folder, behind the same commit thread.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use fjall::Slice;
use saltern_core::campaigns::{Boost, BoostKey, BoostPartition, DeadLetter, LetterNo, LocalTime, Look, Standing};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_core::page::Order;

use super::codec::{self, Damage};
use super::commit::{Premise, Write};
use super::log::Change;
use super::physical::{Space, boost_key, letter_key, market_key, sort_of};
use super::store::EmbeddedStore;
use super::view::View;
use crate::campaigns::port::{BoostPut, CampaignStore, DeadLetterPage, MarketPut, MarketRecord};
use crate::misuse::batch_fits;
use crate::port::{Condition, Consistency, StoreError};

/// Rows of dead letters read at once: texts of 256 KiB at the most.
const LETTERS_AT_ONCE: usize = 16;

/// Numbers for dead letters. This process alone writes them, so the next one is known.
pub(super) struct Shelf {
    next: AtomicU64,
    max: u64,
}

impl Shelf {
    pub(super) fn open(view: &View, max: u64) -> Result<Self, StoreError> {
        let newest = letters_before(view, None, 1).next().transpose()?;
        let newest = newest.map(|(key, _)| sort_of(&key).ok_or(Damage::Key)).transpose()?;
        Ok(Self { next: AtomicU64::new(newest.unwrap_or(0) + 1), max })
    }

    /// The next letter's number, and that of the one that makes room for it.
    fn take(&self) -> (LetterNo, Option<LetterNo>) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        (LetterNo(number), number.checked_sub(self.max).map(LetterNo))
    }
}

/// Letters, and what stands where one was removed; newest first.
fn letters_before(
    view: &View,
    before: Option<LetterNo>,
    limit: usize,
) -> impl Iterator<Item = Result<(Slice, Slice), StoreError>> {
    let (oldest, end) = (letter_key(LetterNo(0)), letter_key(before.unwrap_or(LetterNo(u64::MAX))));
    let bounds = (Bound::Included(oldest.into()), Bound::Excluded(end.into()));
    view.range(Space::Campaigns, bounds, Order::Descending, limit).take(limit)
}

fn put(key: Vec<u8>, value: &[u8], premise: Premise) -> Write {
    Write::new(Change::put(Space::Campaigns, key, value), premise, None)
}

fn removal(key: Vec<u8>) -> Write {
    Write::new(Change::removal(Space::Campaigns, key), Premise::Nothing, None)
}

impl EmbeddedStore {
    fn look(&self, key: &BoostKey) -> Result<Look, StoreError> {
        let row = self.view.get(Space::Campaigns, &boost_key(key))?;
        Ok(row.map_or(Ok(Look::Absent), |row| codec::decode_boost(&row).map(|boost| Look::Found(boost.into())))?)
    }
}

#[async_trait]
impl CampaignStore for EmbeddedStore {
    async fn put_boost(&self, key: &BoostKey, boost: &Boost) -> Result<BoostPut, StoreError> {
        let key = boost_key(key);
        let found = Some(self.view.look(Space::Campaigns, &key)?);
        let change = Change::put(Space::Campaigns, key, &codec::encode_boost(boost));
        let put = Write::new(change, Premise::Outranks(boost.rank()), found);
        let applied = self.commit(vec![put]).await?.iter().all(Write::is_applied);
        Ok(if applied { BoostPut::Applied } else { BoostPut::Stale })
    }

    async fn boosts(&self, keys: &[BoostKey], _: Consistency) -> Result<Vec<Look>, StoreError> {
        batch_fits(keys.len())?;
        self.check()?;
        keys.iter().map(|key| self.look(key)).collect()
    }

    async fn standings(
        &self,
        partitions: &[BoostPartition],
        partners: &[PartnerId],
        now: &LocalTime<'_>,
        _: Consistency,
    ) -> Result<Vec<Standing>, StoreError> {
        batch_fits(partners.len() * partitions.len())?;
        self.check()?;
        self.recent.look(partitions, partners, |look| look.standing(now), |key| self.look(key))
    }

    async fn put_market(&self, tenant: &TenantId, record: &MarketRecord) -> Result<MarketPut, StoreError> {
        let condition = match record.revision {
            0 | 1 => Condition::Absent,
            revision => Condition::Version(revision - 1),
        };
        let put = put(market_key(tenant), &codec::encode_market(record), Premise::Row(condition));
        let applied = self.commit(vec![put]).await?.iter().all(Write::is_applied);
        Ok(if applied { MarketPut::Applied } else { MarketPut::Conflict })
    }

    async fn market(&self, tenant: &TenantId) -> Result<Option<MarketRecord>, StoreError> {
        self.check()?;
        Ok(self.view.get(Space::Campaigns, &market_key(tenant))?.as_deref().map(codec::decode_market).transpose()?)
    }

    async fn add_dead_letter(&self, letter: &DeadLetter) -> Result<(), StoreError> {
        let (number, oldest) = self.shelf.take();
        let mut writes = vec![put(letter_key(number), &codec::encode_letter(number, letter), Premise::Nothing)];
        writes.extend(oldest.map(|oldest| removal(letter_key(oldest))));
        self.commit(writes).await.map(drop)
    }

    async fn dead_letters(
        &self,
        mut before: Option<LetterNo>,
        limit: usize,
    ) -> Result<Vec<(LetterNo, DeadLetter)>, StoreError> {
        self.check()?;
        let mut page = DeadLetterPage::new(limit);
        while page.room() > 0 {
            let last = before;
            for letter in letters_before(&self.view, before, LETTERS_AT_ONCE) {
                let (number, letter) = codec::decode_letter(&letter?.1)?;
                before = Some(number);
                if let Some(letter) = letter.filter(|_| page.room() > 0) {
                    page.push(number, letter);
                }
            }
            if before == last {
                break;
            }
        }
        Ok(page.finish())
    }

    async fn dead_letter(&self, number: LetterNo) -> Result<Option<DeadLetter>, StoreError> {
        self.check()?;
        let row = self.view.get(Space::Campaigns, &letter_key(number))?;
        Ok(row.as_deref().map(codec::decode_letter).transpose()?.and_then(|(_, letter)| letter))
    }

    async fn remove_dead_letter(&self, number: LetterNo) -> Result<(), StoreError> {
        let is_there = Premise::Row(Condition::Version(number.0));
        let removed = put(letter_key(number), &codec::encode_removed_letter(number), is_there);
        self.commit(vec![removed]).await.map(drop)
    }
}
