//! The source documents' chat: `timestamp#message_id` as sort key and cursor, `message_id % N` as salt, N only rising.
//!
//! What it gives up: a retry is the same message only while N and the timestamp are the same; order is a clock's; and
//! every page asks every partition that there has ever been for a whole page.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saltern_core::heat::{HeatPolicy, HeatState, Sample, decide};
use saltern_core::ids::ConversationId;
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::Salt;
use saltern_core::message::Draft;
use saltern_core::meter::Meter;
use saltern_core::page::Order;
use saltern_core::record::MessageRow;
use saltern_store::{Consistency, Query, Store, StoreError};

use crate::rows::{fnv1a, newest_first, put_absent};

/// How many salts a conversation spreads over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// The same for ever; 0 counts as 1.
    Fixed(u16),
    /// `ceil(rate / 800)`, never less than it has been.
    Dynamic,
}

/// The sort key of the oldest message of a page: older ones are below it.
///
/// Milliseconds above 20 bits of a hash of the message_id, since the port's sort keys are numbers. The price: two messages
/// of one millisecond meet in about one case of a million. Under one salt the later one is then refused as `Unavailable`;
/// under two, a page that ends between them leaves one out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(pub u64);

/// Newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    pub messages: Vec<MessageRow>,
    /// Where older messages begin; `None` when the page was not filled.
    pub next: Option<Cursor>,
}

struct Heat {
    meter: Meter,
    n: u16,
}

pub struct ClassicChat {
    store: Arc<dyn Store>,
    spread: Spread,
    /// Stands for the documents' `conversation -> max_N` in Redis.
    heat: Mutex<HashMap<ConversationId, Heat>>,
}

impl ClassicChat {
    #[must_use]
    pub fn new(store: Arc<dyn Store>, spread: Spread) -> Self {
        Self { store, spread, heat: Mutex::default() }
    }

    /// The present N, which is also the highest so far.
    #[must_use]
    pub fn n(&self, conversation: &ConversationId) -> u16 {
        match self.spread {
            Spread::Fixed(n) => n.max(1),
            Spread::Dynamic => self.lock().get(conversation).map_or(1, |heat| heat.n),
        }
    }

    /// Where a message goes that is sent now, by the present N, which it counts towards.
    pub fn place(&self, conversation: &ConversationId, draft: &Draft, now_ms: u64) -> Key {
        let n = self.measure(conversation, draft.wcu(), now_ms);
        let hash = fnv1a(draft.message_id.as_str());
        let partition = PartitionKey::messages(conversation, salt(hash, n));
        Key { partition, sort: sort_key(hash, now_ms) }
    }

    /// One attempt of one conditional put; may be repeated with the same key.
    pub async fn put(&self, key: Key, draft: &Draft, now_ms: u64) -> Result<(), StoreError> {
        put_absent(&*self.store, key, draft, now_ms).await
    }

    /// A place and one attempt at it: no claim, no retry.
    pub async fn append(&self, conversation: &ConversationId, draft: &Draft, now_ms: u64) -> Result<(), StoreError> {
        self.put(self.place(conversation, draft, now_ms), draft, now_ms).await
    }

    /// `limit` rows of every partition, of which `limit` are kept.
    pub async fn page(
        &self,
        conversation: &ConversationId,
        before: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let Some(to) = before.map_or(Some(u64::MAX), |Cursor(sort)| sort.checked_sub(1)) else {
            return Ok(Page::default());
        };
        let query = |salt| Query {
            partition: PartitionKey::messages(conversation, salt),
            from: 0,
            to,
            order: Order::Descending,
            limit,
            consistency: Consistency::Strong,
        };
        let queries: Vec<_> = self.salts(conversation).into_iter().map(query).collect();
        let mut rows = newest_first(&*self.store, &queries).await?;
        rows.truncate(limit);
        let next = rows.last().filter(|_| rows.len() == limit).map(|(sort, _)| Cursor(*sort));
        Ok(Page { messages: rows.into_iter().map(|(_, row)| row).collect(), next })
    }

    /// Every salt under which a message may be. What was written before N grew stays under the unsuffixed key.
    fn salts(&self, conversation: &ConversationId) -> Vec<Salt> {
        let n = self.n(conversation);
        let unsuffixed = (n == 1 || self.spread == Spread::Dynamic).then_some(Salt::Unsalted);
        let suffixed = (0..n).filter(|_| n > 1).map(Salt::Of);
        unsuffixed.into_iter().chain(suffixed).collect()
    }

    /// The N for a write, which itself counts towards it.
    fn measure(&self, conversation: &ConversationId, wcu: u64, now_ms: u64) -> u16 {
        if let Spread::Fixed(n) = self.spread {
            return n.max(1);
        }
        let mut all = self.lock();
        let heat = all.entry(conversation.clone()).or_insert_with(|| Heat { meter: Meter::default(), n: 1 });
        heat.meter.add(now_ms, wcu);
        let sample = Sample { rate_wcu_per_s: heat.meter.rate_per_s(now_ms), throttled_wcu_per_s: 0.0 };
        // Saltern's own rule, without a memory: so it never sees a rate as low for long, and n only grows.
        (heat.n, _) = decide(&HeatPolicy::default(), HeatState::default(), heat.n, sample, now_ms);
        heat.n
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Heat>> {
        self.heat.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn salt(hash: u64, n: u16) -> Salt {
    match n {
        1 => Salt::Unsalted,
        // Below n, so it fits.
        n => Salt::Of(u16::try_from(hash % u64::from(n)).unwrap_or(0)),
    }
}

const HASH_BITS: u32 = 20;

/// Folded, because the lowest bits alone are what messages under one salt have in common.
fn sort_key(hash: u64, now_ms: u64) -> u64 {
    let folded = (hash ^ (hash >> HASH_BITS)) & ((1 << HASH_BITS) - 1);
    (now_ms << HASH_BITS) | folded
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::fixtures::{conversation, draft, store};

    const START_MS: u64 = 1_763_200_000_000;

    /// One second of just the traffic that needs `n` salts.
    async fn fill(chat: &ClassicChat, n: u64) {
        let messages = n * 800;
        for i in 0..messages {
            let now_ms = START_MS + i * 1_000 / messages;
            chat.append(&conversation(), &draft(&format!("m{i}")), now_ms).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_page_reads_a_page_of_every_partition() {
        for (spread, n, partitions) in [
            (Spread::Fixed(1), 1, 1),
            (Spread::Fixed(4), 4, 4),
            (Spread::Dynamic, 1, 1),
            (Spread::Dynamic, 4, 4 + 1),
            (Spread::Dynamic, 10, 10 + 1),
        ] {
            let store = store();
            let chat = ClassicChat::new(Arc::new(store.clone()), spread);
            fill(&chat, n).await;
            assert_eq!(u64::from(chat.n(&conversation())), n);
            let before = store.counts();
            let page = chat.page(&conversation(), None, 20).await.unwrap();
            let read = store.counts().since(before);
            assert_eq!((page.messages.len(), read.queries, read.rows_read), (20, partitions, 20 * partitions));
        }
    }

    #[tokio::test]
    async fn pages_lead_through_all_messages_newest_first() {
        let chat = ClassicChat::new(Arc::new(store()), Spread::Dynamic);
        fill(&chat, 3).await;
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = chat.page(&conversation(), before, 70).await.unwrap();
            seen.extend(page.messages);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert!(seen.is_sorted_by(|a, b| a.ingested_at_ms >= b.ingested_at_ms));
        assert_eq!(seen.len(), 3 * 800);
        assert_eq!(seen.into_iter().map(|row| row.message_id).collect::<HashSet<_>>().len(), 3 * 800);
    }

    #[tokio::test]
    async fn n_only_rises() {
        let chat = ClassicChat::new(Arc::new(store()), Spread::Dynamic);
        fill(&chat, 3).await;
        chat.append(&conversation(), &draft("an hour later"), START_MS + 3_600_000).await.unwrap();
        assert_eq!(chat.n(&conversation()), 3);
    }

    /// The known flaw of the design, which Saltern's claims close (I2).
    #[tokio::test]
    async fn a_retry_after_n_grew_doubles_the_message() {
        let (chat, once) = (ClassicChat::new(Arc::new(store()), Spread::Dynamic), draft("once"));
        let copies = async || {
            let page = chat.page(&conversation(), None, 10_000).await.unwrap();
            page.messages.iter().filter(|row| row.message_id == once.message_id).count()
        };
        chat.append(&conversation(), &once, START_MS).await.unwrap();
        chat.append(&conversation(), &once, START_MS).await.unwrap();
        assert_eq!(copies().await, 1);
        fill(&chat, 2).await;
        chat.append(&conversation(), &once, START_MS).await.unwrap();
        assert_eq!(copies().await, 2);
    }
}
