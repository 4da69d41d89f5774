//! What the service under test runs on: the memory store, or with the feature `cloud-tests` DynamoDB Local and Redis.

use std::sync::Arc;

use saltern_registry::Registry;
use saltern_store::{CampaignStore, Due, Scan, Store};

pub(crate) struct Beneath {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) campaigns: Arc<dyn CampaignStore>,
    pub(crate) due: Arc<dyn Due>,
    pub(crate) scan: Arc<dyn Scan>,
    /// How many boosts there are, where that can be told.
    pub(crate) boosts: Box<dyn Fn() -> Option<usize> + Send + Sync>,
    /// Tells two moments apart between which anything was written.
    pub(crate) mark: Box<dyn Fn() -> String + Send + Sync>,
    /// Ends with the test.
    #[cfg(feature = "cloud-tests")]
    _redis: saltern_backends::Redis,
}

#[cfg(not(feature = "cloud-tests"))]
pub(crate) async fn beneath() -> Beneath {
    use saltern_registry::local::LocalRegistry;
    use saltern_store::Capabilities;
    use saltern_store::campaigns::memory::MemoryCampaigns;
    use saltern_store::memory::MemoryStore;

    let rows = MemoryStore::new(Capabilities { atomic_puts: true, exclusive: true });
    let boosts = MemoryCampaigns::default();
    let (store, campaigns, counted) = (Arc::new(rows.clone()), Arc::new(boosts.clone()), boosts.clone());
    Beneath {
        store,
        registry: Arc::new(LocalRegistry::new(1_000)),
        campaigns,
        due: Arc::new(rows.clone()),
        scan: Arc::new(rows.clone()),
        boosts: Box::new(move || Some(counted.rows().len())),
        mark: Box::new(move || format!("{:?} {:?}", rows.rows(), boosts.rows())),
    }
}

/// A table and a Redis for each test.
#[cfg(feature = "cloud-tests")]
pub(crate) async fn beneath() -> Beneath {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use saltern_backends::{DynamoLocal, Redis};
    use saltern_registry::redis::{RedisOptions, RedisRegistry};
    use saltern_store::dynamodb::{DynamoOptions, DynamoStore};

    static TABLES: AtomicU32 = AtomicU32::new(0);
    let number = TABLES.fetch_add(1, Ordering::Relaxed);
    let options = DynamoOptions {
        messages_table: format!("messages-{number}"),
        campaigns_table: format!("campaigns-{number}"),
        endpoint: Some(DynamoLocal::shared().endpoint()),
        call_timeout: Duration::from_secs(30),
        ..DynamoOptions::default()
    };
    let store = Arc::new(DynamoStore::connect(options).await.unwrap());
    store.create_tables().await.unwrap();
    let redis = Redis::start();
    let registry = RedisRegistry::connect(RedisOptions { urls: vec![redis.url()], ..RedisOptions::default() });
    let metrics = store.metrics().clone();
    Beneath {
        store: store.clone(),
        registry: Arc::new(registry.await.unwrap()),
        campaigns: store.clone(),
        due: store.clone(),
        scan: store,
        boosts: Box::new(|| None),
        mark: Box::new(move || format!("{} puts, {} units", metrics.calls("PutItem"), metrics.write_units())),
        _redis: redis,
    }
}
