//! DynamoDB and Redis, as the configuration names them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use saltern_core::ids::ConversationId;
use saltern_registry::Registry as _;
use saltern_registry::redis::{RedisOptions, RedisRegistry};
use saltern_store::dynamodb::{DynamoOptions, DynamoStore};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::{info, warn};

use super::{DAY, millis};
use crate::config::Config;

/// Between two looks at what a server needs.
const LOOK: Duration = Duration::from_secs(2);
/// A conversation that is only asked about, to see whether the registry answers.
const PROBE: &str = "saltern-probe";

pub(super) struct Cloud {
    pub(super) store: Arc<DynamoStore>,
    pub(super) registry: Arc<RedisRegistry>,
}

impl Cloud {
    /// Starts without either of them: a server comes up when they do.
    pub(super) async fn open(config: &Config) -> Result<Self> {
        let (dynamodb, redis) = (&config.dynamodb, &config.redis);
        let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let store = DynamoStore::connect(DynamoOptions {
            messages_table: dynamodb.messages_table.value.clone(),
            campaigns_table: dynamodb.campaigns_table.value.clone(),
            endpoint: named(&dynamodb.endpoint.value),
            region: named(&dynamodb.region.value),
            claim_ttl: DAY * dynamodb.claim_days.value.get(),
            call_timeout: millis(dynamodb.call_ms.value.get()),
            ..DynamoOptions::default()
        });
        let registry = RedisRegistry::connect(RedisOptions {
            urls: redis.url.value.0.split(',').map(str::to_owned).collect(),
            cluster: redis.cluster.value,
            timeout: millis(redis.call_ms.value.get()),
            ..RedisOptions::default()
        });
        Ok(Self {
            store: Arc::new(store.await.context("dynamodb")?),
            registry: Arc::new(registry.await.context("redis.url")?),
        })
    }

    /// Ready as long as the tables are there and the registry has been reached once: reads go on without it (I5), so its
    /// absence later on is no reason to turn them away.
    pub(super) fn watch_readiness(&self) -> watch::Receiver<Option<String>> {
        let (missing, watched) = watch::channel(Some("not looked at yet".to_owned()));
        let (store, registry) = (Arc::clone(&self.store), Arc::clone(&self.registry));
        tokio::spawn(async move {
            let mut reached = false;
            while !missing.is_closed() {
                let found = look(&store, &registry, &mut reached).await;
                if *missing.borrow() != found {
                    match &found {
                        Some(missing) => warn!(missing, "not ready"),
                        None => info!("ready: tables and registry are there"),
                    }
                }
                missing.send_replace(found);
                sleep(LOOK).await;
            }
        });
        watched
    }
}

/// What is missing, if anything.
async fn look(store: &DynamoStore, registry: &RedisRegistry, reached: &mut bool) -> Option<String> {
    if let Err(error) = store.check().await {
        return Some(error.to_string());
    }
    if !*reached && let Ok(probe) = ConversationId::new(PROBE) {
        *reached = registry.rate_wcu_per_s(&probe).await.is_ok();
    }
    (!*reached).then(|| "the registry has not been reached yet; check redis.url".to_owned())
}
