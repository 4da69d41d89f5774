//! History in memory. Rows are final once they exist, so nothing here can be out of date; that a row is absent is never
//! remembered.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use saltern_core::ids::{ConversationId, ParticipantId};
use saltern_core::limits::STRIPE;
use saltern_core::page::{Order, Placed, Row};
use saltern_core::record::MessageRow;
use saltern_core::seq::{SeqNo, SeqRange};

const SHARDS: usize = 16;
const STRIPE_PLACES: usize = 32;
const _: () = assert!(STRIPE_PLACES as u64 == STRIPE);
/// What a row takes beside its texts, and a stripe beside its rows.
const ROW_BYTES: usize = 256;
const STRIPE_BYTES: usize = 768;

/// Rows of many conversations, the least read forgotten first.
pub(super) struct RowCache {
    shards: Vec<Mutex<Shard>>,
    shard_bytes_max: usize,
}

struct Shard {
    stripes: LruCache<(ConversationId, u64), Stripe>,
    bytes: usize,
}

/// 32 places in a row; those that have been seen.
#[derive(Default)]
struct Stripe {
    rows: [Option<Row>; STRIPE_PLACES],
    bytes: usize,
}

impl RowCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        let shard = || Mutex::new(Shard { stripes: LruCache::unbounded(), bytes: 0 });
        Self { shards: std::iter::repeat_with(shard).take(SHARDS).collect(), shard_bytes_max: bytes_max / SHARDS }
    }

    fn shard(&self, conversation: &ConversationId) -> MutexGuard<'_, Shard> {
        let mut hasher = DefaultHasher::new();
        conversation.hash(&mut hasher);
        let shard = usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or(0);
        self.shards[shard].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All rows of the window, if all of them are here.
    pub(super) fn get(
        &self,
        conversation: &ConversationId,
        window: SeqRange,
        order: Order,
    ) -> Option<Vec<Placed<Row>>> {
        let mut found = Vec::with_capacity(usize::try_from(window.count()).unwrap_or(0));
        let mut shard = self.shard(conversation);
        let mut key = (conversation.clone(), stripe(window.from));
        while key.1 <= stripe(window.to) {
            let rows = &shard.stripes.get(&key)?.rows;
            let part = SeqRange { from: first(key.1), to: first(key.1 + 1).minus(1) }.intersect(window)?;
            for seq in part.iter() {
                found.push(Placed { seq, value: rows[place(seq)].clone()? });
            }
            key.1 += 1;
        }
        if order == Order::Descending {
            found.reverse();
        }
        Some(found)
    }

    pub(super) fn put(&self, conversation: &ConversationId, rows: &[Placed<Row>]) {
        let mut shard = self.shard(conversation);
        let shard = &mut *shard;
        for neighbours in rows.chunk_by(|a, b| stripe(a.seq) == stripe(b.seq)) {
            let key = (conversation.clone(), stripe(neighbours[0].seq));
            let cached = shard.stripes.get_or_insert_mut(key, || {
                shard.bytes += STRIPE_BYTES;
                Stripe { bytes: STRIPE_BYTES, ..Stripe::default() }
            });
            for row in neighbours {
                let slot = &mut cached.rows[place(row.seq)];
                if slot.is_none() {
                    let bytes = row.value.as_ref().map_or(0, bytes_of);
                    cached.bytes += bytes;
                    shard.bytes += bytes;
                    *slot = Some(row.value.clone());
                }
            }
        }
        while shard.bytes > self.shard_bytes_max
            && let Some((_, stripe)) = shard.stripes.pop_lru()
        {
            shard.bytes -= stripe.bytes;
        }
    }
}

fn stripe(seq: SeqNo) -> u64 {
    (seq.get() - 1) / STRIPE
}

fn first(stripe: u64) -> SeqNo {
    SeqNo::clamped(stripe * STRIPE + 1)
}

fn place(seq: SeqNo) -> usize {
    usize::try_from((seq.get() - 1) % STRIPE).unwrap_or(0)
}

fn bytes_of(row: &Arc<MessageRow>) -> usize {
    let body = &row.body;
    let receiver = body.receiver_id.as_ref().map_or("", ParticipantId::as_str);
    let timestamp = body.timestamp.as_deref().unwrap_or("");
    let texts = [row.message_id.as_str(), body.sender_id.as_str(), receiver, &body.content, timestamp];
    ROW_BYTES + texts.iter().map(|text| text.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use saltern_core::ids::MessageId;
    use saltern_core::message::{Body, Draft};

    use super::*;

    fn conversation(i: u64) -> ConversationId {
        ConversationId::new(&format!("c{i}")).unwrap()
    }

    fn rows(range: SeqRange) -> Vec<Placed<Row>> {
        let body = |seq| Body {
            sender_id: ParticipantId::new("s").unwrap(),
            receiver_id: None,
            content: format!("{seq}"),
            timestamp: None,
        };
        let draft = |seq| Draft::new(MessageId::new("m").unwrap(), body(seq)).unwrap();
        let row = |seq: SeqNo| (!seq.get().is_multiple_of(5)).then(|| Arc::new(MessageRow::new(&draft(seq), 0)));
        range.iter().map(|seq| Placed { seq, value: row(seq) }).collect()
    }

    fn range(from: u64, to: u64) -> SeqRange {
        SeqRange::new(SeqNo::clamped(from), SeqNo::clamped(to)).unwrap()
    }

    #[test]
    fn a_window_is_answered_whole_or_not_at_all() {
        let cache = RowCache::new(1 << 20);
        let c = conversation(0);
        cache.put(&c, &rows(range(20, 70)));
        assert_eq!(cache.get(&c, range(20, 70), Order::Ascending), Some(rows(range(20, 70))));
        let mut descending = rows(range(30, 40));
        descending.reverse();
        assert_eq!(cache.get(&c, range(30, 40), Order::Descending), Some(descending));
        assert_eq!(cache.get(&c, range(19, 30), Order::Ascending), None);
        assert_eq!(cache.get(&c, range(60, 71), Order::Ascending), None);
        assert_eq!(cache.get(&conversation(1), range(30, 40), Order::Ascending), None);
        let mut later = rows(range(71, 80));
        later.reverse();
        cache.put(&c, &later);
        assert_eq!(cache.get(&c, range(20, 80), Order::Ascending), Some(rows(range(20, 80))));
    }

    #[test]
    fn memory_is_bounded_and_counted_right() {
        let cache = RowCache::new(400_000);
        for i in 0..200 {
            cache.put(&conversation(i), &rows(range(1, 100)));
            cache.put(&conversation(i), &rows(range(50, 120)));
        }
        for shard in &cache.shards {
            let shard = shard.lock().unwrap();
            assert!(shard.bytes <= 25_000 && shard.bytes > 0);
            assert_eq!(shard.bytes, shard.stripes.iter().map(|(_, stripe)| stripe.bytes).sum::<usize>());
        }
    }
}
