//! The source documents' first campaigns: lists of up to 1,000 partners under `{tenant}#{area}` and `{day}#{slot}#{shard}`.
//!
//! A search knows day and slot, so it asks for everybody who is boosted then, and looks for its partners in what comes
//! back, one after the other. An event is written into as many documents as its schedule has days and slots, each of them
//! read, changed and replaced if its version is still the one that was read.
//!
//! What it gives up: what a search reads grows with the market, not with the question; and writers of one document
//! meet, however different their partners.
//!
//! How the documents' table is mapped onto the port of messages, and whom that serves:
//! - Sort keys are numbers there, so day, slot and shard are one number, and `begins_with` is a range. Costs nothing.
//! - A document is one JSON text, with a name for every value as DynamoDB's maps have. It is parsed without copying,
//!   which is much cheaper than the SDK's maps of maps.
//! - The port compares versions of control records alone, so a table in this process stands for the condition
//!   `version = :read`: one that fails is tried again from the read, as there. One process writes.
//! - That a partner's late event is told from a new one, and where it was written before, was a table of its own
//!   there. Here it is in memory and costs nothing, neither reads nor writes.

mod calendar;
mod document;
mod known;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{poll_fn, try_join_all};
use saltern_core::campaigns::{Area, Boost, BoostKey, DistrictId, Market, Moment, State};
use saltern_core::ids::{ConversationId, PartnerId, TenantId};
use saltern_core::key::{Key, PartitionKey, enc};
use saltern_core::layout::Salt;
use saltern_core::page::Order;
use saltern_store::{BoostPut, Condition, Consistency, Put, PutOutcome, Query, Store, StoreError, query_all};

use self::calendar::{Calendar, DaySlot};
use self::document::{Document, Entry, parse, text};
use self::known::{Known, Place};
use crate::boosted::Boosted;

/// Partners in one document, so that it stays below DynamoDB's 400 KB.
pub const SHARD_PARTNERS_MAX: usize = 1_000;
/// Documents that a query may return; a market of ten million partners has no more.
const SHARDS_MAX: u32 = 10_000;
/// How often a document is tried to be replaced.
const TRIES_MAX: u32 = 1_000_000;

/// One tenant's campaigns.
pub struct CampaignV1 {
    store: Arc<dyn Store>,
    tenant: TenantId,
    market: Market,
    calendar: Calendar,
    known: Known,
}

impl CampaignV1 {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, tenant: TenantId, market: Market) -> Self {
        let calendar = Calendar::new(&market);
        Self { store, tenant, market, calendar, known: Known::default() }
    }

    /// Takes up what an event says about one area. One event of a partner at a time, as a stream brings them.
    pub async fn apply(&self, key: &BoostKey, boost: &Boost) -> Result<BoostPut, StoreError> {
        let Some(before) = self.known.outranked(key, boost) else { return Ok(BoostPut::Stale) };
        let partition = partition(key.partition())?;
        let State::Active(terms) = &boost.state else {
            self.remove(&partition, &before, key.sort()).await?;
            return Ok(BoostPut::Applied);
        };
        let wanted = self.calendar.of(&terms.schedule);
        let (stay, go): (Vec<_>, Vec<_>) = before.into_iter().partition(|place| wanted.contains(&place.day_slot));
        self.remove(&partition, &go, key.sort()).await?;
        let entry = Entry::new(key.sort(), terms, boost.last_updated);
        let put = |day_slot: DaySlot| {
            let place = stay.iter().find(|place| place.day_slot == day_slot).copied();
            self.put(&partition, day_slot, place, &entry)
        };
        let places = try_join_all(wanted.into_iter().map(put)).await?;
        self.known.written(key, places);
        Ok(BoostPut::Applied)
    }

    /// Writes whole documents, as a backfill would, into a table that holds none. Answers how many.
    pub async fn import(&self, boosts: &[(BoostKey, Boost)]) -> Result<usize, StoreError> {
        let mut lists: BTreeMap<(PartitionKey, DaySlot), Vec<(&BoostKey, Entry<'_>)>> = BTreeMap::new();
        for (key, boost) in boosts {
            let (State::Active(terms), Some(_)) = (&boost.state, self.known.outranked(key, boost)) else { continue };
            let entry = Entry::new(key.sort(), terms, boost.last_updated);
            for day_slot in self.calendar.of(&terms.schedule) {
                lists.entry((partition(key.partition())?, day_slot)).or_default().push((key, entry.clone()));
            }
        }
        let mut documents = 0;
        for ((partition, day_slot), list) in lists {
            for (shard, entries) in (0..).zip(list.chunks(SHARD_PARTNERS_MAX)) {
                let place = Place { day_slot, shard };
                let partners = entries.iter().map(|(_, entry)| entry.clone()).collect();
                self.replace(&place.key(&partition), Document { version: 0, partners }).await?;
                self.known.imported(&partition, place, entries.iter().map(|(key, _)| *key));
                documents += 1;
            }
        }
        Ok(documents)
    }

    /// Everybody who is boosted here and everywhere, all day and in the present slot; then those who were asked about.
    pub async fn search(
        &self,
        district: Option<&DistrictId>,
        partners: &[PartnerId],
        at: Moment,
    ) -> Result<Vec<Boosted>, StoreError> {
        let areas: Vec<_> = district.cloned().map(Area::District).into_iter().chain([Area::Wildcard]).collect();
        let on = self.calendar.at(&self.market.local_time(at));
        let mut queries = Vec::with_capacity(areas.len() * on.len());
        for area in &areas {
            let partition = partition(&format!("{}#{area}", self.tenant))?;
            queries.extend(on.iter().map(|day_slot| begins_with(&partition, *day_slot)));
        }
        let pages = try_join_all(queries.iter().map(|query| query_all(&*self.store, query))).await?;
        let mut list = Vec::new();
        for (area, pages) in areas.iter().zip(pages.chunks(on.len().max(1))) {
            for text in pages.iter().flatten().filter_map(|(_, record)| text(record)) {
                list.extend(parse(text)?.partners.into_iter().map(|entry| (area, entry)));
            }
        }
        let look = |partner: &PartnerId| {
            let id = enc(partner.as_str());
            let mut entries = list.iter().filter(|(_, entry)| entry.partner_id == id);
            let (area, score) = entries.find_map(|(area, entry)| Some((*area, entry.score_at(at)?)))?;
            Some(Boosted { partner: partner.clone(), score, area: area.clone() })
        };
        Ok(partners.iter().filter_map(look).collect())
    }

    /// Where the partner already is, or in the first document with room.
    async fn put(
        &self,
        partition: &PartitionKey,
        day_slot: DaySlot,
        present: Option<Place>,
        entry: &Entry<'_>,
    ) -> Result<Place, StoreError> {
        for _ in 0..TRIES_MAX {
            let place = present.unwrap_or_else(|| self.known.open_shard(partition, day_slot));
            let key = place.key(partition);
            let read = self.read(&key).await?;
            let mut document = parse_or_new(read.as_deref())?;
            if present.is_none() && document.partners.len() >= SHARD_PARTNERS_MAX {
                self.known.full(partition, place);
                continue;
            }
            document.put(entry.clone());
            if self.replace(&key, document).await? {
                return Ok(place);
            }
            yield_now().await;
        }
        Err(StoreError::Throttled)
    }

    async fn remove(&self, partition: &PartitionKey, places: &[Place], partner: &str) -> Result<(), StoreError> {
        let remove = async |place: &Place| {
            for _ in 0..TRIES_MAX {
                let key = place.key(partition);
                let read = self.read(&key).await?;
                let mut document = parse_or_new(read.as_deref())?;
                document.remove(partner);
                if self.replace(&key, document).await? {
                    return Ok(());
                }
                yield_now().await;
            }
            Err(StoreError::Throttled)
        };
        try_join_all(places.iter().map(remove)).await.map(drop)
    }

    async fn read(&self, key: &Key) -> Result<Option<String>, StoreError> {
        let records = self.store.get(std::slice::from_ref(key), Consistency::Strong).await?;
        Ok(records.first().and_then(Option::as_ref).and_then(text).map(str::to_owned))
    }

    /// Writes the next version of a document, unless somebody else has.
    async fn replace(&self, key: &Key, mut document: Document<'_>) -> Result<bool, StoreError> {
        let condition = if document.version == 0 { Condition::Absent } else { Condition::Version(0) };
        if !self.known.step(key, document.version) {
            return Ok(false);
        }
        document.version += 1;
        let put = Put { key: key.clone(), record: document.record()?, condition };
        let outcome = self.store.put(&put).await;
        if !matches!(outcome, Ok(PutOutcome::Applied)) {
            self.known.unsure(key);
        }
        Ok(outcome? == PutOutcome::Applied)
    }
}

fn parse_or_new(text: Option<&str>) -> Result<Document<'_>, StoreError> {
    text.map_or_else(|| Ok(Document::default()), parse)
}

/// All shards of a day and slot.
fn begins_with(partition: &PartitionKey, day_slot: DaySlot) -> Query {
    let sort = |shard| Place { day_slot, shard }.sort();
    Query {
        partition: partition.clone(),
        from: sort(0),
        to: sort(SHARDS_MAX),
        order: Order::Ascending,
        limit: SHARDS_MAX as usize,
        consistency: Consistency::Eventual,
    }
}

/// The core has no keys for these documents, so `tenant#area` goes by the name of a conversation, of which `enc` escapes
/// the `#`. Fails for names that together are longer than one may be.
fn partition(name: &str) -> Result<PartitionKey, StoreError> {
    let name = ConversationId::new(name).map_err(|too_long| StoreError::Unavailable(Arc::new(too_long)))?;
    Ok(PartitionKey::messages(&name, Salt::Unsalted))
}

/// Lets whoever is about to write the document go first.
async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
