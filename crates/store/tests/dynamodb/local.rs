//! Stores on the server under test: one process for all tests of this binary, one table for each.

use std::time::Duration;

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::{Client, Config};
use saltern_backends::DynamoLocal;
use saltern_store::dynamodb::{DynamoOptions, DynamoStore};

fn options(table: &str) -> DynamoOptions {
    options_on(DynamoLocal::shared(), table)
}

fn options_on(server: &DynamoLocal, table: &str) -> DynamoOptions {
    DynamoOptions {
        messages_table: table.into(),
        campaigns_table: format!("{table}-campaigns"),
        endpoint: Some(server.endpoint()),
        // A cold engine on a busy machine is slow, and none of these tests is about time.
        call_timeout: Duration::from_secs(30),
        ..DynamoOptions::default()
    }
}

async fn connect(options: DynamoOptions) -> DynamoStore {
    DynamoStore::connect(options).await.expect("an address is all it takes")
}

async fn created(store: DynamoStore) -> DynamoStore {
    store.create_tables().await.expect("the tables are created");
    store
}

/// A store on tables that are not there yet.
pub(crate) async fn store_without_table(table: &str) -> DynamoStore {
    connect(options(table)).await
}

/// The same on a server that is not shared.
pub(crate) async fn store_without_table_on(server: &DynamoLocal, table: &str) -> DynamoStore {
    connect(options_on(server, table)).await
}

/// A store on new tables of this name.
pub(crate) async fn store(table: &str) -> DynamoStore {
    created(store_without_table(table).await).await
}

/// The same with a shelf for so many dead letters.
pub(crate) async fn store_keeping(table: &str, dead_letters_max: u64) -> DynamoStore {
    created(connect(DynamoOptions { dead_letters_max, ..options(table) }).await).await
}

/// A store on an address of this test's own.
pub(crate) async fn store_at(endpoint: String, call_timeout: Duration) -> DynamoStore {
    connect(DynamoOptions { endpoint: Some(endpoint), call_timeout, ..DynamoOptions::default() }).await
}

/// A client that goes past the store.
pub(crate) fn client() -> Client {
    client_on(DynamoLocal::shared())
}

pub(crate) fn client_on(server: &DynamoLocal) -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(server.endpoint())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}
