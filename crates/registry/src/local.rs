//! The registry of one process, in bounded memory.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use lru::LruCache;
use saltern_core::heat::Sample;
use saltern_core::ids::ConversationId;
use saltern_core::meter::Meter;
use saltern_core::seq::SeqNo;
use tokio::time::Instant;

use crate::port::{Hot, Registry, RegistryError, ThrottledRow, TicketRequest, Tickets, cut_to_hottest};

const SHARDS: usize = 16;

type Shard = LruCache<ConversationId, Entry>;

#[derive(Debug, Clone, Copy)]
struct Entry {
    next: SeqNo,
    horizon: SeqNo,
    meter: Meter,
    /// What was throttled of the newest epoch that anything was throttled of.
    throttled: Meter,
    throttled_epoch: SeqNo,
    throttles: u64,
}

impl Entry {
    fn new(next: SeqNo, horizon: SeqNo) -> Self {
        Self {
            next,
            horizon,
            meter: Meter::default(),
            throttled: Meter::default(),
            throttled_epoch: SeqNo::FIRST,
            throttles: 0,
        }
    }

    fn issue(&mut self, count: u64) -> Tickets {
        let (first, horizon) = (self.next, self.horizon);
        let room = horizon.get().saturating_sub(first.get());
        if count > room {
            return Tickets::Exhausted { next: first, horizon };
        }
        self.next = first.plus(count);
        Tickets::Issued { first, horizon }
    }
}

/// Keeps the conversations used last; those that fall out answer `Absent` and are synced again (R4).
///
/// Time is tokio's, so that it follows a simulation's clock. The same calls at the same times have the same answers.
#[derive(Clone)]
pub struct LocalRegistry(Arc<Inner>);

struct Inner {
    started: Instant,
    shards: Vec<Mutex<Shard>>,
}

/// The state of a registry at some moment. See [`LocalRegistry::restore`].
#[derive(Clone)]
pub struct Snapshot(Vec<Shard>);

impl LocalRegistry {
    /// Remembers about `conversations_max` conversations: that many, evenly spread over 16 shards, rounded up.
    #[must_use]
    pub fn new(conversations_max: usize) -> Self {
        let per_shard = NonZeroUsize::new(conversations_max.div_ceil(SHARDS)).unwrap_or(NonZeroUsize::MIN);
        let shards = (0..SHARDS).map(|_| Mutex::new(LruCache::new(per_shard))).collect();
        Self(Arc::new(Inner { started: Instant::now(), shards }))
    }

    /// How many conversations are remembered.
    #[must_use]
    pub fn conversations(&self) -> usize {
        self.shards().map(|shard| shard.len()).sum()
    }

    /// Forgets everything, as a Redis without persistence does when it restarts.
    pub fn wipe(&self) {
        self.shards().for_each(|mut shard| shard.clear());
    }

    /// For simulations: what a Redis replica has received so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        Snapshot(self.shards().map(|shard| shard.clone()).collect())
    }

    /// Rolls back to a snapshot: what a failover to a replica does that had not received the last writes. Numbers
    /// issued since will be issued again (R4).
    pub fn restore(&self, snapshot: &Snapshot) {
        self.shards().zip(&snapshot.0).for_each(|(mut shard, kept)| *shard = kept.clone());
    }

    fn shards(&self) -> impl Iterator<Item = MutexGuard<'_, Shard>> {
        self.0.shards.iter().map(lock)
    }

    fn shard(&self, conversation: &ConversationId) -> MutexGuard<'_, Shard> {
        // Without a random key, so that what falls out depends on the calls alone.
        let mut hasher = DefaultHasher::new();
        conversation.hash(&mut hasher);
        let shard = hasher.finish() % SHARDS as u64;
        lock(&self.0.shards[usize::try_from(shard).unwrap_or(0)])
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A panic elsewhere leaves no half-done change behind: every critical section is a few plain assignments.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

// Only `tickets` and `install` count as use; looking at a conversation does not keep it.
#[async_trait]
impl Registry for LocalRegistry {
    async fn tickets(&self, conversation: &ConversationId, request: TicketRequest) -> Result<Tickets, RegistryError> {
        let mut shard = self.shard(conversation);
        // A conversation that is not known is not metered either: there is nowhere to keep the count, and the sync
        // that follows makes it known before the next request.
        let Some(entry) = shard.get_mut(conversation) else { return Ok(Tickets::Absent) };
        entry.meter.add(self.now_ms(), request.wcu);
        Ok(entry.issue(request.count))
    }

    async fn install(&self, conversation: &ConversationId, next: SeqNo, horizon: SeqNo) -> Result<(), RegistryError> {
        let mut shard = self.shard(conversation);
        let entry = shard.get_or_insert_mut_ref(conversation, || Entry::new(next, horizon));
        entry.next = entry.next.max(next);
        entry.horizon = entry.horizon.max(horizon);
        Ok(())
    }

    async fn raise(&self, conversation: &ConversationId, horizon: SeqNo) -> Result<(), RegistryError> {
        if let Some(entry) = self.shard(conversation).peek_mut(conversation) {
            entry.horizon = entry.horizon.max(horizon);
        }
        Ok(())
    }

    async fn sample(&self, conversation: &ConversationId, epoch: SeqNo) -> Result<Sample, RegistryError> {
        let (shard, now_ms) = (self.shard(conversation), self.now_ms());
        Ok(shard.peek(conversation).map_or_else(Sample::default, |entry| Sample {
            rate_wcu_per_s: entry.meter.rate_per_s(now_ms),
            throttled_wcu_per_s: match entry.throttled_epoch == epoch {
                true => entry.throttled.rate_per_s(now_ms),
                false => 0.0,
            },
        }))
    }

    async fn throttled(&self, conversation: &ConversationId, row: ThrottledRow) -> Result<(), RegistryError> {
        if let Some(entry) = self.shard(conversation).peek_mut(conversation) {
            entry.throttles += 1;
            if row.epoch > entry.throttled_epoch {
                (entry.throttled, entry.throttled_epoch) = (Meter::default(), row.epoch);
            }
            if row.epoch == entry.throttled_epoch {
                entry.throttled.add(self.now_ms(), row.wcu);
            }
        }
        Ok(())
    }

    async fn rate_wcu_per_s(&self, conversation: &ConversationId) -> Result<f64, RegistryError> {
        let shard = self.shard(conversation);
        Ok(shard.peek(conversation).map_or(0.0, |entry| entry.meter.rate_per_s(self.now_ms())))
    }

    /// One pass over what is remembered, a shard at a time; never more than `limit` lines are kept of each.
    async fn hot(&self, limit: usize) -> Result<Vec<Hot>, RegistryError> {
        let now_ms = self.now_ms();
        let mut hottest = Vec::new();
        for shard in self.shards() {
            let lines = shard.iter().filter_map(|(conversation, entry)| {
                let rate_wcu_per_s = entry.meter.rate_per_s(now_ms);
                let throttles = entry.throttles;
                let line = || Hot { conversation: conversation.clone(), rate_wcu_per_s, throttles };
                (rate_wcu_per_s > 0.0).then(line)
            });
            let mut hot: Vec<_> = lines.collect();
            drop(shard);
            cut_to_hottest(&mut hot, limit);
            hottest.append(&mut hot);
        }
        cut_to_hottest(&mut hottest, limit);
        Ok(hottest)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::conformance;

    fn name(i: usize) -> ConversationId {
        ConversationId::new(&format!("conv_{i}")).unwrap()
    }

    fn seq(n: u64) -> SeqNo {
        SeqNo::new(n).unwrap()
    }

    async fn ask(registry: &LocalRegistry, i: usize) -> Tickets {
        registry.tickets(&name(i), TicketRequest { count: 1, wcu: 1 }).await.unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn conforms() {
        conformance::all(Arc::new(LocalRegistry::new(1_000))).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn conforms_in_real_time_and_in_parallel() {
        conformance::all(Arc::new(LocalRegistry::new(1_000))).await;
    }

    #[tokio::test]
    async fn memory_is_bounded_and_idle_conversations_fall_out() {
        let registry = LocalRegistry::new(100);
        registry.install(&name(0), seq(1), seq(1_000)).await.unwrap();
        registry.install(&name(1), seq(1), seq(1_000)).await.unwrap();
        for i in 2..2_000 {
            registry.install(&name(i), seq(1), seq(9)).await.unwrap();
            assert!(registry.conversations() <= 100_usize.next_multiple_of(SHARDS));
            // Looked at, but not used.
            registry.throttled(&name(1), ThrottledRow { wcu: 1, epoch: seq(1) }).await.unwrap();
            if i % 2 == 0 {
                let first = i as u64 / 2;
                assert_eq!(ask(&registry, 0).await, Tickets::Issued { first: seq(first), horizon: seq(1_000) });
            }
        }
        assert_eq!(ask(&registry, 1).await, Tickets::Absent);
        assert_eq!(registry.rate_wcu_per_s(&name(1)).await.unwrap(), 0.0);
        assert_eq!(registry.sample(&name(1), seq(1)).await.unwrap(), Sample::default());
    }

    #[tokio::test]
    async fn the_smallest_registry_still_works() {
        let registry = LocalRegistry::new(0);
        registry.install(&name(0), seq(1), seq(9)).await.unwrap();
        assert_eq!(ask(&registry, 0).await, Tickets::Issued { first: seq(1), horizon: seq(9) });
    }

    #[tokio::test(start_paused = true)]
    async fn a_failover_rolls_back_and_a_restart_wipes() {
        let registry = LocalRegistry::new(100);
        registry.install(&name(0), seq(1), seq(9)).await.unwrap();
        ask(&registry, 0).await;
        let replica = registry.snapshot();
        ask(&registry, 0).await;
        registry.install(&name(1), seq(1), seq(9)).await.unwrap();
        registry.restore(&replica);
        assert_eq!(ask(&registry, 0).await, Tickets::Issued { first: seq(2), horizon: seq(9) });
        assert_eq!(ask(&registry, 1).await, Tickets::Absent);
        registry.wipe();
        assert_eq!(ask(&registry, 0).await, Tickets::Absent);
        assert_eq!(registry.conversations(), 0);
        registry.restore(&replica);
        assert_eq!(ask(&registry, 0).await, Tickets::Issued { first: seq(2), horizon: seq(9) });
    }

    #[tokio::test(start_paused = true)]
    async fn the_hot_list_is_ordered_by_rate_then_name_and_leaves_out_the_idle() {
        let registry = LocalRegistry::new(1_000);
        let heat = |i: usize| if i.is_multiple_of(7) { 0 } else { i as u64 % 5 + 1 };
        for i in 0..200 {
            registry.install(&name(i), seq(1), seq(9)).await.unwrap();
            registry.tickets(&name(i), TicketRequest { count: 1, wcu: heat(i) }).await.unwrap();
        }
        let mut wanted: Vec<_> = (0..200).filter(|&i| heat(i) > 0).map(|i| (heat(i), name(i))).collect();
        wanted.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        for limit in [0, 1, 3, 50, 1_000] {
            let hot = registry.hot(limit).await.unwrap();
            let names: Vec<_> = hot.into_iter().map(|h| h.conversation).collect();
            assert_eq!(names, wanted.iter().take(limit).map(|(_, name)| name.clone()).collect::<Vec<_>>());
        }
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(registry.hot(10).await.unwrap(), []);
    }
}
