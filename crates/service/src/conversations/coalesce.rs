//! Identical reads share one query. A read may join only a query that has not started yet: one that has may already
//! have passed the place of a message that was acknowledged before the read began (I1).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;

/// Per key at most one query runs and one waits for it to end; every further read joins the one that waits.
pub(super) struct Coalescer<K, V> {
    slots: Mutex<HashMap<K, Arc<Slot<V>>>>,
    /// The defect: further reads join the one that runs.
    join_started: bool,
}

/// All queries of one key.
struct Slot<V> {
    /// Held by the query that runs.
    turn: tokio::sync::Mutex<()>,
    /// The query that waits for its turn, and may be joined until it has it.
    waiting: Mutex<Option<Arc<OnceCell<V>>>>,
}

impl<V> Slot<V> {
    fn waiting(&self) -> MutexGuard<'_, Option<Arc<OnceCell<V>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Coalescer<K, V> {
    pub(super) fn new(join_started: bool) -> Self {
        Self { slots: Mutex::default(), join_started }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<K, Arc<Slot<V>>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the query, or waits for one that starts from now on. Answers whether the query was another's.
    ///
    /// If the one that runs the query is dropped, another that waits for it runs its own.
    pub(super) async fn run<F: Future<Output = V>>(&self, key: K, query: impl FnOnce() -> F) -> (V, bool) {
        let visit = self.visit(key);
        let flight = Arc::clone(visit.slot.waiting().get_or_insert_default());
        let mut own = false;
        let answer = flight
            .get_or_init(|| async {
                own = true;
                let _turn = visit.slot.turn.lock().await;
                if self.join_started {
                    let answer = query().await;
                    visit.slot.waiting().take_if(|f| Arc::ptr_eq(f, &flight));
                    return answer;
                }
                visit.slot.waiting().take_if(|f| Arc::ptr_eq(f, &flight));
                query().await
            })
            .await
            .clone();
        (answer, !own)
    }

    fn visit(&self, key: K) -> Visit<'_, K, V> {
        let new = || Arc::new(Slot { turn: tokio::sync::Mutex::default(), waiting: Mutex::default() });
        let slot = Arc::clone(self.slots().entry(key.clone()).or_insert_with(new));
        Visit { coalescer: self, key, slot }
    }
}

/// A read's stay in its slot. The last one out removes it.
struct Visit<'a, K: Hash + Eq + Clone, V: Clone> {
    coalescer: &'a Coalescer<K, V>,
    key: K,
    slot: Arc<Slot<V>>,
}

impl<K: Hash + Eq + Clone, V: Clone> Drop for Visit<'_, K, V> {
    fn drop(&mut self) {
        let mut slots = self.coalescer.slots();
        // The map's and ours: new visits need the lock that we hold.
        if Arc::strong_count(&self.slot) == 2 {
            slots.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use tokio::task::yield_now;
    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reads_join_the_query_that_waits_never_the_one_that_runs() {
        let coalescer = Arc::new(Coalescer::new(false));
        let started = Arc::new(AtomicU32::new(0));
        let read = || {
            let (coalescer, started) = (Arc::clone(&coalescer), Arc::clone(&started));
            tokio::spawn(async move {
                let query = || async {
                    let turn = started.fetch_add(1, Ordering::Relaxed);
                    sleep(Duration::from_millis(10)).await;
                    turn
                };
                coalescer.run("k", query).await
            })
        };
        let first = read();
        yield_now().await;
        let later: Vec<_> = std::iter::repeat_with(read).take(50).collect();
        assert_eq!(first.await.unwrap(), (0, false));
        let mut own = 0;
        for read in later {
            let (answer, shared) = read.await.unwrap();
            assert_eq!(answer, 1);
            own += u32::from(!shared);
        }
        assert_eq!(own, 1);
        assert!(coalescer.slots().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_query_is_taken_over() {
        let coalescer = Arc::new(Coalescer::new(false));
        let leader = {
            let coalescer = Arc::clone(&coalescer);
            tokio::spawn(async move { coalescer.run("k", || sleep(Duration::from_secs(3_600))).await })
        };
        yield_now().await;
        let impatient = timeout(Duration::from_millis(5), coalescer.run("k", || async {})).await;
        assert!(impatient.is_err());
        let follower = coalescer.run("k", || async {});
        leader.abort();
        assert_eq!(follower.await, ((), false));
        assert!(coalescer.slots().is_empty());
    }
}
