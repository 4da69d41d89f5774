use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TimeToLiveStatus,
};
use saltern_backends::DynamoLocal;
use saltern_store::dynamodb::{TableError, Warmth};
use saltern_store::{Due as _, conformance};

use crate::local;

#[tokio::test]
async fn tables_are_created_once() {
    let store = local::store_without_table("twice").await;
    assert!(matches!(store.check().await, Err(TableError::Missing(table)) if table == "twice"));
    let (one, other) = tokio::join!(store.create_tables(), store.create_tables());
    one.unwrap();
    other.unwrap();
    store.create_tables().await.unwrap();
    store.check().await.unwrap();
    let campaigns = local::client().describe_table().table_name("twice-campaigns").send().await.unwrap();
    assert_eq!(campaigns.table.unwrap().key_schema().len(), 2);

    let client = local::client();
    let table = client.describe_table().table_name("twice").send().await.unwrap().table.unwrap();
    let billing = table.billing_mode_summary.and_then(|billing| billing.billing_mode);
    assert_eq!(billing, Some(BillingMode::PayPerRequest));
    let expiry = client.describe_time_to_live().table_name("twice").send().await.unwrap();
    let expiry = expiry.time_to_live_description.unwrap();
    assert_eq!(expiry.attribute_name(), Some("expires_at"));
    assert_eq!(expiry.time_to_live_status(), Some(&TimeToLiveStatus::Enabled));
}

async fn create_with_keys(client: &Client, table: &str, keys: [(&str, KeyType, ScalarAttributeType); 2]) {
    let mut request = client.create_table().table_name(table).billing_mode(BillingMode::PayPerRequest);
    for (name, role, kind) in keys {
        let definition = AttributeDefinition::builder().attribute_name(name).attribute_type(kind).build();
        let element = KeySchemaElement::builder().attribute_name(name).key_type(role).build();
        request = request.attribute_definitions(definition.unwrap()).key_schema(element.unwrap());
    }
    request.send().await.unwrap();
}

/// A table of somebody else is neither used nor changed.
#[tokio::test]
async fn a_table_with_other_keys_is_refused() {
    let client = local::client();
    let others = [
        [("pk", KeyType::Hash, ScalarAttributeType::S), ("sk", KeyType::Range, ScalarAttributeType::S)],
        [("id", KeyType::Hash, ScalarAttributeType::S), ("sk", KeyType::Range, ScalarAttributeType::N)],
    ];
    for (i, keys) in others.into_iter().enumerate() {
        let table = format!("others-{i}");
        create_with_keys(&client, &table, keys).await;
        let store = local::store_without_table(&table).await;
        assert!(matches!(store.check().await, Err(TableError::WrongKeys(_))));
        assert!(matches!(store.create_tables().await, Err(TableError::WrongKeys(_))));
    }
}

/// A table of before there was an archive gets its index, and what is written from then on is found by it. On a server
/// of its own: while other tables are made, DynamoDB Local leaves a new index of an old one in creation for ever.
#[tokio::test]
async fn an_older_table_gets_its_index() {
    let server = DynamoLocal::start();
    let client = local::client_on(&server);
    let keys = [("pk", KeyType::Hash, ScalarAttributeType::S), ("sk", KeyType::Range, ScalarAttributeType::N)];
    create_with_keys(&client, "unindexed", keys).await;
    let store = local::store_without_table_on(&server, "unindexed").await;
    assert!(store.due(1, None, 1).await.is_err());
    let (one, other) = tokio::join!(store.create_tables(), store.create_tables());
    one.unwrap();
    other.unwrap();
    conformance::names_what_is_due(&store, &store).await;
}

/// The servers that tests can have take the wish at a table's creation, and do not say what they made of it.
#[tokio::test]
async fn a_table_can_be_created_warm() {
    let store = local::store_without_table("warm").await;
    store.create_warm_tables(Warmth { reads_per_s: 15_000, writes_per_s: 6_000 }).await.unwrap();
    store.check().await.unwrap();
}
