//! What a design asks of its store, counted: the same measure for Saltern and for what it is measured against.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use saltern_core::key::Key;
use saltern_core::record::Record;

use crate::port::{Capabilities, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows asked to be written, each row of a `put_all` for itself.
    pub puts: u64,
    /// Keys asked for.
    pub gets: u64,
    /// Pages asked for.
    pub queries: u64,
    /// Rows that came back, from queries and gets.
    pub rows_read: u64,
    /// Calls that were answered `Throttled`.
    pub throttled: u64,
}

impl Counts {
    /// What was added after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            puts: self.puts.saturating_sub(earlier.puts),
            gets: self.gets.saturating_sub(earlier.gets),
            queries: self.queries.saturating_sub(earlier.queries),
            rows_read: self.rows_read.saturating_sub(earlier.rows_read),
            throttled: self.throttled.saturating_sub(earlier.throttled),
        }
    }
}

/// Counts what is asked of a store. Clones are one decorator.
#[derive(Clone)]
pub struct Counted {
    inner: Arc<dyn Store>,
    counts: Arc<Mutex<Counts>>,
}

impl Counted {
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, counts: Arc::default() }
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered<T>(&self, answer: &Result<T, StoreError>, rows: impl FnOnce(&T) -> usize) {
        match answer {
            Ok(found) => self.lock().rows_read += rows(found) as u64,
            Err(StoreError::Throttled) => self.lock().throttled += 1,
            Err(_) => {}
        }
    }
}

#[async_trait]
impl Store for Counted {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        self.lock().puts += 1;
        let answer = self.inner.put(put).await;
        self.answered(&answer, |_| 0);
        answer
    }

    async fn put_all(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        self.lock().puts += puts.len() as u64;
        let answer = self.inner.put_all(puts).await;
        self.answered(&answer, |_| 0);
        answer
    }

    async fn get(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        self.lock().gets += keys.len() as u64;
        let answer = self.inner.get(keys, consistency).await;
        self.answered(&answer, |records| records.iter().flatten().count());
        answer
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.lock().queries += 1;
        let answer = self.inner.query(query).await;
        self.answered(&answer, |page| page.rows.len());
        answer
    }
}

#[cfg(test)]
mod tests {
    use saltern_core::ids::ConversationId;
    use saltern_core::layout::Salt;
    use saltern_core::page::Order;
    use saltern_core::seq::SeqNo;

    use super::*;
    use crate::conformance;
    use crate::faulty::{FaultPlan, Faulty, ReadFaults, WriteFaults};
    use crate::memory::MemoryStore;
    use crate::port::Condition;

    fn memory() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::new(Capabilities { atomic_puts: true, exclusive: true }))
    }

    fn void(sort: u64) -> Put {
        let key = Key::row(&ConversationId::new("c").unwrap(), Salt::Unsalted, SeqNo::clamped(sort));
        Put { key, record: Record::Void, condition: Condition::Absent }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn keeps_the_contract() {
        conformance::all(Arc::new(Counted::new(memory()))).await;
    }

    #[tokio::test]
    async fn counts_what_is_asked_and_what_comes_back() {
        let faulty = Faulty::new(memory(), 1, FaultPlan::default());
        let store = Counted::new(Arc::new(faulty.clone()));
        store.put(&void(1)).await.unwrap();
        store.put_all(&[void(2), void(3)]).await.unwrap();
        let written = store.counts();
        assert_eq!(written, Counts { puts: 3, ..Counts::default() });

        store.get(&[void(1).key, void(9).key], Consistency::Strong).await.unwrap();
        let (partition, order, consistency) = (void(1).key.partition, Order::Ascending, Consistency::Strong);
        let query = Query { partition, from: 1, to: 9, order, limit: 2, consistency };
        store.query(&query).await.unwrap();
        let read = Counts { gets: 2, queries: 1, rows_read: 3, ..Counts::default() };
        assert_eq!(store.counts().since(written), read);

        let before = store.counts();
        let writes = WriteFaults { throttled: 1_000, ..WriteFaults::default() };
        let reads = ReadFaults { throttled: 1_000, ..ReadFaults::default() };
        faulty.set_plan(FaultPlan { writes, reads, ..FaultPlan::default() });
        assert!(matches!(store.put(&void(4)).await, Err(StoreError::Throttled)));
        assert!(matches!(store.query(&query).await, Err(StoreError::Throttled)));
        let throttled = Counts { puts: 1, queries: 1, throttled: 2, ..Counts::default() };
        assert_eq!(store.counts().since(before), throttled);
    }
}
