//! Many exact keys at once.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use aws_sdk_dynamodb::types::{KeysAndAttributes, ReturnConsumedCapacity};
use saltern_core::key::Key;
use saltern_core::record::Record;

use super::error::Effect;
use super::item::{self, Item};
use super::options::{BATCH_FIRST_PAUSE, BATCH_KEYS_MAX, BATCH_ROUNDS_MAX};
use super::store::{DynamoStore, is_strong};
use crate::port::{Consistency, StoreError};

type Found = HashMap<(String, u64), Record>;

impl DynamoStore {
    pub(super) async fn get_many(
        &self,
        keys: &[Key],
        consistency: Consistency,
    ) -> Result<Vec<Option<Record>>, StoreError> {
        // DynamoDB refuses a batch that names a key twice.
        let distinct: Vec<Item> = keys.iter().collect::<BTreeSet<_>>().into_iter().map(item::of_key).collect();
        let mut found = Found::with_capacity(distinct.len());
        for batch in distinct.chunks(BATCH_KEYS_MAX) {
            self.get_batch(batch.to_vec(), consistency, &mut found).await?;
        }
        let place = |key: &Key| (key.partition.as_str().to_owned(), key.sort);
        Ok(keys.iter().map(|key| found.get(&place(key)).cloned()).collect())
    }

    /// What a busy table leaves out of its answer is asked for again: unread is not absent (I6).
    async fn get_batch(&self, mut left: Vec<Item>, how: Consistency, found: &mut Found) -> Result<(), StoreError> {
        let mut pause = BATCH_FIRST_PAUSE;
        for round in 1..=BATCH_ROUNDS_MAX {
            left = self.get_round(left, how, found).await?;
            if left.is_empty() {
                return Ok(());
            }
            if round < BATCH_ROUNDS_MAX {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
        self.metrics.throttled();
        Err(StoreError::Throttled)
    }

    /// The keys that are still left.
    async fn get_round(&self, keys: Vec<Item>, how: Consistency, found: &mut Found) -> Result<Vec<Item>, StoreError> {
        self.metrics.called("BatchGetItem");
        let asked = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(is_strong(how)).build();
        let asked = asked.map_err(|error| StoreError::Unavailable(Arc::new(error)))?;
        let request = self.client.batch_get_item().request_items(&self.table, asked);
        let answer = request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let answer = answer.map_err(|error| self.failed(Effect::Read, error))?;
        self.metrics.read(answer.consumed_capacity());
        for mut item in answer.responses.unwrap_or_default().into_values().flatten() {
            let place = (item::partition_key(&mut item)?, item::sort_key(&mut item)?);
            found.insert(place, item::decode(item)?);
        }
        Ok(answer.unprocessed_keys.unwrap_or_default().into_values().flat_map(|left| left.keys).collect())
    }
}
