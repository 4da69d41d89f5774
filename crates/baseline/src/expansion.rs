//! The expansion manifest: a campaign for all areas becomes one row for every district that its partner serves.
//!
//! The source documents built it and left it. A search asks for the bucket of its district, `{tenant}#{district}`, which
//! holds those partners alone that deliver there.
//!
//! What it gives up: an event is as many writes as its partner has districts; a partner that begins to serve another
//! district is not boosted there until its campaign is expanded anew, and one that no longer does leaves a row behind;
//! and partners that deliver everywhere are in every bucket.
//!
//! How its table is mapped onto the port of messages, and whom that serves: sort keys are numbers there, so a partner's
//! row is under a hash of its id, which does not change how many rows a bucket has. The port's conditions know nothing of
//! ranks: a first event is one put for each district, as there, but one that replaces another needs a second put.
//! Districts are told by the caller, so that to look them up costs nothing.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use saltern_core::campaigns::{Area, Boost, DistrictId, Market, Moment, Standing};
use saltern_core::ids::{ConversationId, IdError, MessageId, ParticipantId, PartnerId, TenantId};
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::Salt;
use saltern_core::message::{Body, Digest};
use saltern_core::page::Order;
use saltern_core::record::{MessageRow, Record};
use saltern_store::{BoostPut, Condition, Consistency, Put, PutOutcome, Query, Store, StoreError, query_all};

use crate::boost_text;
use crate::boosted::Boosted;
use crate::rows::fnv1a;

/// Districts of one event under way at once.
const DISTRICTS_AT_ONCE: usize = 64;
/// Rows that a query may return; no market has more partners.
const BUCKET_MAX: usize = 10_000_000;

/// One tenant's campaigns.
pub struct Expansion {
    store: Arc<dyn Store>,
    tenant: TenantId,
    market: Market,
}

impl Expansion {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, tenant: TenantId, market: Market) -> Self {
        Self { store, tenant, market }
    }

    /// Takes up what an event says about `*`, in the districts that its partner serves.
    pub async fn apply(
        &self,
        partner: &PartnerId,
        boost: &Boost,
        districts: &[DistrictId],
    ) -> Result<BoostPut, StoreError> {
        let puts = self.puts(partner, boost, districts)?;
        let put = |put: Put| async move { self.put(put, boost).await };
        let mut outcomes = stream::iter(puts).map(put).buffer_unordered(DISTRICTS_AT_ONCE);
        let mut outcome = BoostPut::Stale;
        while let Some(put) = outcomes.try_next().await? {
            if put == BoostPut::Applied {
                outcome = BoostPut::Applied;
            }
        }
        Ok(outcome)
    }

    /// The rows of a first event, for whoever fills a table.
    pub fn puts(&self, partner: &PartnerId, boost: &Boost, districts: &[DistrictId]) -> Result<Vec<Put>, StoreError> {
        let record = Record::Message(row(partner, boost).map_err(unavailable)?);
        let put = |district| {
            let key = Key { partition: self.bucket(district)?, sort: fnv1a(partner.as_str()) };
            Ok(Put { key, record: record.clone(), condition: Condition::Absent })
        };
        districts.iter().map(put).collect()
    }

    /// The whole bucket; then those who were asked about.
    pub async fn search(
        &self,
        district: &DistrictId,
        partners: &[PartnerId],
        at: Moment,
    ) -> Result<Vec<Boosted>, StoreError> {
        let query = Query {
            partition: self.bucket(district)?,
            from: 0,
            to: u64::MAX,
            order: Order::Ascending,
            limit: BUCKET_MAX,
            consistency: Consistency::Eventual,
        };
        let rows = query_all(&*self.store, &query).await?;
        let mut texts = HashMap::with_capacity(rows.len());
        for (_, record) in &rows {
            if let Record::Message(row) = record {
                texts.insert(row.message_id.as_str(), row.text().unwrap_or_default());
            }
        }
        let now = self.market.local_time(at);
        let look = |partner: &PartnerId| {
            let boost = boost_text::decode(texts.get(partner.as_str())?)?;
            let Standing::Active(score) = boost.standing(&now) else { return None };
            Some(Boosted { partner: partner.clone(), score, area: Area::District(district.clone()) })
        };
        Ok(partners.iter().filter_map(look).collect())
    }

    async fn put(&self, put: Put, boost: &Boost) -> Result<BoostPut, StoreError> {
        let present = match self.store.put(&put).await? {
            PutOutcome::Applied => return Ok(BoostPut::Applied),
            PutOutcome::Refused(present) => present,
        };
        let present = match &present {
            Some(Record::Message(row)) => boost_text::decode(row.text().unwrap_or_default()),
            _ => None,
        };
        if present.is_some_and(|present| present.rank() >= boost.rank()) {
            return Ok(BoostPut::Stale);
        }
        let again = Put { condition: Condition::Version(0), ..put };
        let applied = self.store.put(&again).await? == PutOutcome::Applied;
        Ok(if applied { BoostPut::Applied } else { BoostPut::Stale })
    }

    /// The core has no keys for buckets, so one goes by the name of a conversation, of which `enc` escapes the `#`.
    fn bucket(&self, district: &DistrictId) -> Result<PartitionKey, StoreError> {
        let name = ConversationId::new(&format!("{}#{}", self.tenant, district.as_str())).map_err(unavailable)?;
        Ok(PartitionKey::messages(&name, Salt::Unsalted))
    }
}

fn row(partner: &PartnerId, boost: &Boost) -> Result<MessageRow, IdError> {
    let sender_id = ParticipantId::new("x")?;
    let body = Body { sender_id, receiver_id: None, content: boost_text::encode(boost), timestamp: None };
    Ok(MessageRow::with_digest(MessageId::new(partner.as_str())?, body, Digest([0; 16]), 0))
}

/// Nothing happened, since a name is too long for the port.
fn unavailable(error: IdError) -> StoreError {
    StoreError::Unavailable(Arc::new(error))
}
