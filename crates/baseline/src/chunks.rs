//! Chunk keys, `conversation#(seq / B)`: the strongest rival. Reads are exact, with no layout to know.
//!
//! What it gives up: B is chosen once for all traffic. Chunks that take longer than a moment to fill are hot partitions,
//! and small ones leave every quiet conversation in many partitions, without a bound. The highest row can only be found by
//! asking whoever issues the tickets. A retry is the same message only as long as its caller remembers the ticket.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use saltern_core::ids::ConversationId;
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::Salt;
use saltern_core::message::Draft;
use saltern_core::page::Order;
use saltern_core::record::MessageRow;
use saltern_store::{Consistency, Query, Store, StoreError};

use crate::rows::{newest_first, put_absent};

pub struct ChunkKeys {
    store: Arc<dyn Store>,
    /// Consecutive seq_nos that share a partition.
    chunk: u64,
    /// The last ticket of each conversation.
    last: Mutex<HashMap<ConversationId, u64>>,
}

impl ChunkKeys {
    /// A chunk of 0 counts as 1.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, chunk: u64) -> Self {
        Self { store, chunk: chunk.max(1), last: Mutex::default() }
    }

    /// The next seq_no: 1, 2, 3 …
    #[must_use]
    pub fn ticket(&self, conversation: &ConversationId) -> u64 {
        let mut last = self.lock();
        let seq = last.entry(conversation.clone()).or_default();
        *seq += 1;
        *seq
    }

    /// One attempt; may be repeated with the same ticket.
    pub async fn put(
        &self,
        conversation: &ConversationId,
        seq: u64,
        draft: &Draft,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let partition = partition(conversation, self.chunk_of(seq))?;
        put_absent(&*self.store, Key { partition, sort: seq }, draft, now_ms).await
    }

    /// A ticket and one attempt to use it. If that fails, the seq_no stays empty.
    pub async fn append(&self, conversation: &ConversationId, draft: &Draft, now_ms: u64) -> Result<u64, StoreError> {
        let seq = self.ticket(conversation);
        self.put(conversation, seq, draft, now_ms).await?;
        Ok(seq)
    }

    /// The messages of the `limit` seq_nos below `before`, or below the next ticket, newest first.
    pub async fn page(
        &self,
        conversation: &ConversationId,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, MessageRow)>, StoreError> {
        let end = before.unwrap_or_else(|| self.lock().get(conversation).map_or(0, |last| last + 1));
        let from = end.saturating_sub(limit as u64).max(1);
        if from >= end {
            return Ok(Vec::new());
        }
        let to = end - 1;
        let query = |chunk: u64| {
            Ok(Query {
                partition: partition(conversation, chunk)?,
                from: from.max(chunk * self.chunk + 1),
                to: to.min((chunk + 1).saturating_mul(self.chunk)),
                order: Order::Descending,
                limit,
                consistency: Consistency::Strong,
            })
        };
        let chunks = self.chunk_of(from)..=self.chunk_of(to);
        let queries: Vec<_> = chunks.map(query).collect::<Result<_, StoreError>>()?;
        newest_first(&*self.store, &queries).await
    }

    fn chunk_of(&self, seq: u64) -> u64 {
        seq.saturating_sub(1) / self.chunk
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, u64>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The core has no keys for chunks, so a chunk goes by the name of a conversation, `a#3`. `enc` escapes the `#`, so it
/// meets no salt, claim or control record; it would meet a conversation that is itself called `a#3`, so a table serves
/// chunk keys or Saltern, not both. Fails for a name that leaves no room for the suffix.
fn partition(conversation: &ConversationId, chunk: u64) -> Result<PartitionKey, StoreError> {
    let name = ConversationId::new(&format!("{conversation}#{chunk}"));
    let name = name.map_err(|too_long| StoreError::Unavailable(Arc::new(too_long)))?;
    Ok(PartitionKey::messages(&name, Salt::Unsalted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{conversation, draft, store};

    #[tokio::test]
    async fn a_page_asks_two_partitions_at_most_for_exactly_its_rows() {
        const MESSAGES: u64 = 350;
        let store = store();
        let chat = ChunkKeys::new(Arc::new(store.clone()), 100);
        for seq in 1..=MESSAGES {
            assert_eq!(chat.append(&conversation(), &draft(&format!("m{seq}")), 0).await.unwrap(), seq);
        }
        for before in (0..=MESSAGES + 1).map(Some).chain([None]) {
            let counted = store.counts();
            let page = chat.page(&conversation(), before, 20).await.unwrap();
            let read = store.counts().since(counted);
            let end = before.unwrap_or(MESSAGES + 1);
            let wanted: Vec<u64> = (1..end).rev().take(20).collect();
            assert_eq!(page.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), wanted);
            assert!(read.queries <= 2, "{read:?}");
            assert_eq!(read.rows_read, wanted.len() as u64);
        }
    }

    #[tokio::test]
    async fn a_page_may_span_many_chunks() {
        let chat = ChunkKeys::new(Arc::new(store()), 3);
        for i in 0..11 {
            chat.append(&conversation(), &draft(&format!("m{i}")), 0).await.unwrap();
        }
        let page = chat.page(&conversation(), None, 10).await.unwrap();
        assert!(page.iter().map(|(seq, _)| *seq).eq((2..=11).rev()));
    }

    #[tokio::test]
    async fn a_ticket_can_be_tried_again_and_holds_one_message() {
        let chat = ChunkKeys::new(Arc::new(store()), 100);
        let seq = chat.ticket(&conversation());
        chat.put(&conversation(), seq, &draft("a"), 1).await.unwrap();
        chat.put(&conversation(), seq, &draft("a"), 2).await.unwrap();
        let other = chat.put(&conversation(), seq, &draft("b"), 3).await;
        assert!(matches!(other, Err(StoreError::Unavailable(_))));
        assert_eq!(chat.page(&conversation(), None, 20).await.unwrap().len(), 1);
    }
}
