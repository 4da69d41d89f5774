use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saltern_core::key::Key;
use saltern_core::record::Record;
use tokio::time::sleep;

use super::dice::{Dice, Fate};
use super::plan::{Fault, FaultPlan};
use crate::port::{Capabilities, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError};

/// Injects faults into a store, by a plan and a seed. Needs a tokio runtime, and runs well on paused time.
///
/// Writes run in tasks of their own: a caller that goes away does not take back what it has sent (S4).
/// Clones are one decorator.
#[derive(Clone)]
pub struct Faulty {
    inner: Arc<dyn Store>,
    dice: Arc<Mutex<Dice>>,
}

#[derive(Debug, thiserror::Error)]
#[error("injected fault: {0:?}")]
struct Injected(Fault);

#[derive(Debug, thiserror::Error)]
#[error("the write was cut off")]
struct CutOff(#[source] tokio::task::JoinError);

enum Write {
    One(Box<Put>),
    Atom(Vec<Put>),
}

type Outcomes = Result<Vec<PutOutcome>, StoreError>;

impl Faulty {
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, seed: u64, plan: FaultPlan) -> Self {
        Self { inner, dice: Arc::new(Mutex::new(Dice::new(seed, plan))) }
    }

    /// Calls that begin from now on meet this plan; an empty one heals everything.
    pub fn set_plan(&self, plan: FaultPlan) {
        self.dice().plan = plan;
    }

    #[must_use]
    pub fn calls(&self) -> u64 {
        self.dice().calls
    }

    /// Calls that at least one fault struck.
    #[must_use]
    pub fn faulty_calls(&self) -> u64 {
        self.dice().faulty_calls
    }

    /// How often each fault struck.
    #[must_use]
    pub fn faults(&self) -> BTreeMap<Fault, u64> {
        self.dice().faults.clone()
    }

    fn dice(&self) -> MutexGuard<'_, Dice> {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write(&self, write: Write) -> Outcomes {
        let fate = self.dice().write();
        let on_its_way = tokio::spawn(self.clone().carry(write, fate));
        on_its_way.await.unwrap_or_else(|cut| Err(StoreError::Unknown(Arc::new(CutOff(cut)))))
    }

    async fn carry(self, write: Write, fate: Fate) -> Outcomes {
        pause(fate.before).await;
        let answer = match fate.fault {
            None => self.apply(write).await,
            Some(Fault::Lost) => Err(unknown(Fault::Lost)),
            Some(Fault::Late) => {
                tokio::spawn(async move {
                    pause(fate.late).await;
                    // Whatever comes of it, nobody waits for it any more.
                    let _ = self.apply(write).await;
                });
                Err(unknown(Fault::Late))
            }
            Some(Fault::Unknown) => self.apply(write).await.and(Err(unknown(Fault::Unknown))),
            Some(fault) => Err(nothing_happened(fault)),
        };
        pause(fate.after).await;
        answer
    }

    async fn apply(&self, write: Write) -> Outcomes {
        let puts = match &write {
            Write::One(put) => std::slice::from_ref(&**put),
            Write::Atom(puts) => puts,
        };
        let replaced = self.replaced(puts).await?;
        let outcomes = match write {
            Write::One(put) => vec![self.inner.put(&put).await?],
            Write::Atom(puts) => self.inner.put_all(&puts).await?,
        };
        if outcomes.iter().all(|outcome| *outcome == PutOutcome::Applied) {
            let mut dice = self.dice();
            let keep = dice.plan.stale_max;
            replaced.into_iter().for_each(|(key, before)| dice.recent.add(key, before, keep));
        }
        Ok(outcomes)
    }

    /// The rows that a write is about to replace, should a lagging reader still want them.
    async fn replaced(&self, puts: &[Put]) -> Result<Vec<(Key, Option<Record>)>, StoreError> {
        if self.dice().plan.reads.stale == 0 {
            return Ok(Vec::new());
        }
        let mut rows = Vec::with_capacity(puts.len());
        for put in puts {
            let before = match put.condition {
                Condition::Absent => None,
                Condition::Version(_) => {
                    self.inner.get(std::slice::from_ref(&put.key), Consistency::Strong).await?.pop().flatten()
                }
            };
            rows.push((put.key.clone(), before));
        }
        Ok(rows)
    }

    /// Pauses and fails as fate says; otherwise the read may go on.
    async fn before_read(&self) -> Result<Fate, StoreError> {
        let fate = self.dice().read();
        pause(fate.before).await;
        fate.fault.map_or(Ok(fate), |fault| Err(nothing_happened(fault)))
    }

    /// The row as a lagging replica has it, and whether that differs.
    fn lagging(dice: &Dice, fate: &Fate, key: &Key, record: Option<Record>) -> (Option<Record>, bool) {
        match dice.past(fate).and_then(|then| dice.recent.as_of(then, key)) {
            Some(before) => (before.clone(), true),
            None => (record, false),
        }
    }
}

async fn pause(duration: Duration) {
    if duration > Duration::ZERO {
        sleep(duration).await;
    }
}

pub(crate) fn unknown(fault: Fault) -> StoreError {
    StoreError::Unknown(Arc::new(Injected(fault)))
}

pub(crate) fn nothing_happened(fault: Fault) -> StoreError {
    match fault {
        Fault::Throttled => StoreError::Throttled,
        fault => StoreError::Unavailable(Arc::new(Injected(fault))),
    }
}

#[async_trait]
impl Store for Faulty {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        let outcomes = self.write(Write::One(Box::new(put.clone()))).await?;
        Ok(outcomes.into_iter().next().unwrap_or(PutOutcome::Applied))
    }

    async fn put_all(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        self.write(Write::Atom(puts.to_vec())).await
    }

    async fn get(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        let fate = self.before_read().await?;
        let mut records = self.inner.get(keys, consistency).await?;
        if consistency == Consistency::Eventual {
            let mut dice = self.dice();
            let mut stale = false;
            for (key, record) in keys.iter().zip(&mut records) {
                let (seen, differs) = Self::lagging(&dice, &fate, key, record.take());
                *record = seen;
                stale |= differs;
            }
            if stale {
                dice.count_stale(&fate);
            }
        }
        pause(fate.after).await;
        Ok(records)
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        let mut fate = self.before_read().await?;
        let page = self.inner.query(query).await?;
        let page = self.seen(&mut fate, query, page);
        pause(fate.after).await;
        Ok(page)
    }
}

impl Faulty {
    fn seen(&self, fate: &mut Fate, query: &Query, page: QueryPage) -> QueryPage {
        let mut dice = self.dice();
        let mut page = dice.cut(fate, query, page);
        if query.consistency == Consistency::Eventual {
            let mut stale = false;
            let rows = page.rows.into_iter().filter_map(|(sort, record)| {
                let key = Key { partition: query.partition.clone(), sort };
                let (seen, differs) = Self::lagging(&dice, fate, &key, Some(record));
                stale |= differs;
                Some((sort, seen?))
            });
            page.rows = rows.collect();
            if stale {
                dice.count_stale(fate);
            }
        }
        page
    }
}
