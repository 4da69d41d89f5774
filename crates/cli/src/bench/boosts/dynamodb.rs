//! The same designs over DynamoDB, in tables of their own.

use anyhow::Result;

use super::designs::Stores;

/// Rows of the expansion manifest are written for these districts alone, which are the ones that are searched in: the
/// others would take an hour to write, and no search reads them.
pub(super) const DISTRICTS_FILLED: usize = 30;

#[cfg(feature = "cloud")]
pub(super) async fn open(endpoint: Option<&str>) -> Result<Option<Stores>> {
    use std::sync::Arc;
    use std::time::Duration;

    use saltern_store::dynamodb::{DynamoOptions, DynamoStore};

    use crate::service::now_ms;

    let Some(endpoint) = endpoint else { return Ok(None) };
    let name = |table: &str| format!("saltern-bench-{table}-{}", now_ms());
    let options = DynamoOptions {
        messages_table: name("messages"),
        campaigns_table: name("campaigns"),
        endpoint: Some(endpoint.to_owned()),
        // A document of V1 is slow to parse, and slower among 64 of them.
        call_timeout: Duration::from_secs(60),
        ..DynamoOptions::default()
    };
    let store = DynamoStore::connect(options).await?;
    store.create_tables().await?;
    let store = Arc::new(store);
    Ok(Some(Stores { rows: store.clone(), campaigns: store }))
}

#[cfg(not(feature = "cloud"))]
pub(super) async fn open(endpoint: Option<&str>) -> Result<Option<Stores>> {
    anyhow::ensure!(endpoint.is_none(), "--dynamodb needs a binary built with --features cloud");
    Ok(None)
}
