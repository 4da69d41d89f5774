//! Stores on the server under test: one process for all tests of this binary, one table for each.

use std::time::Duration;

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::{Client, Config};
use saltern_backends::DynamoLocal;
use saltern_store::dynamodb::{DynamoOptions, DynamoStore};

/// A store on a table that is not there yet.
pub(crate) async fn store_without_table(table: &str) -> DynamoStore {
    let options = DynamoOptions {
        messages_table: table.into(),
        endpoint: Some(DynamoLocal::shared().endpoint()),
        // A cold engine on a busy machine is slow, and none of these tests is about time.
        call_timeout: Duration::from_secs(30),
        ..DynamoOptions::default()
    };
    DynamoStore::connect(options).await.expect("an address is all it takes")
}

/// A store on a new table of this name.
pub(crate) async fn store(table: &str) -> DynamoStore {
    let store = store_without_table(table).await;
    store.create_tables().await.expect("the table is created");
    store
}

/// A store on an address of this test's own.
pub(crate) async fn store_at(endpoint: String, call_timeout: Duration) -> DynamoStore {
    let options = DynamoOptions { endpoint: Some(endpoint), call_timeout, ..DynamoOptions::default() };
    DynamoStore::connect(options).await.expect("an address is all it takes")
}

/// A client that goes past the store.
pub(crate) fn client() -> Client {
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .endpoint_url(DynamoLocal::shared().endpoint())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "tests"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    Client::from_conf(config)
}
