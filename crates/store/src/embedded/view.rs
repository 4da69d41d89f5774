//! What readers see: the log over the engine's tables.
//!
//! The log is always looked at first. What moves from the log into tables is in both for a while, so nobody misses it.

use std::iter::Peekable;
use std::ops::Bound;
use std::sync::Arc;

use fjall::Slice;
use saltern_core::page::Order;

use super::engine::Engine;
use super::error::read_failed;
use super::fresh::{Fresh, Part};
use super::physical::{Space, sort_of};
use crate::port::StoreError;

#[derive(Clone)]
pub(super) struct View {
    pub(super) engine: Engine,
    pub(super) fresh: Arc<Fresh>,
}

/// What was found under a key.
pub(super) struct Found {
    pub(super) row: Option<Slice>,
    /// How many layers had moved into the engine before the look.
    pub(super) moved: u64,
}

impl View {
    pub(super) fn look(&self, space: Space, key: &[u8]) -> Result<Found, StoreError> {
        let said = self.fresh.get(space, key);
        let row = match said.value {
            Some(value) => value,
            None => self.settled(space, key)?,
        };
        Ok(Found { row, moved: said.moved })
    }

    pub(super) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Slice>, StoreError> {
        self.look(space, key).map(|found| found.row)
    }

    /// What is there now, with the help of an earlier look. Only for the thread that writes.
    ///
    /// Whatever was written since is in the log, unless a layer has moved.
    pub(super) fn confirm(&self, space: Space, key: &[u8], found: Option<&Found>) -> Result<Option<Slice>, StoreError> {
        let said = self.fresh.get(space, key);
        match (said.value, found) {
            (Some(value), _) => Ok(value),
            (None, Some(found)) if found.moved == said.moved => Ok(found.row.clone()),
            (None, _) => self.settled(space, key),
        }
    }

    /// What tables hold.
    fn settled(&self, space: Space, key: &[u8]) -> Result<Option<Slice>, StoreError> {
        match space {
            Space::Rows => self.engine.row(key),
            Space::Claims | Space::Campaigns | Space::Due => self.engine.get(space, key),
        }
    }

    /// The highest sort key of a partition of rows.
    pub(super) fn top(&self, partition: &[u8]) -> Result<Option<u64>, StoreError> {
        let fresh = self.fresh.top(partition);
        let last = self.engine.space(Space::Rows).prefix(partition).next_back();
        let last = last.map(fjall::Guard::key).transpose().map_err(read_failed)?;
        Ok(fresh.max(last.as_deref().and_then(sort_of)))
    }

    /// Rows of one partition, by their sort keys. Goes on for at least `limit` rows if there are so many, or a page full of bytes.
    pub(super) fn rows(
        &self,
        partition: &[u8],
        (from, to): (u64, u64),
        order: Order,
        limit: usize,
    ) -> impl Iterator<Item = Result<(u64, Slice), StoreError>> + use<> {
        let fresh = self.fresh.rows(partition, from..=to, order, limit);
        let (from, to) = match (fresh.end(), order) {
            (None, _) => (from, to),
            (Some(end), Order::Ascending) => (from, *end),
            (Some(end), Order::Descending) => (*end, to),
        };
        let tables = self.engine.rows(partition, from..=to, order);
        Merged { fresh: fresh.entries.into_iter().peekable(), tables: tables.peekable(), order }
    }

    /// A range of campaigns or of what is due. Goes on for at least `limit` keys if there are so many.
    pub(super) fn range(
        &self,
        space: Space,
        (from, to): (Bound<Slice>, Bound<Slice>),
        order: Order,
        limit: usize,
    ) -> impl Iterator<Item = Result<(Slice, Slice), StoreError>> + use<> {
        let fresh = self.fresh.range(space, (from.clone(), to.clone()), order, limit);
        let bounds = match (fresh.end(), order) {
            (None, _) => (from, to),
            (Some(end), Order::Ascending) => (from, Bound::Included(end.clone())),
            (Some(end), Order::Descending) => (Bound::Included(end.clone()), to),
        };
        let tables = self.engine.range(space, bounds, order);
        Merged { fresh: fresh.entries.into_iter().peekable(), tables: tables.peekable(), order }
    }
}

impl<K> Part<K> {
    /// Behind this the log is not known.
    fn end(&self) -> Option<&K> {
        self.entries.last().map(|(key, _)| key).filter(|_| self.is_cut)
    }
}

/// Two ranges in the same order as one. Where both have a key, the log's entry counts.
struct Merged<K, F: Iterator<Item = (K, Option<Slice>)>, T: Iterator<Item = Result<(K, Slice), StoreError>>> {
    fresh: Peekable<F>,
    tables: Peekable<T>,
    order: Order,
}

impl<K: Ord, F: Iterator<Item = (K, Option<Slice>)>, T: Iterator<Item = Result<(K, Slice), StoreError>>> Iterator
    for Merged<K, F, T>
{
    type Item = Result<(K, Slice), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((fresh, _)) = self.fresh.peek() else { return self.tables.next() };
            let is_first = |key: &K| match self.order {
                Order::Ascending => key < fresh,
                Order::Descending => key > fresh,
            };
            match self.tables.peek() {
                Some(Err(_)) => return self.tables.next(),
                Some(Ok((key, _))) if is_first(key) => return self.tables.next(),
                Some(Ok((key, _))) if key == fresh => drop(self.tables.next()),
                _ => {}
            }
            if let Some((key, Some(value))) = self.fresh.next() {
                return Some(Ok((key, value)));
            }
        }
    }
}
