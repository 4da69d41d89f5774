//! Tables on DynamoDB Local.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use saltern_backends::DynamoLocal;
use saltern_store::dynamodb::{DynamoOptions, DynamoStore};

/// A new one.
pub(crate) async fn table() -> DynamoStore {
    static TABLES: AtomicU32 = AtomicU32::new(0);
    let number = TABLES.fetch_add(1, Ordering::Relaxed);
    let options = DynamoOptions {
        messages_table: format!("messages-{number}"),
        campaigns_table: format!("campaigns-{number}"),
        endpoint: Some(DynamoLocal::shared().endpoint()),
        call_timeout: Duration::from_secs(30),
        ..DynamoOptions::default()
    };
    let store = DynamoStore::connect(options).await.unwrap();
    store.create_tables().await.unwrap();
    store
}
