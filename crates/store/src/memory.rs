//! A store in memory: the contract in its plainest form, for tests and simulation.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use saltern_core::key::{Key, PartitionKey, Place};
use saltern_core::page::Order;
use saltern_core::record::Record;

use crate::due::{Due, DueMark, DuePage};
use crate::misuse::{Misuse, keys_differ};
use crate::port::{Capabilities, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError};
use crate::scan::{Scan, ScanPage};

type Rows = BTreeMap<(PartitionKey, u64), Record>;

/// Clones share their rows, as several servers share a table.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    rows: Arc<Mutex<Rows>>,
    capabilities: Capabilities,
}

impl MemoryStore {
    #[must_use]
    pub fn new(capabilities: Capabilities) -> Self {
        Self { rows: Arc::default(), capabilities }
    }

    /// Everything there is, in the order of the keys.
    #[must_use]
    pub fn rows(&self) -> Vec<(Key, Record)> {
        let key = |(partition, sort): &(PartitionKey, u64)| Key { partition: partition.clone(), sort: *sort };
        self.lock().iter().map(|(at, record)| (key(at), record.clone())).collect()
    }

    /// No code panics while it holds the lock, so a poisoned one still guards whole rows.
    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn judge(rows: &Rows, put: &Put) -> PutOutcome {
    let present = rows.get(&(put.key.partition.clone(), put.key.sort));
    if put.condition.holds(present.map(Record::version)) {
        PutOutcome::Applied
    } else {
        PutOutcome::Refused(present.cloned())
    }
}

fn apply(rows: &mut Rows, put: &Put) {
    rows.insert((put.key.partition.clone(), put.key.sort), put.record.clone());
}

#[async_trait]
impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        let mut rows = self.lock();
        let outcome = judge(&rows, put);
        if outcome == PutOutcome::Applied {
            apply(&mut rows, put);
        }
        Ok(outcome)
    }

    async fn put_all(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        if !self.capabilities.atomic_puts {
            return Err(Misuse::NoAtomicPuts.into());
        }
        keys_differ(puts)?;
        let mut rows = self.lock();
        let outcomes: Vec<_> = puts.iter().map(|put| judge(&rows, put)).collect();
        if outcomes.iter().all(|outcome| *outcome == PutOutcome::Applied) {
            puts.iter().for_each(|put| apply(&mut rows, put));
        }
        Ok(outcomes)
    }

    async fn get(&self, keys: &[Key], _: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        let rows = self.lock();
        Ok(keys.iter().map(|key| rows.get(&(key.partition.clone(), key.sort)).cloned()).collect())
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        if query.from > query.to {
            return Ok(QueryPage { rows: Vec::new(), resume: None });
        }
        let rows = self.lock();
        let range = rows.range((query.partition.clone(), query.from)..=(query.partition.clone(), query.to));
        Ok(match query.order {
            Order::Ascending => page(range, query.limit),
            Order::Descending => page(range.rev(), query.limit),
        })
    }
}

#[async_trait]
impl Scan for MemoryStore {
    async fn scan(&self, behind: Option<&Key>, limit: usize) -> Result<ScanPage, StoreError> {
        let from = behind.map_or(Bound::Unbounded, |key| Bound::Excluded((key.partition.clone(), key.sort)));
        let rows = self.lock();
        let mut range = rows.range((from, Bound::Unbounded));
        let key = |(partition, sort): &(PartitionKey, u64)| Key { partition: partition.clone(), sort: *sort };
        let rows: Vec<_> = range.by_ref().take(limit).map(|(at, record)| (key(at), Ok(record.clone()))).collect();
        let resume = range.next().and(rows.last()).map(|(key, _)| key.clone());
        Ok(ScanPage { rows, resume })
    }
}

#[async_trait]
impl Due for MemoryStore {
    async fn due(&self, oldest_ms_max: u64, behind: Option<&DueMark>, limit: usize) -> Result<DuePage, StoreError> {
        let entry = |((partition, sort), record): (&(PartitionKey, u64), &Record)| {
            let Record::Control(control) = record else { return None };
            let place = Key { partition: partition.clone(), sort: *sort }.place()?;
            let Place::Control(conversation) = place else { return None };
            Some((control.archive.oldest_ms?, conversation))
        };
        let behind = behind.and_then(|mark| mark.last.clone());
        let mut due: Vec<_> = self.lock().iter().filter_map(entry).collect();
        due.retain(|entry| entry.0 <= oldest_ms_max && Some(entry) > behind.as_ref());
        due.sort();
        let more = due.len() > limit;
        due.truncate(limit);
        let resume = due.last().filter(|_| more).map(|last| DueMark { shard: 0, last: Some(last.clone()) });
        Ok(DuePage { conversations: due.into_iter().map(|(_, conversation)| conversation).collect(), resume })
    }
}

fn page<'a>(mut range: impl Iterator<Item = (&'a (PartitionKey, u64), &'a Record)>, limit: usize) -> QueryPage {
    let rows: Vec<_> = range.by_ref().take(limit).map(|((_, sort), record)| (*sort, record.clone())).collect();
    let resume = range.next().and(rows.last()).map(|(sort, _)| *sort);
    QueryPage { rows, resume }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::conformance;

    #[rstest]
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn keeps_the_contract(#[values(true, false)] atomic_puts: bool, #[values(true, false)] exclusive: bool) {
        conformance::all(Arc::new(MemoryStore::new(Capabilities { atomic_puts, exclusive }))).await;
    }

    #[tokio::test]
    async fn can_be_scanned() {
        let store = MemoryStore::new(Capabilities { atomic_puts: true, exclusive: true });
        conformance::finds_every_row_once(&store, &store).await;
    }

    #[tokio::test]
    async fn knows_what_is_due() {
        let store = MemoryStore::new(Capabilities { atomic_puts: true, exclusive: true });
        conformance::names_what_is_due(&store, &store).await;
    }
}
