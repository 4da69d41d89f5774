//! `saltern serve`: opens, listens, and ends in order.

use std::io::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};
use prometheus_client::registry::Registry;
use saltern_registry::local::LocalRegistry;
use saltern_server::{Server, ServerConfig};
use saltern_service::conversations::{self, Conversations};
use saltern_store::Store;
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore, EngineFailure};
use saltern_store::throttled::{PartitionLimits, Throttled};
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use crate::config::{Config, Emulate};

/// The service over an embedded folder, without HTTP.
pub(crate) struct Service {
    pub(crate) conversations: Conversations,
    store: Arc<EmbeddedStore>,
}

impl Service {
    /// On failure nothing in the folder has changed.
    pub(crate) fn open(config: &Config) -> Result<Self> {
        let options = EmbeddedOptions {
            cache_bytes: u64::from(config.limits.engine_cache_mib.value) * 1_024 * 1_024,
            ..EmbeddedOptions::default()
        };
        let store = Arc::new(EmbeddedStore::open(&config.data.value, options)?);
        let conversations_max = config.limits.conversations_max.value.get() as usize;
        let registry = Arc::new(LocalRegistry::new(conversations_max));
        let settings = conversations::Config {
            append_deadline: millis(config.timeouts.append_ms.value.get()),
            read_deadline: millis(config.timeouts.read_ms.value.get()),
            appends_max: config.limits.appends_max.value.get() as usize,
            reads_max: config.limits.reads_max.value.get() as usize,
            conversations_max,
            cache_bytes_max: config.limits.cache_mib.value as usize * 1_024 * 1_024,
            ..conversations::Config::new(Arc::new(now_ms), now_ms() ^ u64::from(std::process::id()))
        };
        let conversations = Conversations::new(limited(store.clone(), &config.emulate), registry, settings);
        Ok(Self { conversations, store })
    }

    /// Lets what is under way end, and leaves the folder ready for a quick start.
    pub(crate) async fn close(self) {
        self.conversations.shut_down().await;
        // Everything acknowledged is on the disk already: at worst the next start has more to replay.
        if let Err(error) = self.store.close().await {
            warn!(%error, "store was not closed cleanly");
        }
    }
}

/// The store, with DynamoDB's partition limits if they are to be emulated.
fn limited(store: Arc<EmbeddedStore>, emulate: &Emulate) -> Arc<dyn Store> {
    if !emulate.limits.value {
        return store;
    }
    let limits = PartitionLimits {
        burst: Duration::from_secs(emulate.burst_s.value.into()),
        ..PartitionLimits::dynamodb(emulate.physical_partitions.value)
    };
    info!(partitions = limits.physical_partitions, burst_s = emulate.burst_s.value, "emulating partition limits");
    Arc::new(Throttled::new(store, limits))
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Serves until a signal, or until the store fails.
pub(crate) async fn serve(config: &Config) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let service = Service::open(config)?;
    let failure = Arc::new(OnceLock::new());
    let server = match bind(config, &service, Arc::clone(&failure)).await {
        Ok(server) => server,
        Err(e) => {
            service.close().await;
            return Err(e);
        }
    };
    let shutdown = async {
        tokio::select! {
            _ = interrupt.recv() => info!("interrupted: finishing what is under way"),
            _ = terminate.recv() => info!("told to end: finishing what is under way"),
            failed = service.store.failure() => {
                // What is under way cannot succeed any more. Its outcome is unknown, and is answered so.
                service.conversations.abort();
                let _ = failure.set(failed);
            }
        }
    };
    server.run(shutdown).await;
    service.close().await;
    match failure.get() {
        None => Ok(()),
        Some(EngineFailure::Full(_)) => {
            Err(anyhow!("the disk of {} is full; free space and start again", config.data.value.display()))
        }
        Some(failed) => Err(anyhow::Error::new(failed.clone()).context("the store has failed; start again")),
    }
}

async fn bind(config: &Config, service: &Service, failure: Arc<OnceLock<EngineFailure>>) -> Result<Server> {
    let server_config = ServerConfig {
        api_keys: config.api_keys.clone(),
        requests_max: config.limits.requests_max.value.get() as usize,
        shutdown_grace: millis(config.timeouts.shutdown_ms.value.get()),
        ..ServerConfig::new(config.listen.value)
    };
    let mut metrics = Registry::with_prefix("saltern");
    service.conversations.metrics().register(&mut metrics);
    service.store.metrics().register(&mut metrics);
    let ready = Arc::new(move || failure.get().map_or(Ok(()), |failed| Err(failed.to_string())));
    let server = Server::bind(server_config, service.conversations.clone(), ready, metrics).await?;
    let url = format!("http://{}", server.local_addr());
    service.store.announce(&url).context("cannot write into the data folder")?;
    println!("saltern is ready on {url} (data in {})", config.data.value.display());
    // Whoever waits for the line may have stopped reading: no reason not to serve.
    let _ = std::io::stdout().flush();
    Ok(server)
}
