//! Everything in the folder's messages table: first rows, then claims.
//!
//! Tables are in order, and the log is not. So everything moves into tables before the first page; what is written after that is
//! seen only where it replaces a row.

use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use fjall::Slice;
use saltern_core::key::{Key, PartitionKey};
use saltern_core::page::Order;

use super::codec::{self, Damage};
use super::options::PAGE_BYTES_MAX;
use super::physical::{Space, partition_of, physical_key, sort_of};
use super::store::EmbeddedStore;
use crate::port::{Cause, StoreError};
use crate::scan::{Scan, ScanPage};

fn key_of(physical: &[u8]) -> Result<Key, Damage> {
    let partition = partition_of(physical).and_then(<[u8]>::split_last).ok_or(Damage::Key)?.1;
    let partition = String::from_utf8(partition.to_vec()).map_err(|_| Damage::Text)?;
    Ok(Key { partition: PartitionKey::stored(partition), sort: sort_of(physical).ok_or(Damage::Key)? })
}

impl EmbeddedStore {
    /// Adds rows to a page; `false` if the page is full before the space ends.
    fn scan_space(
        &self,
        space: Space,
        from: Bound<Slice>,
        limit: usize,
        page: &mut ScanPage,
    ) -> Result<bool, StoreError> {
        let mut bytes = 0;
        for row in self.view.engine.range(space, (from, Bound::Unbounded), Order::Ascending) {
            if page.rows.len() >= limit || bytes >= PAGE_BYTES_MAX {
                return Ok(false);
            }
            let (key, settled) = row?;
            let value = self.view.fresh.get(space, &key).value.flatten().unwrap_or(settled);
            bytes += value.len();
            let record = codec::decode(&value).map_err(|damage| Arc::new(damage) as Cause);
            page.rows.push((key_of(&key)?, record));
        }
        Ok(true)
    }
}

#[async_trait]
impl Scan for EmbeddedStore {
    async fn scan(&self, behind: Option<&Key>, limit: usize) -> Result<ScanPage, StoreError> {
        self.check()?;
        if behind.is_none() {
            self.settle().await?;
        }
        let from = behind.map_or(Bound::Unbounded, |key| Bound::Excluded(physical_key(key).into()));
        let space = behind.map_or(Space::Rows, |key| Space::of(&key.partition));
        let mut page = ScanPage { rows: Vec::new(), resume: None };
        let mut ended = self.scan_space(space, from, limit, &mut page)?;
        if ended && space == Space::Rows {
            ended = self.scan_space(Space::Claims, Bound::Unbounded, limit, &mut page)?;
        }
        if !ended {
            page.resume = page.rows.last().map(|(key, _)| key.clone());
        }
        Ok(page)
    }

    async fn compact(&self) -> Result<(), StoreError> {
        self.settle().await?;
        let engine = self.view.engine.clone();
        let done = tokio::task::spawn_blocking(move || engine.compact()).await;
        Ok(done.map_err(|panicked| StoreError::Unavailable(Arc::new(panicked)))??)
    }
}
