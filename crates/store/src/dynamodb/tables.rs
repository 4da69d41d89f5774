//! The table itself: made once, checked before it is used.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TableDescription, TableStatus,
    TableWarmThroughputDescription, TimeToLiveDescription, TimeToLiveSpecification, TimeToLiveStatus, WarmThroughput,
};

use super::item::{EXPIRES_AT, PK, SK};
use super::options::{TABLE_WAIT_MAX, TABLE_WAIT_STEP};
use super::store::DynamoStore;
use crate::port::Cause;

const KEYS: [(&str, KeyType, ScalarAttributeType); 2] =
    [(PK, KeyType::Hash, ScalarAttributeType::S), (SK, KeyType::Range, ScalarAttributeType::N)];

/// Why the table cannot be used. Each says in one line what to do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TableError {
    #[error("table {0} does not exist; create it with saltern init")]
    Missing(String),
    #[error("table {0} is not ready yet; wait until it is active")]
    NotReady(String),
    #[error("table {0} is not Saltern's: its keys are not pk (string) and sk (number); choose another name")]
    WrongKeys(String),
    #[error("table {table} lets rows expire by {attribute}, not by {EXPIRES_AT}; turn that off first")]
    WrongExpiry { table: String, attribute: String },
    #[error("table {table} cannot be reached; check region, endpoint, credentials and permissions")]
    Failed { table: String, source: Cause },
}

/// Units per second that a table takes from one moment to the next. A part that is 0 is not asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Warmth {
    pub reads_per_s: u32,
    pub writes_per_s: u32,
}

impl Warmth {
    fn of(warm: &TableWarmThroughputDescription) -> Self {
        let units = |units: Option<i64>| u32::try_from(units.unwrap_or(0)).unwrap_or(u32::MAX);
        Self { reads_per_s: units(warm.read_units_per_second), writes_per_s: units(warm.write_units_per_second) }
    }

    /// What to ask for so that neither falls; nothing if both are met.
    fn raised_to(self, wanted: Self) -> Option<Self> {
        let both = Self {
            reads_per_s: self.reads_per_s.max(wanted.reads_per_s),
            writes_per_s: self.writes_per_s.max(wanted.writes_per_s),
        };
        (both != self).then_some(both)
    }
}

impl From<Warmth> for WarmThroughput {
    fn from(warmth: Warmth) -> Self {
        let units = |units: u32| (units > 0).then_some(i64::from(units));
        Self::builder()
            .set_read_units_per_second(units(warmth.reads_per_s))
            .set_write_units_per_second(units(warmth.writes_per_s))
            .build()
    }
}

impl DynamoStore {
    /// Whether the table is there, with the keys that rows need.
    pub async fn check(&self) -> Result<(), TableError> {
        let answer = self.client.describe_table().table_name(&self.table).send().await;
        let table = match answer {
            Ok(answer) => answer.table,
            Err(error) if error.as_service_error().is_some_and(DescribeTableError::is_resource_not_found_exception) => {
                None
            }
            Err(error) => return Err(self.table_failed(error)),
        };
        let Some(table) = table else { return Err(TableError::Missing(self.table.clone())) };
        if !has_our_keys(&table) {
            return Err(TableError::WrongKeys(self.table.clone()));
        }
        // A table that is being changed serves on.
        match table.table_status {
            Some(TableStatus::Active | TableStatus::Updating) => Ok(()),
            _ => Err(TableError::NotReady(self.table.clone())),
        }
    }

    /// Creates the table if it is not there, billed by use, and sees to it that claims expire. Safe to repeat, and to
    /// run on several servers at once.
    pub async fn create_tables(&self) -> Result<(), TableError> {
        self.create_warm_tables(Warmth::default()).await
    }

    /// Likewise, and makes the table ready for so many units per second at once, instead of after its first hot hour.
    /// Never makes it less ready than it is.
    pub async fn create_warm_tables(&self, warmth: Warmth) -> Result<(), TableError> {
        match self.check().await {
            Err(TableError::Missing(_)) => self.create(warmth).await?,
            _ if warmth != Warmth::default() => self.warm(warmth).await?,
            _ => {}
        }
        self.wait_until_ready().await?;
        self.let_claims_expire().await
    }

    async fn create(&self, warmth: Warmth) -> Result<(), TableError> {
        let mut request = self.client.create_table().table_name(&self.table).billing_mode(BillingMode::PayPerRequest);
        if warmth != Warmth::default() {
            request = request.warm_throughput(warmth.into());
        }
        for (name, role, kind) in KEYS {
            let definition = AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build();
            let element = KeySchemaElement::builder().attribute_name(name).key_type(role).build();
            request = request
                .attribute_definitions(definition.map_err(|error| self.table_failed(error))?)
                .key_schema(element.map_err(|error| self.table_failed(error))?);
        }
        match request.send().await {
            Err(error) if !is_being_created(&error) => Err(self.table_failed(error)),
            _ => Ok(()),
        }
    }

    async fn warm(&self, wanted: Warmth) -> Result<(), TableError> {
        self.wait_until_ready().await?;
        let answer = self.client.describe_table().table_name(&self.table).send().await;
        let table = answer.map_err(|error| self.table_failed(error))?.table;
        let present = table.as_ref().and_then(TableDescription::warm_throughput).map(Warmth::of).unwrap_or_default();
        let Some(warmer) = present.raised_to(wanted) else { return Ok(()) };
        let request = self.client.update_table().table_name(&self.table).warm_throughput(warmer.into());
        request.send().await.map_err(|error| self.table_failed(error))?;
        Ok(())
    }

    async fn wait_until_ready(&self) -> Result<(), TableError> {
        let deadline = Instant::now() + TABLE_WAIT_MAX;
        loop {
            match self.check().await {
                // Right after its creation a table may not be seen everywhere.
                Err(TableError::NotReady(_) | TableError::Missing(_)) if Instant::now() < deadline => {
                    tokio::time::sleep(TABLE_WAIT_STEP).await;
                }
                checked => return checked,
            }
        }
    }

    async fn let_claims_expire(&self) -> Result<(), TableError> {
        if self.claims_expire().await? {
            return Ok(());
        }
        let expiry = TimeToLiveSpecification::builder().attribute_name(EXPIRES_AT).enabled(true).build();
        let expiry = expiry.map_err(|error| self.table_failed(error))?;
        let request = self.client.update_time_to_live().table_name(&self.table).time_to_live_specification(expiry);
        match request.send().await {
            Ok(_) => Ok(()),
            // Another server may have been faster.
            Err(error) => match self.claims_expire().await {
                Ok(true) => Ok(()),
                _ => Err(self.table_failed(error)),
            },
        }
    }

    async fn claims_expire(&self) -> Result<bool, TableError> {
        let answer = self.client.describe_time_to_live().table_name(&self.table).send().await;
        let expiry = answer.map_err(|error| self.table_failed(error))?.time_to_live_description;
        match expiry.as_ref().and_then(expires_by) {
            None => Ok(false),
            Some(EXPIRES_AT) => Ok(true),
            Some(attribute) => {
                Err(TableError::WrongExpiry { table: self.table.clone(), attribute: attribute.to_owned() })
            }
        }
    }

    fn table_failed(&self, error: impl Error + Send + Sync + 'static) -> TableError {
        TableError::Failed { table: self.table.clone(), source: Arc::new(error) }
    }
}

fn is_being_created(error: &SdkError<CreateTableError>) -> bool {
    error.as_service_error().is_some_and(CreateTableError::is_resource_in_use_exception)
}

fn has_our_keys(table: &TableDescription) -> bool {
    let schema = table.key_schema();
    schema.len() == KEYS.len()
        && KEYS.iter().all(|(name, role, kind)| {
            let placed = schema.iter().any(|key| key.attribute_name == *name && key.key_type == *role);
            let mut typed = table.attribute_definitions().iter();
            placed && typed.any(|attribute| attribute.attribute_name == *name && attribute.attribute_type == *kind)
        })
}

fn expires_by(expiry: &TimeToLiveDescription) -> Option<&str> {
    match expiry.time_to_live_status() {
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) => expiry.attribute_name(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warmth(reads_per_s: u32, writes_per_s: u32) -> Warmth {
        Warmth { reads_per_s, writes_per_s }
    }

    #[test]
    fn a_table_is_never_cooled() {
        assert_eq!(warmth(0, 0).raised_to(warmth(10, 20)), Some(warmth(10, 20)));
        assert_eq!(warmth(12_000, 4_000).raised_to(warmth(0, 20_000)), Some(warmth(12_000, 20_000)));
        assert_eq!(warmth(12_000, 4_000).raised_to(warmth(12_000, 4_000)), None);
        assert_eq!(warmth(12_000, 4_000).raised_to(warmth(1, 1)), None);
    }
}
