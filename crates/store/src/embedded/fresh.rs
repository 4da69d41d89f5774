//! What is in the log, in memory: as a hash table where keys are asked for by name, in order where ranges are.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::mem;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use fjall::Slice;
use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry, HashTable};
use saltern_core::page::Order;

use super::filter::Filter;
use super::log::Change;
use super::options::PAGE_BYTES_MAX;
use super::physical::{Space, conversation_of, partition_of, sort_of};
use super::texts::{Place, Texts};

/// What an entry takes beside its bytes, in texts or with texts of its own, and what a partition takes: about.
const PLACED_BYTES: usize = 40;
const OWNED_BYTES: usize = 120;
const PARTITION_BYTES: usize = 280;

/// `None` where a key was removed.
type Value = Option<Slice>;

/// The changes of some segments of the log, the latest of each key.
#[derive(Default)]
pub(super) struct Layer {
    /// Of rows, whose keys are told by where they stand, the values; of claims both.
    texts: Texts,
    rows: HashMap<Box<[u8]>, Partition, DefaultHashBuilder>,
    claims: Claims,
    campaigns: BTreeMap<Slice, Value>,
    due: BTreeMap<Slice, Value>,
    bytes: usize,
}

/// Where the rows of a partition are, by their sort keys.
pub(super) struct Partition {
    rows: BTreeMap<u64, Place>,
    /// Whether none of them is in tables.
    pub(super) is_new: bool,
}

/// Where claims are, by their keys.
#[derive(Default)]
struct Claims {
    places: HashTable<(u64, Place)>,
    hasher: DefaultHashBuilder,
}

impl Claims {
    fn insert(&mut self, key: &[u8], place: Place, texts: &Texts) {
        let hash = self.hasher.hash_one(key);
        match self.places.entry(hash, |there| is_key(there, hash, key, texts), |(hash, _)| *hash) {
            Entry::Occupied(mut there) => there.get_mut().1 = place,
            Entry::Vacant(free) => drop(free.insert((hash, place))),
        }
    }

    fn get(&self, hash: u64, key: &[u8], texts: &Texts) -> Option<Place> {
        self.places.find(hash, |there| is_key(there, hash, key, texts)).map(|(_, place)| *place)
    }
}

/// The table asks of whatever looks alike in a few bits of the hash: the text is only worth a look if all of them agree.
fn is_key(there: &(u64, Place), hash: u64, key: &[u8], texts: &Texts) -> bool {
    there.0 == hash && texts.get(there.1).0 == key
}

impl Layer {
    /// With room for as many claims, which would otherwise be moved over and over while it grows.
    fn as_large_as(other: &Self) -> Self {
        let places = HashTable::with_capacity(other.claims.places.len());
        let claims = Claims { places, hasher: other.claims.hasher.clone() };
        Self { claims, ..Self::default() }
    }

    pub(super) fn insert(&mut self, change: &Change) {
        let (key, value) = (change.key(), change.value());
        self.bytes += change.len();
        self.bytes += match change.space {
            Space::Rows | Space::Claims => PLACED_BYTES,
            Space::Campaigns | Space::Due => OWNED_BYTES,
        };
        match change.space {
            Space::Rows => {
                // Every key of this space is made of both.
                let (Some(partition), Some(sort)) = (partition_of(key), sort_of(key)) else { return };
                let place = self.texts.push(&[], value);
                if let Some(partition) = self.rows.get_mut(partition) {
                    partition.rows.insert(sort, place);
                    partition.is_new &= change.is_new;
                } else {
                    self.bytes += PARTITION_BYTES + partition.len();
                    let rows = BTreeMap::from([(sort, place)]);
                    self.rows.insert(partition.into(), Partition { rows, is_new: change.is_new });
                }
            }
            Space::Claims => {
                let place = self.texts.push(key, value);
                self.claims.insert(key, place, &self.texts);
            }
            Space::Campaigns => {
                self.campaigns.insert(key.into(), value.map(Slice::from));
            }
            Space::Due => {
                self.due.insert(key.into(), value.map(Slice::from));
            }
        }
    }

    fn value(&self, place: Place) -> Value {
        self.texts.get(place).1.map(Slice::from)
    }

    fn get(&self, space: Space, key: &[u8]) -> Option<Value> {
        match space {
            Space::Rows => self.rows.get(partition_of(key)?)?.rows.get(&sort_of(key)?).map(|place| self.value(*place)),
            Space::Claims => self.claim(self.claims.hasher.hash_one(key), key),
            Space::Campaigns => self.campaigns.get(key).cloned(),
            Space::Due => self.due.get(key).cloned(),
        }
    }

    fn claim(&self, hash: u64, key: &[u8]) -> Option<Value> {
        self.claims.get(hash, key, &self.texts).map(|place| self.value(place))
    }

    fn in_order(&self, space: Space) -> Option<&BTreeMap<Slice, Value>> {
        match space {
            Space::Campaigns => Some(&self.campaigns),
            Space::Due => Some(&self.due),
            Space::Rows | Space::Claims => None,
        }
    }

    /// Claims in the order of their keys. First by conversation, so that there is little left to compare: those of one have long
    /// beginnings in common.
    pub(super) fn claims_in_order(&self) -> impl Iterator<Item = (Slice, Value)> {
        let mut conversations: Vec<(&[u8], Vec<_>)> = Vec::new();
        let (mut known, mut at) = (HashMap::<_, _, DefaultHashBuilder>::default(), 0);
        // As they came in, which is how they lie in memory, and mostly some of one conversation behind each other.
        for (key, value) in self.texts.iter().filter(|(key, _)| !key.is_empty()) {
            let conversation = conversation_of(key);
            if conversations.get(at).is_none_or(|(there, _)| *there != conversation) {
                at = *known.entry(conversation).or_insert(conversations.len());
                if at == conversations.len() {
                    conversations.push((conversation, Vec::new()));
                }
            }
            conversations[at].1.push((key, value));
        }
        conversations.sort_unstable_by_key(|(conversation, _)| *conversation);
        conversations.into_iter().flat_map(|(_, mut claims)| {
            claims.sort_by_key(|(key, _)| *key);
            // Of those that were put twice, the latter.
            claims.dedup_by(|later, earlier| {
                later.0 == earlier.0 && {
                    *earlier = *later;
                    true
                }
            });
            claims.into_iter().map(|(key, value)| (key.into(), value.map(Slice::from)))
        })
    }

    /// Changes of campaigns or of what is due, in the order of their keys.
    pub(super) fn others_in_order(&self, space: Space) -> impl Iterator<Item = (Slice, Value)> {
        self.in_order(space).into_iter().flatten().map(|(key, value)| (key.clone(), value.clone()))
    }

    /// Partitions of rows, in the order of their keys.
    pub(super) fn partitions(&self) -> Vec<(&[u8], &Partition)> {
        let mut partitions: Vec<_> = self.rows.iter().map(|(name, partition)| (&**name, partition)).collect();
        partitions.sort_unstable_by_key(|(name, _)| *name);
        partitions
    }

    /// The rows of one of its partitions, by their sort keys. Rows are never removed.
    pub(super) fn rows_of<'a>(&'a self, partition: &'a Partition) -> impl Iterator<Item = (u64, &'a [u8])> {
        partition.rows.iter().map(|(sort, place)| (*sort, self.texts.get(*place).1.unwrap_or_default()))
    }
}

/// All of the log: what comes in, over what is just moving into the engine's tables. And which claims are surely not in those.
#[derive(Default)]
pub(super) struct Fresh {
    layers: RwLock<Layers>,
    moved_claims: Filter,
    /// That of all layers.
    hasher: DefaultHashBuilder,
}

#[derive(Default)]
struct Layers {
    active: Layer,
    moving: Option<Arc<Layer>>,
    moved: u64,
}

impl Layers {
    /// The newest first.
    fn all(&self) -> impl Iterator<Item = &Layer> {
        std::iter::once(&self.active).chain(self.moving.as_deref())
    }
}

/// What the log says of a key.
pub(super) struct Said {
    /// Nothing, a value, or that there is no such key.
    pub(super) value: Option<Value>,
    /// How many layers had moved into the engine at that time.
    pub(super) moved: u64,
}

/// The log's part of a range, in the order asked for.
pub(super) struct Part<K> {
    pub(super) entries: Vec<(K, Value)>,
    /// Whether there may be more behind the last entry.
    pub(super) is_cut: bool,
}

impl Fresh {
    pub(super) fn new(active: Layer) -> Self {
        let hasher = active.claims.hasher.clone();
        Self { layers: RwLock::new(Layers { active, ..Layers::default() }), moved_claims: Filter::default(), hasher }
    }

    fn read(&self) -> RwLockReadGuard<'_, Layers> {
        // No code panics while it holds the lock.
        self.layers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Layers> {
        self.layers.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, space: Space, key: &[u8]) -> Said {
        if space == Space::Claims {
            return self.claim(key);
        }
        let layers = self.read();
        Said { value: layers.all().find_map(|layer| layer.get(space, key)), moved: layers.moved }
    }

    /// The filter is asked after the layers: a claim is in it before it leaves them.
    fn claim(&self, key: &[u8]) -> Said {
        let hash = self.hasher.hash_one(key);
        let layers = self.read();
        let (value, moved) = (layers.all().find_map(|layer| layer.claim(hash, key)), layers.moved);
        drop(layers);
        Said { value: value.or_else(|| self.moved_claims.excludes(hash).then_some(None)), moved }
    }

    /// Makes changes visible.
    pub(super) fn apply<'a>(&self, changes: impl IntoIterator<Item = &'a Change>) {
        let mut layers = self.write();
        changes.into_iter().for_each(|change| layers.active.insert(change));
    }

    /// What has come in and is not yet set apart to be moved.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.read().active.bytes
    }

    /// Sets apart what has come in, to be moved.
    pub(super) fn set_apart(&self) -> Arc<Layer> {
        let mut layers = self.write();
        let next = Layer::as_large_as(&layers.active);
        let layer = Arc::new(mem::replace(&mut layers.active, next));
        layers.moving = Some(Arc::clone(&layer));
        layer
    }

    /// Tells of a claim in the engine's tables that was there from the start.
    pub(super) fn has_moved(&self, claim: &[u8]) {
        self.moved_claims.insert(self.hasher.hash_one(claim));
    }

    /// All claims that were there from the start have been told of.
    pub(super) fn has_told_all(&self) {
        self.moved_claims.complete();
    }

    /// What was set apart is in the engine.
    pub(super) fn moved(&self) {
        let moving = self.read().moving.clone();
        for (hash, _) in moving.iter().flat_map(|layer| &layer.claims.places) {
            self.moved_claims.insert(*hash);
        }
        drop(moving);
        let mut layers = self.write();
        let layer = layers.moving.take();
        layers.moved += 1;
        drop(layers);
        // After the lock: there is much to be freed.
        drop(layer);
    }

    /// The highest row of a partition.
    pub(super) fn top(&self, partition: &[u8]) -> Option<u64> {
        let layers = self.read();
        layers.all().filter_map(|layer| Some(*layer.rows.get(partition)?.rows.last_key_value()?.0)).max()
    }

    /// Rows of one partition, at least so many that are there if there are so many, or a page full of bytes.
    pub(super) fn rows(
        &self,
        partition: &[u8],
        bounds: impl RangeBounds<u64> + Clone,
        order: Order,
        limit: usize,
    ) -> Part<u64> {
        let layers = self.read();
        let maps = layers.all().filter_map(|layer| Some((layer, &layer.rows.get(partition)?.rows)));
        let (layers, maps): (Vec<_>, Vec<_>) = maps.unzip();
        let enough = Enough { present: limit, bytes: PAGE_BYTES_MAX };
        part(&maps, bounds, order, enough, |map, place| layers[map].value(*place))
    }

    /// A range of a space whose keys are in order here.
    pub(super) fn range(
        &self,
        space: Space,
        bounds: (Bound<Slice>, Bound<Slice>),
        order: Order,
        limit: usize,
    ) -> Part<Slice> {
        let layers = self.read();
        let maps: Vec<_> = layers.all().filter_map(|layer| layer.in_order(space)).collect();
        part(&maps, bounds, order, Enough { present: limit, bytes: usize::MAX }, |_, value| value.clone())
    }
}

/// When a part may end before its range does.
struct Enough {
    present: usize,
    bytes: usize,
}

/// The first entries of several maps, of which the first is the newest. `value` is told by which map and what is there.
fn part<K: Ord + Clone, V>(
    maps: &[&BTreeMap<K, V>],
    bounds: impl RangeBounds<K> + Clone,
    order: Order,
    enough: Enough,
    value: impl Fn(usize, &V) -> Value,
) -> Part<K> {
    let mut entries: Vec<(K, Value)> = Vec::new();
    let mut ranges: Vec<_> = maps.iter().map(|map| map.range(bounds.clone())).collect();
    let mut heads: Vec<_> = ranges.iter_mut().map(|range| step(range, order)).collect();
    let (mut present, mut bytes) = (0, 0);
    while present < enough.present && bytes < enough.bytes {
        let first = heads.iter().flatten().map(|(key, _)| *key);
        let first = match order {
            Order::Ascending => first.min(),
            Order::Descending => first.max(),
        };
        let Some(first) = first.cloned() else { return Part { entries, is_cut: false } };
        let mut newest = None;
        for (map, (head, range)) in heads.iter_mut().zip(&mut ranges).enumerate() {
            if let Some((_, found)) = head.take_if(|(key, _)| **key == first) {
                newest.get_or_insert((map, found));
                *head = step(range, order);
            }
        }
        let newest = newest.and_then(|(map, found)| value(map, found));
        present += usize::from(newest.is_some());
        bytes += newest.as_ref().map_or(0, |value| value.len());
        entries.push((first, newest));
    }
    Part { entries, is_cut: true }
}

fn step<I: DoubleEndedIterator>(range: &mut I, order: Order) -> Option<I::Item> {
    match order {
        Order::Ascending => range.next(),
        Order::Descending => range.next_back(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever asks for rows copies them, and takes no more than a page of them: the rest would be copied for nothing.
    #[test]
    fn rows_are_handed_out_by_the_page() {
        let fresh = Fresh::default();
        let key = |sort: u64| [b"c\0".as_slice(), &sort.to_be_bytes()].concat();
        let rows: Vec<_> = (1..=10).map(|sort| Change::put(Space::Rows, key(sort), &[7; 300 * 1_024])).collect();
        fresh.apply(&rows);
        for (order, sorts) in [(Order::Ascending, [1, 2, 3, 4]), (Order::Descending, [10, 9, 8, 7])] {
            let part = fresh.rows(b"c\0", 0..=u64::MAX, order, 10);
            assert_eq!(part.entries.iter().map(|(sort, _)| *sort).collect::<Vec<_>>(), sorts);
            assert!(part.is_cut);
        }
        let part = fresh.rows(b"c\0", 8..=u64::MAX, Order::Ascending, 10);
        assert_eq!((part.entries.len(), part.is_cut), (3, false));
    }
}
