use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saltern_core::cost::{read_units, write_units};
use saltern_core::key::{Key, PartitionKey};
use saltern_core::record::Record;
use tokio::time::Instant;

use super::bucket::Bucket;
use super::limits::PartitionLimits;
use crate::misuse::Misuse;
use crate::port::{Capabilities, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError};

/// A store with DynamoDB's partition limits. Time is tokio's, so that it follows a simulation's clock.
///
/// It offers no atomic puts, whatever the store beneath can do: DynamoDB's cost twice as much, so a service that would use
/// them here would not meet the limits that it meets there. Clones are one store.
#[derive(Clone)]
pub struct Throttled {
    inner: Arc<dyn Store>,
    started: Instant,
    partitions: Arc<[Mutex<Physical>]>,
}

/// What a physical partition has taken since the start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PartitionLoad {
    pub write_units: u64,
    pub read_units: f64,
    pub throttled_writes: u64,
    pub throttled_reads: u64,
}

struct Physical {
    writes: Bucket,
    reads: Bucket,
    load: PartitionLoad,
}

impl Throttled {
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, limits: PartitionLimits) -> Self {
        let physical = |_| {
            Mutex::new(Physical {
                writes: Bucket::new(limits.write_units_per_s, limits.burst),
                reads: Bucket::new(limits.read_units_per_s, limits.burst),
                load: PartitionLoad::default(),
            })
        };
        let partitions = (0..limits.physical_partitions.get()).map(physical).collect();
        Self { inner, started: Instant::now(), partitions }
    }

    /// The physical partition that a key lives in.
    #[must_use]
    pub fn physical(&self, partition: &PartitionKey) -> usize {
        let place = spread(partition.as_str().as_bytes()) % self.partitions.len() as u64;
        usize::try_from(place).unwrap_or(0)
    }

    /// What each physical partition has taken so far.
    #[must_use]
    pub fn loads(&self) -> Vec<PartitionLoad> {
        self.partitions.iter().map(|physical| lock(physical).load).collect()
    }

    fn at(&self, partition: &PartitionKey) -> MutexGuard<'_, Physical> {
        lock(&self.partitions[self.physical(partition)])
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn admit_read(&self, partition: &PartitionKey, units: f64) -> Result<(), StoreError> {
        let mut physical = self.at(partition);
        if physical.reads.take(self.now(), units) {
            physical.load.read_units += units;
            return Ok(());
        }
        physical.load.throttled_reads += 1;
        Err(StoreError::Throttled)
    }

    fn charge_read(&self, partition: &PartitionKey, units: f64) {
        let mut physical = self.at(partition);
        physical.reads.charge(units);
        physical.load.read_units += units;
    }

    fn admit_write(&self, partition: &PartitionKey, units: u64) -> Result<(), StoreError> {
        let mut physical = self.at(partition);
        if physical.writes.take(self.now(), as_f64(units)) {
            physical.load.write_units += units;
            return Ok(());
        }
        physical.load.throttled_writes += 1;
        Err(StoreError::Throttled)
    }

    fn charge_write(&self, partition: &PartitionKey, units: u64) {
        let mut physical = self.at(partition);
        physical.writes.charge(as_f64(units));
        physical.load.write_units += units;
    }
}

#[async_trait]
impl Store for Throttled {
    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_puts: false, ..self.inner.capabilities() }
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        let units = write_units(put.record.item_bytes());
        self.admit_write(&put.key.partition, units)?;
        let outcome = self.inner.put(put).await?;
        if let PutOutcome::Refused(Some(there)) = &outcome {
            // A failed condition costs what the row in the way would cost to write.
            let beyond = write_units(there.item_bytes()).saturating_sub(units);
            self.charge_write(&put.key.partition, beyond);
        }
        Ok(outcome)
    }

    async fn put_all(&self, _: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        Err(Misuse::NoAtomicPuts.into())
    }

    async fn get(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        let least = units_of(0, consistency);
        for key in keys {
            self.admit_read(&key.partition, least)?;
        }
        let rows = self.inner.get(keys, consistency).await?;
        for (key, row) in keys.iter().zip(&rows) {
            let units = units_of(row.as_ref().map_or(0, Record::item_bytes), consistency);
            self.charge_read(&key.partition, units - least);
        }
        Ok(rows)
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        let least = units_of(0, query.consistency);
        self.admit_read(&query.partition, least)?;
        let page = self.inner.query(query).await?;
        let bytes = page.rows.iter().map(|(_, row)| row.item_bytes()).sum();
        self.charge_read(&query.partition, units_of(bytes, query.consistency) - least);
        Ok(page)
    }
}

fn units_of(bytes: usize, consistency: Consistency) -> f64 {
    let strong = as_f64(read_units(bytes));
    match consistency {
        Consistency::Strong => strong,
        Consistency::Eventual => strong / 2.0,
    }
}

/// FNV-1a with the finish of SplitMix64: neighbours such as `a#1` and `a#2` land far apart, and the same key in the same
/// place in every process.
fn spread(key: &[u8]) -> u64 {
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = key.iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Units of single calls are far below 2^53.
fn as_f64(units: u64) -> f64 {
    units as f64
}

/// Every critical section is a few assignments: a panic elsewhere leaves nothing half done.
fn lock(physical: &Mutex<Physical>) -> MutexGuard<'_, Physical> {
    physical.lock().unwrap_or_else(PoisonError::into_inner)
}
