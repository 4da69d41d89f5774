//! History in memory. That a row exists is final, and so is what it says, but for where its content is: who changes that
//! makes this forget the row, and where others write too, nothing is remembered for long. That a row is absent is
//! never remembered.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use saltern_core::ids::{ConversationId, ParticipantId};
use saltern_core::limits::STRIPE;
use saltern_core::page::{Order, Placed, Row};
use saltern_core::record::MessageRow;
use saltern_core::seq::{SeqNo, SeqRange};
use tokio::time::Instant;

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
    /// How long what was read is good for; `None` for ever.
    lasts: Option<Duration>,
}

/// What had been forgotten when a read began: what it finds may be remembered only if nothing was since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reads(u64);

struct Shard {
    stripes: LruCache<(ConversationId, u64), Stripe>,
    bytes: usize,
    forgotten: u64,
}

/// 32 places in a row; those that have been seen.
struct Stripe {
    rows: [Option<Row>; STRIPE_PLACES],
    bytes: usize,
    since: Instant,
}

impl RowCache {
    pub(super) fn new(bytes_max: usize, lasts: Option<Duration>) -> Self {
        let shard = || Mutex::new(Shard { stripes: LruCache::unbounded(), bytes: 0, forgotten: 0 });
        let shards = std::iter::repeat_with(shard).take(SHARDS).collect();
        Self { shards, shard_bytes_max: bytes_max / SHARDS, lasts }
    }

    /// Before a read whose rows are to be remembered.
    pub(super) fn before_read(&self, conversation: &ConversationId) -> Reads {
        Reads(self.shard(conversation).forgotten)
    }

    /// Forgets rows, and those that are being read now.
    pub(super) fn forget(&self, conversation: &ConversationId, range: SeqRange) {
        let mut shard = self.shard(conversation);
        shard.forgotten += 1;
        for stripe in stripe(range.from)..=stripe(range.to) {
            let gone = shard.stripes.pop(&(conversation.clone(), stripe));
            shard.bytes -= gone.map_or(0, |stripe| stripe.bytes);
        }
    }

    fn is_good(&self, stripe: &Stripe) -> bool {
        self.lasts.is_none_or(|lasts| stripe.since.elapsed() < lasts)
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
            let rows = &shard.stripes.get(&key).filter(|stripe| self.is_good(stripe))?.rows;
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

    pub(super) fn put(&self, conversation: &ConversationId, rows: &[Placed<Row>], read: Reads) {
        let mut shard = self.shard(conversation);
        let shard = &mut *shard;
        if shard.forgotten != read.0 {
            return;
        }
        for neighbours in rows.chunk_by(|a, b| stripe(a.seq) == stripe(b.seq)) {
            let key = (conversation.clone(), stripe(neighbours[0].seq));
            if let Some(old) = shard.stripes.peek(&key).filter(|stripe| !self.is_good(stripe)) {
                shard.bytes -= old.bytes;
                shard.stripes.pop(&key);
            }
            let cached = shard.stripes.get_or_insert_mut(key, || {
                shard.bytes += STRIPE_BYTES;
                Stripe { rows: Default::default(), bytes: STRIPE_BYTES, since: Instant::now() }
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
    let receiver = row.receiver_id.as_ref().map_or("", ParticipantId::as_str);
    let timestamp = row.timestamp.as_deref().unwrap_or("");
    let leaf = row.archived_at().map_or("", |at| at.leaf.as_str());
    let texts =
        [row.message_id.as_str(), row.sender_id.as_str(), receiver, timestamp, row.text().unwrap_or_default(), leaf];
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

    fn put(cache: &RowCache, conversation: &ConversationId, rows: &[Placed<Row>]) {
        cache.put(conversation, rows, cache.before_read(conversation));
    }

    /// A row that was read before it changed must not be remembered after that.
    #[test]
    fn what_is_forgotten_does_not_come_back() {
        let cache = RowCache::new(1 << 20, None);
        let c = conversation(0);
        let read = cache.before_read(&c);
        cache.put(&c, &rows(range(1, 100)), read);
        cache.forget(&c, range(40, 41));
        assert_eq!(cache.get(&c, range(33, 34), Order::Ascending), None);
        assert!(cache.get(&c, range(1, 32), Order::Ascending).is_some());
        cache.put(&c, &rows(range(1, 100)), read);
        assert_eq!(cache.get(&c, range(33, 34), Order::Ascending), None);
        put(&cache, &c, &rows(range(1, 100)));
        assert!(cache.get(&c, range(1, 100), Order::Ascending).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn where_others_write_nothing_is_remembered_for_long() {
        let cache = RowCache::new(1 << 20, Some(Duration::from_secs(60)));
        let c = conversation(0);
        put(&cache, &c, &rows(range(1, 10)));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(cache.get(&c, range(1, 10), Order::Ascending).is_some());
        put(&cache, &c, &rows(range(11, 20)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(cache.get(&c, range(1, 20), Order::Ascending), None);
        put(&cache, &c, &rows(range(1, 10)));
        assert_eq!(cache.get(&c, range(1, 20), Order::Ascending), None);
        assert!(cache.get(&c, range(1, 10), Order::Ascending).is_some());
    }

    #[test]
    fn a_window_is_answered_whole_or_not_at_all() {
        let cache = RowCache::new(1 << 20, None);
        let c = conversation(0);
        put(&cache, &c, &rows(range(20, 70)));
        assert_eq!(cache.get(&c, range(20, 70), Order::Ascending), Some(rows(range(20, 70))));
        let mut descending = rows(range(30, 40));
        descending.reverse();
        assert_eq!(cache.get(&c, range(30, 40), Order::Descending), Some(descending));
        assert_eq!(cache.get(&c, range(19, 30), Order::Ascending), None);
        assert_eq!(cache.get(&c, range(60, 71), Order::Ascending), None);
        assert_eq!(cache.get(&conversation(1), range(30, 40), Order::Ascending), None);
        let mut later = rows(range(71, 80));
        later.reverse();
        put(&cache, &c, &later);
        assert_eq!(cache.get(&c, range(20, 80), Order::Ascending), Some(rows(range(20, 80))));
    }

    #[test]
    fn memory_is_bounded_and_counted_right() {
        let cache = RowCache::new(400_000, None);
        for i in 0..200 {
            put(&cache, &conversation(i), &rows(range(1, 100)));
            put(&cache, &conversation(i), &rows(range(50, 120)));
        }
        for shard in &cache.shards {
            let shard = shard.lock().unwrap();
            assert!(shard.bytes <= 25_000 && shard.bytes > 0);
            assert_eq!(shard.bytes, shard.stripes.iter().map(|(_, stripe)| stripe.bytes).sum::<usize>());
        }
    }
}
