//! Everything in the folder's messages table: first rows, then claims.
//!
//! Tables are in order, and the log is not. So everything moves into tables before the first page; what is written after that is
//! seen only where it replaces a row.

use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use saltern_core::key::{Key, PartitionKey};
use saltern_core::page::Order;

use super::codec::{self, Damage};
use super::options::PAGE_BYTES_MAX;
use super::packs::stripes;
use super::physical::{Space, physical_key};
use super::store::EmbeddedStore;
use crate::port::{Cause, StoreError};
use crate::scan::{Scan, ScanPage};

/// Of the partition half of a physical key.
fn partition_key(prefix: &[u8]) -> Result<PartitionKey, Damage> {
    let (_, partition) = prefix.split_last().ok_or(Damage::Key)?;
    Ok(PartitionKey::stored(String::from_utf8(partition.to_vec()).map_err(|_| Damage::Text)?))
}

impl EmbeddedStore {
    /// Adds rows to a page; `false` if the page is full before the space ends.
    fn scan_space(
        &self,
        space: Space,
        behind: Option<&Key>,
        limit: usize,
        page: &mut ScanPage,
    ) -> Result<bool, StoreError> {
        let from = behind.map_or(Bound::Unbounded, |key| Bound::Excluded(physical_key(key)));
        let entries = self.view.engine.range(space, (from, Bound::Unbounded), Order::Ascending);
        let mut bytes = 0;
        for stripe in stripes(entries, 0..=u64::MAX, Order::Ascending) {
            let stripe = stripe?;
            let prefix = stripe.partition()?.to_vec();
            let partition = partition_key(&prefix)?;
            for (sort, settled) in stripe.into_rows() {
                let key = Key { partition: partition.clone(), sort };
                // The entry that the last page ended in may end later.
                if behind.is_some_and(|behind| key <= *behind) {
                    continue;
                }
                if page.rows.len() >= limit || bytes >= PAGE_BYTES_MAX {
                    return Ok(false);
                }
                let physical = [prefix.as_slice(), &sort.to_be_bytes()].concat();
                let value = self.view.fresh.get(space, &physical).value.flatten().unwrap_or(settled);
                bytes += value.len();
                page.rows.push((key, codec::decode(&value).map_err(|damage| Arc::new(damage) as Cause)));
            }
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
        let space = behind.map_or(Space::Rows, |key| Space::of(&key.partition));
        let mut page = ScanPage { rows: Vec::new(), resume: None };
        let mut ended = self.scan_space(space, behind, limit, &mut page)?;
        if ended && space == Space::Rows {
            ended = self.scan_space(Space::Claims, None, limit, &mut page)?;
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
