//! Where the registry is, and how long to wait for it.

use std::fmt;
use std::time::Duration;

#[derive(Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// `redis://[user:password@]host[:port][/database]`: the primary, or some nodes of a cluster.
    pub urls: Vec<String>,
    pub cluster: bool,
    /// What one call may take, whatever happens.
    pub timeout: Duration,
    /// A conversation that nobody appends to for this long is forgotten, and synced when it is used again.
    pub idle_expiry: Duration,
    /// What every key begins with. Servers that share their conversations share it.
    pub prefix: String,
}

impl Default for RedisOptions {
    fn default() -> Self {
        Self {
            urls: vec!["redis://127.0.0.1:6379".to_owned()],
            cluster: false,
            timeout: Duration::from_secs(1),
            idle_expiry: Duration::from_secs(60 * 60),
            prefix: "saltern".to_owned(),
        }
    }
}

/// Without the urls: they may hold passwords.
impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { urls: _, cluster, timeout, idle_expiry, prefix } = self;
        let mut options = f.debug_struct("RedisOptions");
        options.field("cluster", cluster).field("timeout", timeout).field("idle_expiry", idle_expiry);
        options.field("prefix", prefix).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum OptionsError {
    #[error("a single primary has exactly one url, but {0} were given")]
    Urls(usize),
    #[error("a prefix has no braces: they would decide where a cluster keeps a key")]
    Prefix,
    #[error("the timeout and the idle expiry are at least a millisecond")]
    TooShort,
}

impl RedisOptions {
    pub(super) fn check(&self) -> Result<(), OptionsError> {
        if !self.cluster && self.urls.len() != 1 {
            return Err(OptionsError::Urls(self.urls.len()));
        }
        if self.prefix.contains(['{', '}']) {
            return Err(OptionsError::Prefix);
        }
        if self.timeout.as_millis() == 0 || self.idle_expiry.as_millis() == 0 {
            return Err(OptionsError::TooShort);
        }
        Ok(())
    }
}
