//! The campaigns table: conditions are judged where the row is written (C1), keys left out of a batch are told (C4).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::put_item::builders::PutItemFluentBuilder;
use aws_sdk_dynamodb::types::{KeysAndAttributes, ReturnConsumedCapacity};
use saltern_core::campaigns::{Boost, BoostKey, DeadLetter, LetterNo, Look};
use saltern_core::ids::TenantId;

use super::error::Effect;
use super::item::campaigns::{self, DIGEST, LAST_UPDATED, REVISION, STATE};
use super::item::{self, Item};
use super::store::{DynamoStore, is_strong};
use crate::campaigns::port::{BoostPut, CampaignStore, MarketPut, MarketRecord};
use crate::misuse::batch_fits;
use crate::port::{Consistency, StoreError};

/// The total order, in DynamoDB's words.
const OUTRANKS: &str = "attribute_not_exists(pk) OR #updated < :updated OR (#updated = :updated AND \
     (#state < :state OR (#state = :state AND #digest < :digest)))";

impl DynamoStore {
    pub(super) fn put_campaign(&self, item: Item) -> PutItemFluentBuilder {
        self.client.put_item().table_name(&self.campaigns_table).set_item(Some(item))
    }

    /// Whether the condition held.
    pub(super) async fn send_put(&self, request: PutItemFluentBuilder) -> Result<bool, StoreError> {
        self.metrics.called("PutItem");
        match request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await {
            Ok(answer) => {
                self.metrics.wrote(answer.consumed_capacity());
                Ok(true)
            }
            Err(error) if error.as_service_error().is_some_and(PutItemError::is_conditional_check_failed_exception) => {
                Ok(false)
            }
            Err(error) => Err(self.failed(Effect::Write, error)),
        }
    }

    pub(super) async fn get_campaign(&self, key: Item) -> Result<Option<Item>, StoreError> {
        self.metrics.called("GetItem");
        let request = self.client.get_item().table_name(&self.campaigns_table).set_key(Some(key));
        let request = request.consistent_read(true).return_consumed_capacity(ReturnConsumedCapacity::Total);
        let answer = request.send().await.map_err(|error| self.failed(Effect::Read, error))?;
        self.metrics.read(answer.consumed_capacity());
        Ok(answer.item)
    }
}

#[async_trait]
impl CampaignStore for DynamoStore {
    async fn put_boost(&self, key: &BoostKey, boost: &Boost) -> Result<BoostPut, StoreError> {
        let put = self
            .put_campaign(campaigns::encode_boost(key, boost))
            .condition_expression(OUTRANKS)
            .expression_attribute_names("#updated", LAST_UPDATED)
            .expression_attribute_names("#state", STATE)
            .expression_attribute_names("#digest", DIGEST)
            .expression_attribute_values(":updated", item::signed(boost.last_updated.as_ms()))
            .expression_attribute_values(":state", campaigns::state(boost))
            .expression_attribute_values(":digest", item::digest(boost.rank().digest));
        Ok(if self.send_put(put).await? { BoostPut::Applied } else { BoostPut::Stale })
    }

    async fn boosts(&self, keys: &[BoostKey], consistency: Consistency) -> Result<Vec<Look>, StoreError> {
        batch_fits(keys.len())?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        self.metrics.called("BatchGetItem");
        let asked = keys.iter().map(campaigns::of_boost).collect();
        let asked = KeysAndAttributes::builder().set_keys(Some(asked)).consistent_read(is_strong(consistency)).build();
        let asked = asked.map_err(|error| StoreError::Unavailable(Arc::new(error)))?;
        let request = self.client.batch_get_item().request_items(&self.campaigns_table, asked);
        let answer = request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let answer = answer.map_err(|error| self.failed(Effect::Read, error))?;
        self.metrics.read(answer.consumed_capacity());
        let mut found = HashMap::with_capacity(keys.len());
        for mut item in answer.responses.unwrap_or_default().into_values().flatten() {
            found.insert(campaigns::key(&mut item)?, campaigns::decode_boost(item)?);
        }
        let mut left_out = HashSet::new();
        for left in answer.unprocessed_keys.unwrap_or_default().into_values() {
            for mut key in left.keys {
                left_out.insert(campaigns::key(&mut key)?);
            }
        }
        let look = |key: &BoostKey| {
            let place = (key.partition().to_owned(), key.sort().to_owned());
            match found.remove(&place) {
                Some(boost) => Look::Found(boost.into()),
                None if left_out.contains(&place) => Look::Unread,
                None => Look::Absent,
            }
        };
        Ok(keys.iter().map(look).collect())
    }

    async fn put_market(&self, tenant: &TenantId, record: &MarketRecord) -> Result<MarketPut, StoreError> {
        let put = self.put_campaign(campaigns::encode_market(tenant, record));
        let put = match record.revision {
            0 | 1 => put.condition_expression("attribute_not_exists(pk)"),
            revision => put
                .condition_expression("#revision = :seen")
                .expression_attribute_names("#revision", REVISION)
                .expression_attribute_values(":seen", item::number(revision - 1)),
        };
        Ok(if self.send_put(put).await? { MarketPut::Applied } else { MarketPut::Conflict })
    }

    async fn market(&self, tenant: &TenantId) -> Result<Option<MarketRecord>, StoreError> {
        let item = self.get_campaign(campaigns::of_tenant(tenant)).await?;
        Ok(item.map(campaigns::decode_market).transpose()?)
    }

    async fn add_dead_letter(&self, letter: &DeadLetter) -> Result<(), StoreError> {
        self.shelve(letter).await
    }

    async fn dead_letters(
        &self,
        before: Option<LetterNo>,
        limit: usize,
    ) -> Result<Vec<(LetterNo, DeadLetter)>, StoreError> {
        self.letters_before(before, limit).await
    }

    async fn dead_letter(&self, number: LetterNo) -> Result<Option<DeadLetter>, StoreError> {
        self.letter(number).await
    }

    async fn remove_dead_letter(&self, number: LetterNo) -> Result<(), StoreError> {
        self.unshelve(number).await
    }
}
