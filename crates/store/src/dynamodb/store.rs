use std::error::Error;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnConsumedCapacity, ReturnValuesOnConditionCheckFailure};
use saltern_core::key::Key;
use saltern_core::page::Order;
use saltern_core::record::Record;

use super::error::{Effect, RowWithheld, failed};
use super::item::{self, Item};
use super::metrics::DynamoMetrics;
use super::options::DynamoOptions;
use super::{ConnectError, connect};
use crate::misuse::Misuse;
use crate::port::{Capabilities, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError};

/// Both tables. Clones share their connections and counts.
#[derive(Debug, Clone)]
pub struct DynamoStore {
    pub(super) client: Client,
    /// Of messages.
    pub(super) table: String,
    pub(super) campaigns_table: String,
    pub(super) dead_letters_max: u64,
    pub(super) metrics: DynamoMetrics,
    claim_ttl: Duration,
}

impl DynamoStore {
    /// Does not ask whether the tables are there; `check` does.
    pub async fn connect(options: DynamoOptions) -> Result<Self, ConnectError> {
        let client = connect::client(&options).await?;
        let metrics = DynamoMetrics::default();
        Ok(Self {
            client,
            table: options.messages_table,
            campaigns_table: options.campaigns_table,
            dead_letters_max: options.dead_letters_max.max(1),
            metrics,
            claim_ttl: options.claim_ttl,
        })
    }

    #[must_use]
    pub fn metrics(&self) -> &DynamoMetrics {
        &self.metrics
    }

    pub(super) fn failed<E>(&self, effect: Effect, error: SdkError<E>) -> StoreError
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let error = failed(effect, error);
        if matches!(error, StoreError::Throttled) {
            self.metrics.throttled();
        }
        error
    }

    /// When a claim written now may go, in seconds since 1970: the form that DynamoDB's time to live asks for.
    fn claims_expire_at_s(&self) -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        now.saturating_add(self.claim_ttl).as_secs()
    }

    async fn get_one(&self, key: &Key, consistency: Consistency) -> Result<Option<Record>, StoreError> {
        self.metrics.called("GetItem");
        let request = self.client.get_item().table_name(&self.table).set_key(Some(item::of_key(key)));
        let request = request.consistent_read(is_strong(consistency));
        let answer = request.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await;
        let answer = answer.map_err(|error| self.failed(Effect::Read, error))?;
        self.metrics.read(answer.consumed_capacity());
        Ok(answer.item.map(item::decode).transpose()?)
    }

    fn query_request(&self, query: &Query) -> QueryFluentBuilder {
        let request = self.client.query().table_name(&self.table);
        request
            .key_condition_expression("pk = :pk AND sk BETWEEN :from AND :to")
            .expression_attribute_values(":pk", item::text(query.partition.as_str()))
            .expression_attribute_values(":from", item::number(query.from))
            .expression_attribute_values(":to", item::number(query.to))
            .scan_index_forward(query.order == Order::Ascending)
            .limit(i32::try_from(query.limit).unwrap_or(i32::MAX))
            .consistent_read(is_strong(query.consistency))
            .return_consumed_capacity(ReturnConsumedCapacity::Total)
    }
}

pub(super) fn is_strong(consistency: Consistency) -> bool {
    consistency == Consistency::Strong
}

fn refused(condition: Condition, present: Option<Item>) -> Result<PutOutcome, StoreError> {
    let present = present.map(item::decode).transpose()?;
    match (condition, &present) {
        (Condition::Absent, None) => Err(RowWithheld.into()),
        _ => Ok(PutOutcome::Refused(present)),
    }
}

fn row(mut item: Item) -> Result<(u64, Record), StoreError> {
    let sort = item::sort_key(&mut item)?;
    Ok((sort, item::decode(item)?))
}

#[async_trait]
impl Store for DynamoStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_puts: false, exclusive: false }
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        self.metrics.called("PutItem");
        let item = item::encode(&put.key, &put.record, self.claims_expire_at_s());
        let request = self.client.put_item().table_name(&self.table).set_item(Some(item));
        let request = match put.condition {
            Condition::Absent => request.condition_expression("attribute_not_exists(pk)"),
            Condition::Version(version) => {
                request.condition_expression("v = :v").expression_attribute_values(":v", item::number(version))
            }
        };
        let request = request
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .return_consumed_capacity(ReturnConsumedCapacity::Total);
        match request.send().await {
            Ok(answer) => {
                self.metrics.wrote(answer.consumed_capacity());
                Ok(PutOutcome::Applied)
            }
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(refusal)) => {
                    refused(put.condition, refusal.item.clone())
                }
                _ => Err(self.failed(Effect::Write, error)),
            },
        }
    }

    /// DynamoDB's transactions cost twice as much and conflict with each other, so they are not on offer here.
    async fn put_all(&self, _: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        Err(Misuse::NoAtomicPuts.into())
    }

    async fn get(&self, keys: &[Key], consistency: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        match keys {
            [] => Ok(Vec::new()),
            [key] => Ok(vec![self.get_one(key, consistency).await?]),
            keys => self.get_many(keys, consistency).await,
        }
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        // DynamoDB takes either for a mistake.
        if query.from > query.to || query.limit == 0 {
            return Ok(QueryPage { rows: Vec::new(), resume: None });
        }
        self.metrics.called("Query");
        let answer = self.query_request(query).send().await;
        let answer = answer.map_err(|error| self.failed(Effect::Read, error))?;
        self.metrics.read(answer.consumed_capacity());
        Ok(QueryPage {
            rows: answer.items.unwrap_or_default().into_iter().map(row).collect::<Result<_, _>>()?,
            resume: answer.last_evaluated_key.map(|mut key| item::sort_key(&mut key)).transpose()?,
        })
    }
}
