//! The tables themselves: made once, checked before they are used.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::operation::update_table::UpdateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, CreateGlobalSecondaryIndexAction, GlobalSecondaryIndex,
    GlobalSecondaryIndexUpdate, IndexStatus, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, TableDescription, TableStatus, TimeToLiveDescription, TimeToLiveSpecification,
    TimeToLiveStatus,
};

use super::item::{DUE_SHARD, EXPIRES_AT, OLDEST, PK, SK};
use super::options::{TABLE_WAIT_MAX, TABLE_WAIT_STEP};
use super::store::DynamoStore;
use super::warmth::Warmth;
use crate::port::Cause;

type Key = (&'static str, KeyType, ScalarAttributeType);
type KeySchema = [Key; 2];

const MESSAGE_KEYS: KeySchema =
    [(PK, KeyType::Hash, ScalarAttributeType::S), (SK, KeyType::Range, ScalarAttributeType::N)];
/// The index of conversations that the archive has to look at.
pub(super) const DUE_INDEX: &str = "due";
const DUE_KEYS: KeySchema =
    [(DUE_SHARD, KeyType::Hash, ScalarAttributeType::S), (OLDEST, KeyType::Range, ScalarAttributeType::N)];
const CAMPAIGN_KEYS: KeySchema =
    [(PK, KeyType::Hash, ScalarAttributeType::S), (SK, KeyType::Range, ScalarAttributeType::S)];

/// Why a table cannot be used. Each says in one line what to do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TableError {
    #[error("table {0} does not exist; create it with saltern init")]
    Missing(String),
    #[error("table {0} is not ready yet; wait until it is active")]
    NotReady(String),
    #[error("table {0} is not Saltern's: its keys are not those that saltern init gives it; choose another name")]
    WrongKeys(String),
    #[error("table {table} lets rows expire by {attribute}, not by {EXPIRES_AT}; turn that off first")]
    WrongExpiry { table: String, attribute: String },
    #[error("table {table} cannot be reached; check region, endpoint, credentials and permissions")]
    Failed { table: String, source: Cause },
}

/// One of the tables: its name, and what its keys must be.
struct Table<'a> {
    client: &'a Client,
    name: &'a str,
    keys: KeySchema,
    /// Has the index of what is due.
    indexed: bool,
}

impl DynamoStore {
    fn tables(&self) -> [Table<'_>; 2] {
        let table = |name, keys, indexed| Table { client: &self.client, name, keys, indexed };
        [table(&self.table, MESSAGE_KEYS, true), table(&self.campaigns_table, CAMPAIGN_KEYS, false)]
    }

    /// Whether the tables are there, with the keys that rows need.
    pub async fn check(&self) -> Result<(), TableError> {
        for table in self.tables() {
            table.check().await?;
        }
        Ok(())
    }

    /// Creates the tables that are not there, billed by use, and sees to it that claims expire. Safe to repeat, and to
    /// run on several servers at once.
    pub async fn create_tables(&self) -> Result<(), TableError> {
        self.create_warm_tables(Warmth::default()).await
    }

    /// Likewise, and makes them ready for so many units per second at once, instead of after their first hot hour.
    /// Never makes one less ready than it is.
    pub async fn create_warm_tables(&self, warmth: Warmth) -> Result<(), TableError> {
        for table in self.tables() {
            match table.check().await {
                Err(TableError::Missing(_)) => table.create(warmth).await?,
                _ if warmth != Warmth::default() => table.warm(warmth).await?,
                _ => {}
            }
            table.wait_until_ready().await?;
            if table.indexed {
                table.add_index().await?;
            }
        }
        self.let_claims_expire().await
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

impl Table<'_> {
    async fn check(&self) -> Result<(), TableError> {
        let name = || self.name.to_owned();
        let answer = self.client.describe_table().table_name(self.name).send().await;
        let table = match answer {
            Ok(answer) => answer.table,
            Err(error) if error.as_service_error().is_some_and(DescribeTableError::is_resource_not_found_exception) => {
                None
            }
            Err(error) => return Err(self.failed(error)),
        };
        let Some(table) = table else { return Err(TableError::Missing(name())) };
        if !has_keys(&table, &self.keys) {
            return Err(TableError::WrongKeys(name()));
        }
        // A table that is being changed serves on.
        match table.table_status {
            Some(TableStatus::Active | TableStatus::Updating) => Ok(()),
            _ => Err(TableError::NotReady(name())),
        }
    }

    async fn create(&self, warmth: Warmth) -> Result<(), TableError> {
        let mut request = self.client.create_table().table_name(self.name).billing_mode(BillingMode::PayPerRequest);
        if warmth != Warmth::default() {
            request = request.warm_throughput(warmth.into());
        }
        for key in &self.keys {
            request = request.attribute_definitions(self.definition(key)?).key_schema(self.element(key)?);
        }
        if self.indexed {
            let mut index = GlobalSecondaryIndex::builder().index_name(DUE_INDEX).projection(keys_only());
            for key in &DUE_KEYS {
                request = request.attribute_definitions(self.definition(key)?);
                index = index.key_schema(self.element(key)?);
            }
            request = request.global_secondary_indexes(index.build().map_err(|error| self.failed(error))?);
        }
        match request.send().await {
            Err(error) if !is_being_created(&error) => Err(self.failed(error)),
            _ => Ok(()),
        }
    }

    async fn warm(&self, wanted: Warmth) -> Result<(), TableError> {
        self.wait_until_ready().await?;
        let answer = self.client.describe_table().table_name(self.name).send().await;
        let table = answer.map_err(|error| self.failed(error))?.table;
        let present = table.as_ref().and_then(TableDescription::warm_throughput).map(Warmth::of).unwrap_or_default();
        let Some(warmer) = present.raised_to(wanted) else { return Ok(()) };
        let request = self.client.update_table().table_name(self.name).warm_throughput(warmer.into());
        request.send().await.map_err(|error| self.failed(error))?;
        Ok(())
    }

    fn definition(&self, (name, _, kind): &Key) -> Result<AttributeDefinition, TableError> {
        let definition = AttributeDefinition::builder().attribute_name(*name).attribute_type(kind.clone()).build();
        definition.map_err(|error| self.failed(error))
    }

    fn element(&self, (name, role, _): &Key) -> Result<KeySchemaElement, TableError> {
        let element = KeySchemaElement::builder().attribute_name(*name).key_type(role.clone()).build();
        element.map_err(|error| self.failed(error))
    }

    /// Gives a table of before there was an archive its index, and waits until it can be used.
    async fn add_index(&self) -> Result<(), TableError> {
        let deadline = Instant::now() + TABLE_WAIT_MAX;
        let mut asked = false;
        loop {
            let answer = self.client.describe_table().table_name(self.name).send().await;
            let table = answer.map_err(|error| self.failed(error))?.table;
            let indexes = table.as_ref().map(TableDescription::global_secondary_indexes).unwrap_or_default();
            match indexes.iter().find(|index| index.index_name() == Some(DUE_INDEX)) {
                Some(index) if index.index_status() == Some(&IndexStatus::Active) => return Ok(()),
                None if !asked => asked = self.ask_for_index().await?,
                _ => {}
            }
            if Instant::now() >= deadline {
                return Err(TableError::NotReady(self.name.to_owned()));
            }
            tokio::time::sleep(TABLE_WAIT_STEP).await;
        }
    }

    /// Whether the table took the wish. One that is being changed, perhaps by another server, has to be asked again.
    async fn ask_for_index(&self) -> Result<bool, TableError> {
        let mut index = CreateGlobalSecondaryIndexAction::builder().index_name(DUE_INDEX).projection(keys_only());
        let mut request = self.client.update_table().table_name(self.name);
        for key in self.keys.iter().chain(&DUE_KEYS) {
            request = request.attribute_definitions(self.definition(key)?);
        }
        for key in &DUE_KEYS {
            index = index.key_schema(self.element(key)?);
        }
        let index = index.build().map_err(|error| self.failed(error))?;
        let update = GlobalSecondaryIndexUpdate::builder().create(index).build();
        match request.global_secondary_index_updates(update).send().await {
            Ok(_) => Ok(true),
            Err(error) if error.as_service_error().is_some_and(UpdateTableError::is_resource_in_use_exception) => {
                Ok(false)
            }
            Err(error) => Err(self.failed(error)),
        }
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

    fn failed(&self, error: impl Error + Send + Sync + 'static) -> TableError {
        TableError::Failed { table: self.name.to_owned(), source: Arc::new(error) }
    }
}

fn keys_only() -> Projection {
    Projection::builder().projection_type(ProjectionType::KeysOnly).build()
}

fn is_being_created(error: &SdkError<CreateTableError>) -> bool {
    error.as_service_error().is_some_and(CreateTableError::is_resource_in_use_exception)
}

fn has_keys(table: &TableDescription, keys: &KeySchema) -> bool {
    let schema = table.key_schema();
    schema.len() == keys.len()
        && keys.iter().all(|(name, role, kind)| {
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
