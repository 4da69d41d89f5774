//! Rows in the engine's tables: those of a stripe that moved there together are one entry.
//!
//! What merging tables costs goes by their entries, and rows of a stripe are mostly written and read together. A row is in one
//! entry only: what replaces it goes into the same one. Entries of a stripe may interleave, if its rows came out of order.

use std::iter::Peekable;
use std::ops::{Bound, RangeInclusive};

use fjall::Slice;
use saltern_core::page::Order;

use super::codec::{Damage, decode_pack, encode_pack, stripe_end};
use super::engine::Engine;
use super::fresh::{Layer, Partition};
use super::physical::{Space, partition_of, sort_of};
use crate::port::StoreError;

/// From here on another entry begins, so that whoever reads one row need not read a megabyte.
const PACK_BYTES_MAX: usize = 16 * 1_024;

type Entry = (Slice, Slice);

/// Rows of one stripe, in the order asked for.
pub(super) struct Stripe {
    /// Of one of them.
    key: Slice,
    rows: Vec<(u64, Slice)>,
}

impl Stripe {
    pub(super) fn partition(&self) -> Result<&[u8], Damage> {
        partition_of(&self.key).ok_or(Damage::Key)
    }

    pub(super) fn into_rows(self) -> Vec<(u64, Slice)> {
        self.rows
    }
}

/// Entries in order, stripe by stripe.
struct Stripes<I: Iterator<Item = Result<Entry, StoreError>>> {
    entries: Peekable<I>,
    within: RangeInclusive<u64>,
    order: Order,
}

/// The rows that stand in entries which come in order, as far as their sort keys are within a range.
pub(super) fn stripes(
    entries: impl Iterator<Item = Result<Entry, StoreError>>,
    within: RangeInclusive<u64>,
    order: Order,
) -> impl Iterator<Item = Result<Stripe, StoreError>> {
    Stripes { entries: entries.peekable(), within, order }
}

impl<I: Iterator<Item = Result<Entry, StoreError>>> Stripes<I> {
    fn unpack(&self, entry: &Entry, rows: &mut Vec<(u64, Slice)>) -> Result<(), Damage> {
        let found = rows_in(entry)?.into_iter().filter(|(sort, _)| self.within.contains(sort));
        rows.extend(found.map(|(sort, row)| (sort, row.into())));
        Ok(())
    }

    fn stripe(&mut self, first: Entry) -> Result<Stripe, StoreError> {
        let (mut rows, mut entries) = (Vec::new(), 1);
        self.unpack(&first, &mut rows)?;
        let is_next = |next: &Result<Entry, StoreError>| next.as_ref().map_or(true, |(key, _)| is_same(key, &first.0));
        while let Some(next) = self.entries.next_if(is_next) {
            self.unpack(&next?, &mut rows)?;
            entries += 1;
        }
        if entries > 1 {
            rows.sort_unstable_by_key(|(sort, _)| *sort);
        }
        if self.order == Order::Descending {
            rows.reverse();
        }
        Ok(Stripe { key: first.0, rows })
    }
}

impl<I: Iterator<Item = Result<Entry, StoreError>>> Iterator for Stripes<I> {
    type Item = Result<Stripe, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.entries.next()?;
        Some(first.and_then(|first| self.stripe(first)))
    }
}

/// Whether two entries are of the same stripe of the same partition.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    partition_of(a) == partition_of(b) && sort_of(a).map(stripe_end) == sort_of(b).map(stripe_end)
}

impl Engine {
    /// Rows of a partition, by their sort keys.
    pub(super) fn rows(
        &self,
        partition: &[u8],
        within: RangeInclusive<u64>,
        order: Order,
    ) -> impl Iterator<Item = Result<(u64, Slice), StoreError>> + use<> {
        let stripes = stripes(self.entries(partition, &within, order), within, order);
        stripes.flat_map(|stripe| each(stripe.map(Stripe::into_rows)))
    }

    pub(super) fn row(&self, key: &[u8]) -> Result<Option<Slice>, StoreError> {
        let (Some(partition), Some(sort @ 1..)) = (partition_of(key), sort_of(key)) else {
            return self.get(Space::Rows, key);
        };
        for entry in self.entries(partition, &(sort..=sort), Order::Ascending) {
            let entry = entry?;
            let rows = rows_in(&entry)?;
            if let Ok(at) = rows.binary_search_by_key(&sort, |(sort, _)| *sort) {
                return Ok(Some(rows[at].1.into()));
            }
        }
        Ok(None)
    }

    /// Entries that may hold rows of a range: each stands under the key of its last one.
    fn entries(
        &self,
        partition: &[u8],
        within: &RangeInclusive<u64>,
        order: Order,
    ) -> impl Iterator<Item = Result<Entry, StoreError>> + use<> {
        let key = |sort: u64| Bound::Included([partition, &sort.to_be_bytes()].concat());
        self.range(Space::Rows, (key(*within.start()), key(stripe_end(*within.end()))), order)
    }

    /// A layer's rows as entries, in the order of their keys.
    pub(super) fn packed<'a>(
        &'a self,
        layer: &'a Layer,
    ) -> impl Iterator<Item = Result<(Slice, Option<Slice>), StoreError>> + 'a {
        layer.partitions().into_iter().flat_map(move |(name, partition)| {
            self.partition_packed(layer, name, partition).map(move |entry| {
                entry.map(|(sort, entry)| ([name, &sort.to_be_bytes()].concat().into(), Some(entry.into())))
            })
        })
    }

    fn partition_packed<'a>(
        &'a self,
        layer: &'a Layer,
        name: &'a [u8],
        partition: &'a Partition,
    ) -> impl Iterator<Item = Result<(u64, Vec<u8>), StoreError>> + 'a {
        let mut rows = layer.rows_of(partition).peekable();
        std::iter::from_fn(move || {
            let first = rows.next()?;
            let end = stripe_end(first.0);
            let mut stripe = vec![first];
            stripe.extend(std::iter::from_fn(|| rows.next_if(|(sort, _)| *sort <= end)));
            Some(stripe)
        })
        .flat_map(move |stripe| each(if partition.is_new { Ok(pack(&stripe)) } else { self.replaced(name, stripe) }))
    }

    /// Rows of a stripe of which some may be in tables already: those stay in their entries.
    fn replaced(&self, partition: &[u8], mut rows: Vec<(u64, &[u8])>) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let [(first @ 1.., _), ..] = *rows else { return Ok(pack(&rows)) };
        let mut entries = Vec::new();
        let mut there = Vec::new();
        for entry in self.entries(partition, &(first..=first), Order::Ascending) {
            let entry = entry?;
            let (mut found, mut is_changed) = (rows_in(&entry)?, false);
            for (sort, row) in &mut found {
                if let Ok(at) = rows.binary_search_by_key(sort, |(sort, _)| *sort) {
                    (*row, is_changed) = (rows[at].1, true);
                    there.push(*sort);
                }
            }
            if is_changed {
                entries.extend(found.last().map(|(last, _)| (*last, encode_pack(&found))));
            }
        }
        rows.retain(|(sort, _)| !there.contains(sort));
        entries.extend(pack(&rows));
        entries.sort_unstable_by_key(|(last, _)| *last);
        Ok(entries)
    }
}

/// In order; the last one's sort key is that of the entry.
fn rows_in((key, entry): &Entry) -> Result<Vec<(u64, &[u8])>, Damage> {
    decode_pack(sort_of(key).ok_or(Damage::Key)?, entry)
}

fn each<T, E>(found: Result<Vec<T>, E>) -> impl Iterator<Item = Result<T, E>> {
    let (found, error) = found.map_or_else(|error| (Vec::new(), Some(error)), |found| (found, None));
    found.into_iter().map(Ok).chain(error.map(Err))
}

/// New rows of a stripe as entries, each with the sort key of its last row.
fn pack(rows: &[(u64, &[u8])]) -> Vec<(u64, Vec<u8>)> {
    let mut entries = Vec::new();
    let mut rest = rows;
    while let [first, ..] = rest {
        let mut bytes = first.1.len();
        let more = rest[1..].iter().take_while(|(_, row)| {
            bytes += row.len();
            bytes <= PACK_BYTES_MAX
        });
        let (pack, behind) = rest.split_at(1 + more.count());
        entries.extend(pack.last().map(|(last, _)| (*last, encode_pack(pack))));
        rest = behind;
    }
    entries
}
