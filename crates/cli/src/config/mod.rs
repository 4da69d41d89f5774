//! The configuration: defaults, overridden by `saltern.toml`, overridden by `SALTERN_*` variables, overridden by flags.
//! Every layer is a list of (key, text, source); one loop applies them all, so that none knows more than another.

mod file;
mod print;
mod setting;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use saltern_server::ApiKey;
use setting::{Knob, Override};
pub(crate) use setting::{Layout, LogFormat, Mode, SecretUrls, Setting, Source};

use crate::args::ConfigArgs;

/// Looked for in the working folder when `--config` does not name another.
const DEFAULT_FILE: &str = "saltern.toml";

/// Variables of this prefix are settings; an unknown one is an error, but for those in `ENV_OTHER`.
const ENV_PREFIX: &str = "SALTERN_";
/// The log filter, and the key of client commands.
const ENV_OTHER: [&str; 2] = [crate::log::FILTER_ENV, crate::args::KEY_ENV];

/// A table of DynamoDB that has taken a few hundred thousand units per second in its time.
pub(crate) const PHYSICAL_PARTITIONS: u32 = 250;
pub(crate) const PHYSICAL_PARTITIONS_MAX: u32 = 1_000_000;

/// The effective configuration; each value with where it comes from.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: Setting<SocketAddr>,
    pub(crate) data: Setting<PathBuf>,
    pub(crate) log_format: Setting<LogFormat>,
    pub(crate) mode: Setting<Mode>,
    pub(crate) dynamodb: DynamoDb,
    pub(crate) redis: Redis,
    pub(crate) archive: Archive,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    pub(crate) emulate: Emulate,
    pub(crate) api_keys: Vec<ApiKey>,
}

#[derive(Debug)]
pub(crate) struct Limits {
    /// Messages being appended at once.
    pub(crate) appends_max: Setting<NonZeroU32>,
    /// Pages being read at once.
    pub(crate) reads_max: Setting<NonZeroU32>,
    /// HTTP requests under way at once.
    pub(crate) requests_max: Setting<NonZeroU32>,
    /// Conversations remembered in memory.
    pub(crate) conversations_max: Setting<NonZeroU32>,
    /// History kept in memory.
    pub(crate) cache_mib: Setting<u32>,
    /// The engine's own block cache.
    pub(crate) engine_cache_mib: Setting<u32>,
    /// What is written before it moves into the engine's tables.
    pub(crate) log_mib: Setting<NonZeroU32>,
    /// Archived contents kept in memory.
    pub(crate) archive_cache_mib: Setting<u32>,
}

#[derive(Debug)]
pub(crate) struct Timeouts {
    pub(crate) append_ms: Setting<NonZeroU32>,
    pub(crate) read_ms: Setting<NonZeroU32>,
    /// How long requests under way may take to end after a signal to stop.
    pub(crate) shutdown_ms: Setting<NonZeroU32>,
}

/// Where conversations and campaigns are kept in cloud mode. Empty means: as AWS's own tools find it.
#[derive(Debug)]
pub(crate) struct DynamoDb {
    pub(crate) messages_table: Setting<String>,
    pub(crate) campaigns_table: Setting<String>,
    pub(crate) endpoint: Setting<String>,
    pub(crate) region: Setting<String>,
    /// How long a retry is known to be the same message.
    pub(crate) claim_days: Setting<NonZeroU32>,
    pub(crate) call_ms: Setting<NonZeroU32>,
}

/// Where tickets come from in cloud mode.
#[derive(Debug)]
pub(crate) struct Redis {
    pub(crate) url: Setting<SecretUrls>,
    pub(crate) cluster: Setting<bool>,
    pub(crate) call_ms: Setting<NonZeroU32>,
}

/// Where old contents go.
#[derive(Debug)]
pub(crate) struct Archive {
    /// `s3://bucket/prefix`, or a folder. Empty: `archive` in the data folder; in cloud mode, nowhere.
    pub(crate) url: Setting<String>,
    /// Of a server that speaks S3's language, and its region; empty means as AWS's own tools find it.
    pub(crate) endpoint: Setting<String>,
    pub(crate) region: Setting<String>,
    pub(crate) layout: Setting<Layout>,
    pub(crate) after_days: Setting<u32>,
    /// Between two passes of a server; 0 for none.
    pub(crate) every_s: Setting<u32>,
    /// The most that a server's own passes move; 0 for no limit.
    pub(crate) messages_per_s: Setting<u32>,
    /// Objects that nothing refers to go after so long.
    pub(crate) orphan_hours: Setting<u32>,
    pub(crate) call_ms: Setting<NonZeroU32>,
}

/// DynamoDB's partition limits over the store, to see how a conversation would fare there.
#[derive(Debug)]
pub(crate) struct Emulate {
    pub(crate) limits: Setting<bool>,
    pub(crate) physical_partitions: Setting<NonZeroU32>,
    /// Unused capacity that a partition may save up.
    pub(crate) burst_s: Setting<u32>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Setting::default_of(SocketAddr::from(([127, 0, 0, 1], 8080))),
            data: Setting::default_of(PathBuf::from("./saltern-data")),
            log_format: Setting::default_of(LogFormat::Text),
            mode: Setting::default_of(Mode::Embedded),
            dynamodb: DynamoDb {
                messages_table: Setting::default_of("saltern-messages".into()),
                campaigns_table: Setting::default_of("saltern-campaigns".into()),
                endpoint: Setting::default_of(String::new()),
                region: Setting::default_of(String::new()),
                claim_days: count(7),
                call_ms: count(2_000),
            },
            redis: Redis {
                url: Setting::default_of(SecretUrls("redis://127.0.0.1:6379".into())),
                cluster: Setting::default_of(false),
                call_ms: count(1_000),
            },
            limits: Limits {
                appends_max: count(4_096),
                reads_max: count(4_096),
                requests_max: count(4_096),
                conversations_max: count(100_000),
                cache_mib: Setting::default_of(128),
                engine_cache_mib: Setting::default_of(128),
                log_mib: count(128),
                archive_cache_mib: Setting::default_of(64),
            },
            timeouts: Timeouts { append_ms: count(10_000), read_ms: count(5_000), shutdown_ms: count(20_000) },
            archive: Archive {
                url: Setting::default_of(String::new()),
                endpoint: Setting::default_of(String::new()),
                region: Setting::default_of(String::new()),
                layout: Setting::default_of(Layout::Segments),
                after_days: Setting::default_of(90),
                every_s: Setting::default_of(7 * 24 * 3_600),
                messages_per_s: Setting::default_of(1_000),
                orphan_hours: Setting::default_of(24),
                call_ms: count(10_000),
            },
            emulate: Emulate {
                limits: Setting::default_of(false),
                physical_partitions: count(PHYSICAL_PARTITIONS),
                burst_s: Setting::default_of(300),
            },
            api_keys: Vec::new(),
        }
    }
}

fn count(value: u32) -> Setting<NonZeroU32> {
    Setting::default_of(NonZeroU32::new(value).unwrap_or(NonZeroU32::MIN))
}

impl Config {
    /// Reads every layer and checks the whole.
    pub(crate) fn load(args: &ConfigArgs) -> Result<Self> {
        Self::from_layers(args, std::env::vars_os())
    }

    fn from_layers(args: &ConfigArgs, env: impl Iterator<Item = (OsString, OsString)>) -> Result<Self> {
        let mut config = Self::default();
        let path = args.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let layer = file::parse(path, &text)?;
                config.apply(layer.overrides)?;
                config.api_keys = layer.api_keys;
            }
            Err(e) if args.config.is_none() && e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(|| format!("cannot read configuration file {}", path.display())),
        }
        let keys = config.keys();
        config.apply(from_env(&keys, env)?)?;
        config.apply(args.overrides())?;
        config.check()?;
        Ok(config)
    }

    /// Every setting but the API keys, by its key, in the order people read them.
    fn knobs(&mut self) -> [(&'static str, &mut dyn Knob); 36] {
        [
            ("listen", &mut self.listen),
            ("data", &mut self.data),
            ("log_format", &mut self.log_format),
            ("mode", &mut self.mode),
            ("limits.appends_max", &mut self.limits.appends_max),
            ("limits.reads_max", &mut self.limits.reads_max),
            ("limits.requests_max", &mut self.limits.requests_max),
            ("limits.conversations_max", &mut self.limits.conversations_max),
            ("limits.cache_mib", &mut self.limits.cache_mib),
            ("limits.engine_cache_mib", &mut self.limits.engine_cache_mib),
            ("limits.log_mib", &mut self.limits.log_mib),
            ("limits.archive_cache_mib", &mut self.limits.archive_cache_mib),
            ("timeouts.append_ms", &mut self.timeouts.append_ms),
            ("timeouts.read_ms", &mut self.timeouts.read_ms),
            ("timeouts.shutdown_ms", &mut self.timeouts.shutdown_ms),
            ("archive.url", &mut self.archive.url),
            ("archive.endpoint", &mut self.archive.endpoint),
            ("archive.region", &mut self.archive.region),
            ("archive.layout", &mut self.archive.layout),
            ("archive.after_days", &mut self.archive.after_days),
            ("archive.every_s", &mut self.archive.every_s),
            ("archive.messages_per_s", &mut self.archive.messages_per_s),
            ("archive.orphan_hours", &mut self.archive.orphan_hours),
            ("archive.call_ms", &mut self.archive.call_ms),
            ("emulate.limits", &mut self.emulate.limits),
            ("emulate.physical_partitions", &mut self.emulate.physical_partitions),
            ("emulate.burst_s", &mut self.emulate.burst_s),
            ("dynamodb.messages_table", &mut self.dynamodb.messages_table),
            ("dynamodb.campaigns_table", &mut self.dynamodb.campaigns_table),
            ("dynamodb.endpoint", &mut self.dynamodb.endpoint),
            ("dynamodb.region", &mut self.dynamodb.region),
            ("dynamodb.claim_days", &mut self.dynamodb.claim_days),
            ("dynamodb.call_ms", &mut self.dynamodb.call_ms),
            ("redis.url", &mut self.redis.url),
            ("redis.cluster", &mut self.redis.cluster),
            ("redis.call_ms", &mut self.redis.call_ms),
        ]
    }

    fn keys(&mut self) -> Vec<&'static str> {
        self.knobs().into_iter().map(|(key, _)| key).collect()
    }

    fn apply(&mut self, overrides: Vec<Override>) -> Result<()> {
        for Override { key, text, source } in overrides {
            let Some((_, knob)) = self.knobs().into_iter().find(|(known, _)| *known == key) else {
                bail!("{source}: unknown key `{key}`; `saltern config check` without it lists the keys");
            };
            if let Err(problem) = knob.set(&text, source.clone()) {
                bail!("{source}: {key} {problem}, not `{text}`");
            }
        }
        Ok(())
    }

    /// What no single setting can tell.
    fn check(&self) -> Result<()> {
        let listen = self.listen.value;
        if !listen.ip().to_canonical().is_loopback() && self.api_keys.is_empty() {
            bail!(
                "{}: {listen} is reachable from other machines, which requires API keys; add [[api_keys]] to the configuration, or listen on 127.0.0.1",
                self.listen.source
            );
        }
        if self.mode.value == Mode::Cloud && !cfg!(feature = "cloud") {
            bail!("{}: this binary was built without the cloud mode; build it with --features cloud", self.mode.source);
        }
        let url = &self.archive.url;
        if url.value.starts_with("s3://") && !cfg!(feature = "s3") {
            bail!("{}: this binary was built without S3; build it with --features s3 (or cloud)", url.source);
        }
        if let Err(expected) = archive_place(&url.value, self.mode.value) {
            bail!("{}: archive.url must be {expected}, not `{}`", url.source, url.value);
        }
        let partitions = &self.emulate.physical_partitions;
        if partitions.value.get() > PHYSICAL_PARTITIONS_MAX {
            bail!("{}: emulate.physical_partitions must be at most {PHYSICAL_PARTITIONS_MAX}", partitions.source);
        }
        Ok(())
    }
}

/// What `archive.url` must be, if it is not. A misspelt URL must not pass for a folder, and servers that share tables must not
/// move contents to a disk of their own.
fn archive_place(url: &str, mode: Mode) -> Result<(), &'static str> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme).filter(|scheme| !scheme.contains('/'));
    match (scheme, url.strip_prefix("s3://"), mode) {
        (_, Some(place), _) if !place.is_empty() && !place.starts_with('/') => Ok(()),
        (None, None, Mode::Embedded) => Ok(()),
        (None, None, Mode::Cloud) if url.is_empty() => Ok(()),
        (_, _, Mode::Embedded) => Err("s3://BUCKET/PREFIX or a folder"),
        (_, _, Mode::Cloud) => Err("s3://BUCKET/PREFIX in cloud mode, where all servers share the archive"),
    }
}

/// `SALTERN_LIMITS_APPENDS_MAX` is `limits.appends_max`.
fn from_env(keys: &[&'static str], env: impl Iterator<Item = (OsString, OsString)>) -> Result<Vec<Override>> {
    let mut overrides = Vec::new();
    for (name, text) in env {
        let Some(name) = name.to_str().filter(|name| name.starts_with(ENV_PREFIX)) else { continue };
        if ENV_OTHER.contains(&name) {
            continue;
        }
        let Some(key) = keys.iter().find(|key| env_name(key) == name) else {
            bail!("unknown variable {name}; `saltern config check --help` explains how variables are named");
        };
        let Some(text) = text.to_str() else { bail!("{name} must be UTF-8") };
        overrides.push(Override {
            key: (*key).to_owned(),
            text: text.to_owned(),
            source: Source::Env(name.to_owned()),
        });
    }
    Ok(overrides)
}

fn env_name(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.replace('.', "_").to_uppercase())
}

impl ConfigArgs {
    fn overrides(&self) -> Vec<Override> {
        let listen = self.listen.map(|listen| ("listen", "--listen", listen.to_string()));
        let data = self.data.as_ref().map(|data| ("data", "--data", data.display().to_string()));
        let format = self.log_format.map(|format| ("log_format", "--log-format", format.to_string()));
        let emulate = self.emulate_limits.then(|| ("emulate.limits", "--emulate-limits", true.to_string()));
        let given = [listen, data, format, emulate].into_iter().flatten();
        given.map(|(key, flag, text)| Override { key: key.into(), text, source: Source::Flag(flag) }).collect()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", true, true)]
    #[case("s3://bucket", true, true)]
    #[case("s3://bucket/a/b", true, true)]
    #[case("/var/archive", true, false)]
    #[case("./a:b", true, false)]
    #[case("archive", true, false)]
    #[case("s3:/bucket", false, false)]
    #[case("s3:bucket", false, false)]
    #[case("S3://bucket", false, false)]
    #[case("s3://", false, false)]
    #[case("s3:///bucket", false, false)]
    #[case("ftp://x", false, false)]
    fn archives_are_where_they_can_be(#[case] url: &str, #[case] embedded: bool, #[case] cloud: bool) {
        let taken = [Mode::Embedded, Mode::Cloud].map(|mode| archive_place(url, mode).is_ok());
        assert_eq!(taken, [embedded, cloud]);
    }
}
