//! What a design asks of its stores, counted and weighed: the same measure for all of them.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use saltern_core::campaigns::{ALL_DAY, Boost, BoostKey, DeadLetter, LetterNo, Look, SlotName, State};
use saltern_core::ids::TenantId;
use saltern_core::key::Key;
use saltern_core::record::Record;
use saltern_store::embedded::{boost_bytes, row_bytes};
use saltern_store::{
    BoostPut, CampaignStore, Capabilities, Consistency, MarketPut, MarketRecord, Put, PutOutcome, Query, QueryPage,
    Store, StoreError,
};

use super::designs::Stores;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Weight {
    /// Queries and batches of keys.
    pub(super) reads: u64,
    /// Rows that came back.
    pub(super) items: u64,
    /// Partners that they tell about.
    pub(super) partners: u64,
    /// As the embedded store keeps them.
    pub(super) bytes: u64,
    /// As DynamoDB weighs them.
    pub(super) item_bytes: u64,
    pub(super) writes: u64,
}

impl Weight {
    fn row(&mut self, key: &Key, record: &Record) {
        self.items += 1;
        self.partners += match record {
            // A list of partners names each, and any other row is about one.
            Record::Message(row) => row.text().unwrap_or_default().matches("partner_id").count().max(1) as u64,
            _ => 0,
        };
        self.bytes += row_bytes(key, record) as u64;
        self.item_bytes += record.item_bytes() as u64;
    }

    fn boost(&mut self, key: &BoostKey, boost: &Boost) {
        self.items += 1;
        self.partners += 1;
        self.bytes += boost_bytes(key, boost) as u64;
        self.item_bytes += item_bytes(key, boost) as u64;
    }
}

/// Clones are one decorator.
#[derive(Clone)]
pub(super) struct Weighed {
    stores: Stores,
    weight: Arc<Mutex<Weight>>,
}

impl Weighed {
    pub(super) fn new(stores: Stores) -> Self {
        Self { stores, weight: Arc::default() }
    }

    pub(super) fn stores(&self) -> Stores {
        Stores { rows: Arc::new(self.clone()), campaigns: Arc::new(self.clone()) }
    }

    /// What there was since the last time.
    pub(super) fn take(&self) -> Weight {
        std::mem::take(&mut *self.weight.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, what: impl FnOnce(&mut Weight)) {
        what(&mut self.weight.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[async_trait]
impl Store for Weighed {
    fn capabilities(&self) -> Capabilities {
        self.stores.rows.capabilities()
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        self.add(|weight| weight.writes += 1);
        self.stores.rows.put(put).await
    }

    async fn put_all(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        self.add(|weight| weight.writes += puts.len() as u64);
        self.stores.rows.put_all(puts).await
    }

    async fn get(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        let found = self.stores.rows.get(keys, consistency).await?;
        self.add(|weight| {
            weight.reads += 1;
            for (key, record) in keys.iter().zip(&found) {
                record.iter().for_each(|record| weight.row(key, record));
            }
        });
        Ok(found)
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        let page = self.stores.rows.query(query).await?;
        self.add(|weight| {
            weight.reads += 1;
            for (sort, record) in &page.rows {
                weight.row(&Key { partition: query.partition.clone(), sort: *sort }, record);
            }
        });
        Ok(page)
    }
}

#[async_trait]
impl CampaignStore for Weighed {
    async fn put_boost(&self, key: &BoostKey, boost: &Boost) -> Result<BoostPut, StoreError> {
        self.add(|weight| weight.writes += 1);
        self.stores.campaigns.put_boost(key, boost).await
    }

    async fn boosts(&self, keys: &[BoostKey], consistency: Consistency) -> Result<Vec<Look>, StoreError> {
        let looks = self.stores.campaigns.boosts(keys, consistency).await?;
        self.add(|weight| {
            weight.reads += 1;
            for (key, look) in keys.iter().zip(&looks) {
                if let Look::Found(boost) = look {
                    weight.boost(key, boost);
                }
            }
        });
        Ok(looks)
    }

    async fn put_market(&self, tenant: &TenantId, record: &MarketRecord) -> Result<MarketPut, StoreError> {
        self.add(|weight| weight.writes += 1);
        self.stores.campaigns.put_market(tenant, record).await
    }

    async fn market(&self, tenant: &TenantId) -> Result<Option<MarketRecord>, StoreError> {
        self.add(|weight| weight.reads += 1);
        self.stores.campaigns.market(tenant).await
    }

    async fn add_dead_letter(&self, letter: &DeadLetter) -> Result<(), StoreError> {
        self.add(|weight| weight.writes += 1);
        self.stores.campaigns.add_dead_letter(letter).await
    }

    async fn dead_letters(
        &self,
        before: Option<LetterNo>,
        limit: usize,
    ) -> Result<Vec<(LetterNo, DeadLetter)>, StoreError> {
        self.add(|weight| weight.reads += 1);
        self.stores.campaigns.dead_letters(before, limit).await
    }

    async fn dead_letter(&self, number: LetterNo) -> Result<Option<DeadLetter>, StoreError> {
        self.add(|weight| weight.reads += 1);
        self.stores.campaigns.dead_letter(number).await
    }

    async fn remove_dead_letter(&self, number: LetterNo) -> Result<(), StoreError> {
        self.add(|weight| weight.writes += 1);
        self.stores.campaigns.remove_dead_letter(number).await
    }
}

/// By DynamoDB's rule: names and values, 3 bytes for a list and 1 for each of its values, half a byte for a digit.
fn item_bytes(key: &BoostKey, boost: &Boost) -> usize {
    const LIST: usize = 3;
    const NUMBER: usize = 8;
    const DIGEST: usize = 16;
    let keys = "pk".len() + key.partition().len() + "sk".len() + key.sort().len();
    let order = "state".len() + "active".len() + "last_updated".len() + NUMBER + "digest".len() + DIGEST;
    let State::Active(terms) = &boost.state else { return keys + order };
    let (schedule, window) = (&terms.schedule, terms.schedule.window());
    let days: usize = schedule.days().days().map(|day| day.as_str().len() + 1).sum();
    let slots: usize = match schedule.slots() {
        [] => ALL_DAY.len() + 1,
        slots => slots.iter().map(SlotName::as_str).map(|slot| slot.len() + 1).sum(),
    };
    let score = terms.score.get().to_string().len().div_ceil(2) + 1;
    let window = window.starts_at.map_or(0, |_| "starts_at".len() + NUMBER)
        + window.ends_at.map_or(0, |_| "ends_at".len() + NUMBER);
    keys + order
        + "boost_score".len()
        + score
        + "days_of_week".len()
        + LIST
        + days
        + "time_slots".len()
        + LIST
        + slots
        + window
}
