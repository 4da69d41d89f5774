//! The index of conversations that the archive has to look at, one partition of it after the other.

use std::collections::HashMap;

use async_trait::async_trait;
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use saltern_core::ids::ConversationId;
use saltern_core::key::{Key, PartitionKey, Place};

use super::error::Effect;
use super::item::{self, DUE_SHARD, DUE_SHARDS, Damage, Item, OLDEST};
use super::store::DynamoStore;
use super::tables::DUE_INDEX;
use crate::due::{Due, DueMark, DuePage};
use crate::port::StoreError;

fn start(mark: &DueMark) -> Option<Item> {
    let (oldest_ms, conversation) = mark.last.as_ref()?;
    let mut start = item::of_key(&Key::control(conversation));
    start.insert(OLDEST.into(), item::number(*oldest_ms));
    start.insert(DUE_SHARD.into(), item::text(&mark.shard.to_string()));
    Some(start)
}

fn named(mut item: Item) -> Result<(u64, ConversationId), Damage> {
    let oldest_ms = item::oldest(&mut item)?;
    let key =
        Key { partition: PartitionKey::stored(item::partition_key(&mut item)?), sort: item::sort_key(&mut item)? };
    match key.place() {
        Some(Place::Control(conversation)) => Ok((oldest_ms, conversation)),
        _ => Err(Damage::Wrong(item::PK)),
    }
}

#[async_trait]
impl Due for DynamoStore {
    async fn due(&self, oldest_ms_max: u64, behind: Option<&DueMark>, limit: usize) -> Result<DuePage, StoreError> {
        self.metrics().called("Query");
        let shard = behind.map_or(0, |mark| mark.shard);
        let names = HashMap::from([("#shard".into(), DUE_SHARD.into()), ("#oldest".into(), OLDEST.into())]);
        let answer = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(DUE_INDEX)
            .key_condition_expression("#shard = :shard AND #oldest <= :max")
            .set_expression_attribute_names(Some(names))
            .expression_attribute_values(":shard", item::text(&shard.to_string()))
            .expression_attribute_values(":max", item::number(oldest_ms_max))
            .set_exclusive_start_key(behind.and_then(start))
            .limit(i32::try_from(limit.max(1)).unwrap_or(i32::MAX))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
            .send()
            .await
            .map_err(|error| self.failed(Effect::Read, error))?;
        self.metrics().read(answer.consumed_capacity());
        let last = answer.last_evaluated_key.map(named).transpose()?;
        let found = answer.items.unwrap_or_default().into_iter().map(named).collect::<Result<Vec<_>, _>>()?;
        let resume = match last {
            Some(last) => Some(DueMark { shard, last: Some(last) }),
            None => (shard + 1 < DUE_SHARDS).then_some(DueMark { shard: shard + 1, last: None }),
        };
        Ok(DuePage { conversations: found.into_iter().map(|(_, conversation)| conversation).collect(), resume })
    }
}
