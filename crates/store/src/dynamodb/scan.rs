//! The whole messages table, as DynamoDB hands it out.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use saltern_core::key::{Key, PartitionKey};
use saltern_core::record::Record;

use super::error::Effect;
use super::item::{self, Damage, Item};
use super::store::DynamoStore;
use crate::port::{Cause, StoreError};
use crate::scan::{Scan, ScanPage};

fn key_of(item: &mut Item) -> Result<Key, Damage> {
    Ok(Key { partition: PartitionKey::stored(item::partition_key(item)?), sort: item::sort_key(item)? })
}

fn row(mut item: Item) -> Result<(Key, Result<Record, Cause>), Damage> {
    let key = key_of(&mut item)?;
    Ok((key, item::decode(item).map_err(|damage| Arc::new(damage) as Cause)))
}

#[async_trait]
impl Scan for DynamoStore {
    async fn scan(&self, behind: Option<&Key>, limit: usize) -> Result<ScanPage, StoreError> {
        self.metrics().called("Scan");
        let request = self.client.scan().table_name(&self.table).set_exclusive_start_key(behind.map(item::of_key));
        let request = request.limit(i32::try_from(limit).unwrap_or(i32::MAX)).consistent_read(true);
        let answer = request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let answer = answer.map_err(|error| self.failed(Effect::Read, error))?;
        self.metrics().read(answer.consumed_capacity());
        Ok(ScanPage {
            rows: answer.items.unwrap_or_default().into_iter().map(row).collect::<Result<_, _>>()?,
            resume: answer.last_evaluated_key.map(|mut key| key_of(&mut key)).transpose()?,
        })
    }
}
