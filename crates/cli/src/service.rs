//! The service over the stores that the configuration names, without HTTP.

#[cfg(feature = "cloud")]
mod cloud;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow};
use prometheus_client::registry::Registry as Metrics;
use saltern_registry::Registry;
use saltern_registry::local::LocalRegistry;
use saltern_service::campaigns::{self, Campaigns};
use saltern_service::conversations::{self, Conversations, ObjectLayout};
use saltern_service::upkeep::Upkeep;
use saltern_service::verify::Verifier;
#[cfg(feature = "cloud")]
use saltern_store::dynamodb::Warmth;
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore, EngineFailure, Holder, OpenError};
use saltern_store::objects::{ObjectRoot, Objects};
use saltern_store::throttled::{PartitionLimits, Throttled};
use saltern_store::{CampaignStore, Due, Scan, Store};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::args::InitArgs;
use crate::config::{Config, Emulate, Layout, Mode};
use crate::disk_watch::DiskWatch;
use crate::time_zones;

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) struct Service {
    pub(crate) conversations: Conversations,
    pub(crate) campaigns: Campaigns,
    backing: Backing,
    objects: Option<Arc<ObjectRoot>>,
}

/// What is beneath the ports.
enum Backing {
    Embedded(Arc<EmbeddedStore>),
    #[cfg(feature = "cloud")]
    Cloud(cloud::Cloud),
}

impl Backing {
    async fn open(config: &Config) -> Result<Self> {
        match config.mode.value {
            #[cfg(feature = "cloud")]
            Mode::Cloud => Ok(Self::Cloud(cloud::Cloud::open(config).await?)),
            // Without the feature, the configuration has been refused before.
            #[cfg(not(feature = "cloud"))]
            Mode::Cloud => anyhow::bail!("this binary has no cloud mode"),
            Mode::Embedded => {
                let options = EmbeddedOptions {
                    cache_bytes: u64::from(config.limits.engine_cache_mib.value) * 1_024 * 1_024,
                    layer_bytes: config.limits.log_mib.value.get() as usize * 1_024 * 1_024,
                    ..EmbeddedOptions::default()
                };
                Ok(Self::Embedded(Arc::new(EmbeddedStore::open(&config.data.value, options)?)))
            }
        }
    }

    fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Embedded(store) => store.clone(),
            #[cfg(feature = "cloud")]
            Self::Cloud(cloud) => cloud.store.clone(),
        }
    }

    fn scan(&self) -> Arc<dyn Scan> {
        match self {
            Self::Embedded(store) => store.clone(),
            #[cfg(feature = "cloud")]
            Self::Cloud(cloud) => cloud.store.clone(),
        }
    }

    fn due(&self) -> Arc<dyn Due> {
        match self {
            Self::Embedded(store) => store.clone(),
            #[cfg(feature = "cloud")]
            Self::Cloud(cloud) => cloud.store.clone(),
        }
    }

    fn campaigns(&self) -> Arc<dyn CampaignStore> {
        match self {
            Self::Embedded(store) => store.clone(),
            #[cfg(feature = "cloud")]
            Self::Cloud(cloud) => cloud.store.clone(),
        }
    }

    fn registry(&self, conversations_max: usize) -> Arc<dyn Registry> {
        match self {
            Self::Embedded(_) => Arc::new(LocalRegistry::new(conversations_max)),
            #[cfg(feature = "cloud")]
            Self::Cloud(cloud) => cloud.registry.clone(),
        }
    }
}

impl Service {
    /// On failure nothing has changed.
    pub(crate) async fn open(config: &Config) -> Result<Self> {
        time_zones::use_newest();
        let backing = Backing::open(config).await?;
        let objects = objects(config).await?;
        let conversations_max = config.limits.conversations_max.value.get() as usize;
        let settings = conversations::Config {
            append_deadline: millis(config.timeouts.append_ms.value.get()),
            read_deadline: millis(config.timeouts.read_ms.value.get()),
            appends_max: config.limits.appends_max.value.get() as usize,
            reads_max: config.limits.reads_max.value.get() as usize,
            conversations_max,
            cache_bytes_max: config.limits.cache_mib.value as usize * 1_024 * 1_024,
            objects: objects.clone().map(|objects| objects as Arc<dyn Objects>),
            object_layout: match config.archive.layout.value {
                Layout::Segments => ObjectLayout::Segments,
                Layout::Messages => ObjectLayout::Messages,
            },
            archive_cache_bytes_max: config.limits.archive_cache_mib.value as usize * 1_024 * 1_024,
            ..conversations::Config::new(Arc::new(now_ms), jitter_seed())
        };
        let store = limited(backing.store(), &config.emulate);
        let conversations = Conversations::new(store, backing.registry(conversations_max), settings);
        let settings = campaigns::Config::new(Arc::new(now_ms), jitter_seed());
        let campaigns = Campaigns::new(backing.campaigns(), settings);
        Ok(Self { conversations, campaigns, backing, objects })
    }

    /// The same for a command that could as well ask the server that has the folder.
    pub(crate) async fn open_unserved(config: &Config) -> Result<Self> {
        Self::open(config).await.map_err(|e| match e.downcast_ref() {
            Some(OpenError::Locked { folder, holder: Holder { address: Some(url), .. } }) => {
                anyhow!(
                    "folder {} is in use by the server at {url}; repeat the command with --url {url}",
                    folder.display()
                )
            }
            _ => e,
        })
    }

    /// The same for a command that only looks at what is there: an absent folder is not made.
    pub(crate) async fn open_present(config: &Config) -> Result<Self> {
        let folder = &config.data.value;
        if config.mode.value == Mode::Embedded && !folder.is_dir() {
            anyhow::bail!(
                "no data folder {}; name the data folder with --data, or a server with --url",
                folder.display()
            );
        }
        Self::open_unserved(config).await
    }

    pub(crate) fn verifier(&self, config: &Config) -> Verifier {
        let claims_kept_ms = match config.mode.value {
            Mode::Embedded => None,
            Mode::Cloud => Some(u64::from(config.dynamodb.claim_days.value.get()) * 24 * 3_600 * 1_000),
        };
        Verifier {
            store: self.backing.store(),
            scan: self.backing.scan(),
            objects: self.objects.clone().map(|objects| objects as Arc<dyn Objects>),
            claims_kept_ms,
            wall_clock: Arc::new(now_ms),
            patience: saltern_service::Patience::default(),
        }
    }

    pub(crate) fn upkeep(&self, config: &Config) -> Upkeep {
        Upkeep {
            conversations: self.conversations.clone(),
            due: self.backing.due(),
            verifier: self.verifier(config),
            older_than: DAY * config.archive.after_days.value,
            orphans_after: Duration::from_secs(3_600) * config.archive.orphan_hours.value,
        }
    }

    /// Fails, and says what to do, if contents have nowhere to go.
    pub(crate) async fn check_archive(&self) -> Result<()> {
        if self.objects.is_none() {
            anyhow::bail!("no archive is configured; set archive.url to s3://BUCKET/PREFIX");
        }
        #[cfg(feature = "s3")]
        if let Some(objects) = &self.objects {
            objects.check().await?;
        }
        Ok(())
    }

    /// Where the data is, for people.
    pub(crate) fn place(&self, config: &Config) -> String {
        match &self.backing {
            Backing::Embedded(_) => config.data.value.display().to_string(),
            #[cfg(feature = "cloud")]
            Backing::Cloud(_) => {
                let tables = &config.dynamodb;
                format!("DynamoDB tables {} and {}", tables.messages_table.value, tables.campaigns_table.value)
            }
        }
    }

    /// Tells whoever finds a folder locked where it is being served.
    pub(crate) fn announce(&self, url: &str) -> io::Result<()> {
        match &self.backing {
            Backing::Embedded(store) => store.announce(url),
            #[cfg(feature = "cloud")]
            Backing::Cloud(_) => Ok(()),
        }
    }

    pub(crate) fn register_metrics(&self, metrics: &mut Metrics) {
        self.conversations.metrics().register(metrics);
        self.campaigns.metrics().register(metrics);
        match &self.backing {
            Backing::Embedded(store) => store.metrics().register(metrics),
            #[cfg(feature = "cloud")]
            Backing::Cloud(cloud) => cloud.store.metrics().register(metrics),
        }
    }

    /// What is missing before requests can be served; watched for as long as anyone listens.
    pub(crate) fn watch_readiness(&self) -> watch::Receiver<Option<String>> {
        match &self.backing {
            Backing::Embedded(_) => watch::channel(None).1,
            #[cfg(feature = "cloud")]
            Backing::Cloud(cloud) => cloud.watch_readiness(),
        }
    }

    /// Watches the disk of an embedded store.
    pub(crate) fn watch_disk(&self) -> io::Result<Arc<DiskWatch>> {
        match &self.backing {
            Backing::Embedded(store) => {
                let store = Arc::downgrade(store);
                DiskWatch::start(move || store.upgrade().map(|store| store.check_disk()))
            }
            #[cfg(feature = "cloud")]
            Backing::Cloud(_) => DiskWatch::start(|| None),
        }
    }

    /// Resolves when the store has failed for good. A store that others run comes back.
    pub(crate) async fn failure(&self) -> EngineFailure {
        match &self.backing {
            Backing::Embedded(store) => store.failure().await,
            #[cfg(feature = "cloud")]
            Backing::Cloud(_) => std::future::pending().await,
        }
    }

    /// Lets what is under way end, and leaves a folder ready for a quick start.
    pub(crate) async fn close(self) {
        self.conversations.shut_down().await;
        match self.backing {
            // Everything acknowledged is on the disk already: at worst the next start has more to replay.
            Backing::Embedded(store) => {
                if let Err(error) = store.close().await {
                    warn!(%error, "store was not closed cleanly");
                }
            }
            #[cfg(feature = "cloud")]
            Backing::Cloud(_) => {}
        }
    }
}

/// Where contents go that leave the store.
async fn objects(config: &Config) -> Result<Option<Arc<ObjectRoot>>> {
    let url = config.archive.url.value.as_str();
    let folder = |path: &Path| {
        let root = ObjectRoot::folder(path);
        root.with_context(|| format!("archive folder {} cannot be used", path.display()))
    };
    let root = match (url, config.mode.value) {
        ("", Mode::Cloud) => return Ok(None),
        ("", Mode::Embedded) => folder(&config.data.value.join("archive"))?,
        (url, _) if url.starts_with("s3://") => s3(config).await?,
        (url, _) => folder(Path::new(url))?,
    };
    Ok(Some(Arc::new(root)))
}

#[cfg(feature = "s3")]
async fn s3(config: &Config) -> Result<ObjectRoot> {
    use saltern_store::objects::S3Options;
    let archive = &config.archive;
    let place = archive.url.value.trim_start_matches("s3://").trim_end_matches('/');
    let (bucket, prefix) = place.split_once('/').map_or((place, None), |(bucket, prefix)| (bucket, Some(prefix)));
    let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let options = S3Options {
        bucket: bucket.to_owned(),
        prefix: prefix.map(str::to_owned),
        endpoint: named(&archive.endpoint.value),
        region: named(&archive.region.value),
        timeout: millis(archive.call_ms.value.get()),
    };
    ObjectRoot::s3(options).await.context("archive.url")
}

#[cfg(not(feature = "s3"))]
async fn s3(_: &Config) -> Result<ObjectRoot> {
    // The configuration has been refused before.
    anyhow::bail!("this binary cannot reach S3")
}

/// The store, with DynamoDB's partition limits if they are to be emulated.
fn limited(store: Arc<dyn Store>, emulate: &Emulate) -> Arc<dyn Store> {
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

pub(crate) fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

/// Differs between servers, so that they do not march in step.
fn jitter_seed() -> u64 {
    now_ms() ^ u64::from(std::process::id())
}

pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Creates what the configured mode needs beforehand.
#[cfg(feature = "cloud")]
pub(crate) async fn init(config: &Config, args: &InitArgs) -> Result<()> {
    let Backing::Cloud(cloud) = Backing::open(config).await? else {
        anyhow::bail!(
            "init creates DynamoDB tables, but the mode is embedded, where saltern serve creates its folder itself; set mode = \"cloud\""
        );
    };
    let warmth = Warmth { reads_per_s: args.warm_reads, writes_per_s: args.warm_writes };
    cloud.store.create_warm_tables(warmth).await?;
    let tables = &config.dynamodb;
    crate::out::line(format_args!(
        "tables {} and {} are ready",
        tables.messages_table.value, tables.campaigns_table.value
    ))?;
    Ok(())
}

#[cfg(not(feature = "cloud"))]
pub(crate) async fn init(_: &Config, _: &InitArgs) -> Result<()> {
    anyhow::bail!(
        "nothing to create in embedded mode: saltern serve makes its folder; the cloud mode needs a binary built with --features cloud"
    )
}
