//! One setting: its value, and who set it.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// Where a value comes from, as people would look it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File { path: String, line: usize },
    Env(String),
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::Env(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// One value of one layer, before it is understood.
#[derive(Debug)]
pub(super) struct Override {
    pub(super) key: String,
    pub(super) text: String,
    pub(super) source: Source,
}

#[derive(Debug)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) source: Source,
}

impl<T> Setting<T> {
    pub(super) fn default_of(value: T) -> Self {
        Self { value, source: Source::Default }
    }
}

/// A setting whose type is no concern of the layers.
pub(super) trait Knob {
    fn set(&mut self, text: &str, source: Source) -> Result<(), &'static str>;
    fn to_toml(&self) -> String;
    fn source(&self) -> &Source;
}

/// A type that settings can have.
pub(super) trait Value: Sized {
    /// The error completes the sentence "the setting …".
    fn parse(text: &str) -> Result<Self, &'static str>;
    fn to_toml(&self) -> String;
}

impl<T: Value> Knob for Setting<T> {
    fn set(&mut self, text: &str, source: Source) -> Result<(), &'static str> {
        *self = Self { value: T::parse(text)?, source };
        Ok(())
    }

    fn to_toml(&self) -> String {
        self.value.to_toml()
    }

    fn source(&self) -> &Source {
        &self.source
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

impl Value for SocketAddr {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text.parse().map_err(|_| "must be an address and a port such as 127.0.0.1:8080")
    }

    fn to_toml(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() { Err("must name a folder") } else { Ok(Self::from(text)) }
    }

    fn to_toml(&self) -> String {
        quoted(&self.display().to_string())
    }
}

impl Value for bool {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text.parse().map_err(|_| "must be `true` or `false`")
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl Value for NonZeroU32 {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text.parse().map_err(|_| "must be a whole number from 1 to 4294967295")
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl Value for u32 {
    fn parse(text: &str) -> Result<Self, &'static str> {
        text.parse().map_err(|_| "must be a whole number from 0 to 4294967295")
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    Json,
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

impl Value for LogFormat {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("must be `text` or `json`"),
        }
    }

    fn to_toml(&self) -> String {
        quoted(&self.to_string())
    }
}

/// What conversations are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A folder of this process's own.
    Embedded,
    /// DynamoDB and Redis, shared by any number of servers.
    Cloud,
}

impl Value for Mode {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "embedded" => Ok(Self::Embedded),
            "cloud" => Ok(Self::Cloud),
            _ => Err("must be `embedded` or `cloud`"),
        }
    }

    fn to_toml(&self) -> String {
        match self {
            Self::Embedded => quoted("embedded"),
            Self::Cloud => quoted("cloud"),
        }
    }
}

/// How contents are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Many messages in an object.
    Segments,
    /// One JSON object for each message.
    Messages,
}

impl Value for Layout {
    fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "segments" => Ok(Self::Segments),
            "messages" => Ok(Self::Messages),
            _ => Err("must be `segments` or `messages`"),
        }
    }

    fn to_toml(&self) -> String {
        match self {
            Self::Segments => quoted("segments"),
            Self::Messages => quoted("messages"),
        }
    }
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, &'static str> {
        Ok(text.to_owned())
    }

    fn to_toml(&self) -> String {
        quoted(self)
    }
}

/// Addresses, separated by commas, that may hold passwords: these are not shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SecretUrls(pub(crate) String);

impl SecretUrls {
    fn shown(&self) -> String {
        let shown = |url: &str| match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
            _ => url.to_owned(),
        };
        self.0.split(',').map(shown).collect::<Vec<_>>().join(",")
    }
}

impl fmt::Debug for SecretUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Value for SecretUrls {
    fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() { Err("must name a server") } else { Ok(Self(text.to_owned())) }
    }

    fn to_toml(&self) -> String {
        quoted(&self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let urls = SecretUrls("redis://app:p@ss@10.0.0.1:6379,redis://10.0.0.2".into());
        assert_eq!(urls.to_toml(), r#""redis://…@10.0.0.1:6379,redis://10.0.0.2""#);
        assert_eq!(format!("{urls:?}"), "redis://…@10.0.0.1:6379,redis://10.0.0.2");
    }
}
