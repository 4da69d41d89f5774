//! The file layer: TOML, with the line of every value.

use std::path::Path;

use anyhow::{Result, bail};
use saltern_server::{ApiKey, Scope};
use serde::Deserialize as _;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::setting::{Override, Source};

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct FileLayer {
    pub(super) overrides: Vec<Override>,
    pub(super) api_keys: Vec<ApiKey>,
}

/// One `[[api_keys]]`: the key itself is never in the file, only its hash.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiKeyEntry {
    name: String,
    sha256: String,
    scopes: Vec<String>,
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    layer: FileLayer,
}

pub(super) fn parse(path: &Path, text: &str) -> Result<FileLayer> {
    let mut reader = Reader { path, text, layer: FileLayer::default() };
    match DeTable::parse(text) {
        Ok(table) => reader.table("", table.into_inner())?,
        Err(e) => bail!(reader.toml_error(&e)),
    }
    Ok(reader.layer)
}

impl Reader<'_> {
    fn source(&self, offset: usize) -> Source {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|b| **b == b'\n').count() + 1;
        Source::File { path: self.path.display().to_string(), line }
    }

    fn toml_error(&self, e: &toml::de::Error) -> String {
        let mut message = e.message().replace('\n', ", ").replacen("unknown field", "unknown key", 1);
        let Some(span) = e.span() else { return format!("{}: {message}", self.path.display()) };
        if message == "duplicate key" {
            message.push_str(&format!(" `{}`", self.text.get(span.clone()).unwrap_or_default()));
        }
        format!("{}: {message}", self.source(span.start))
    }

    fn table(&mut self, prefix: &str, table: DeTable<'_>) -> Result<()> {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            if key == "api_keys" {
                self.api_keys(value)?;
            } else if prefix.is_empty() && value.get_ref().is_table() {
                let DeValue::Table(inner) = value.into_inner() else { continue };
                if !matches!(key.as_str(), "limits" | "timeouts" | "archive" | "emulate" | "dynamodb" | "redis") {
                    bail!("{}: unknown key `{key}`", self.source(name.span().start));
                }
                self.table(&format!("{key}."), inner)?;
            } else {
                self.scalar(key, name.span().start, value.get_ref())?;
            }
        }
        Ok(())
    }

    fn scalar(&mut self, key: String, at: usize, value: &DeValue<'_>) -> Result<()> {
        let source = self.source(at);
        let text = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => {
                let digits = number.as_str().replace('_', "");
                i64::from_str_radix(&digits, number.radix()).map_or(digits, |n| n.to_string())
            }
            DeValue::Boolean(value) => value.to_string(),
            other => bail!("{source}: {key} must not be a {}", other.type_str()),
        };
        self.layer.overrides.push(Override { key, text, source });
        Ok(())
    }

    fn api_keys(&mut self, value: Spanned<DeValue<'_>>) -> Result<()> {
        let start = value.span().start;
        let DeValue::Array(entries) = value.into_inner() else {
            bail!("{}: api_keys must be written as [[api_keys]]", self.source(start));
        };
        for entry in entries {
            let source = self.source(entry.span().start);
            let entry = match ApiKeyEntry::deserialize(toml::de::ValueDeserializer::from(entry)) {
                Ok(entry) => entry,
                Err(e) => bail!(self.toml_error(&e)),
            };
            if self.layer.api_keys.iter().any(|known| known.name == entry.name) {
                bail!("{source}: two API keys are named `{}`", entry.name);
            }
            match entry.understood() {
                Ok(key) => self.layer.api_keys.push(key),
                Err(problem) => bail!("{source}: API key `{}`: {problem}", entry.name),
            }
        }
        Ok(())
    }
}

impl ApiKeyEntry {
    fn understood(&self) -> Result<ApiKey, String> {
        if self.name.is_empty() {
            return Err("name must not be empty".into());
        }
        let Some(sha256) = from_hex(&self.sha256) else {
            return Err("sha256 must be 64 hex digits, as `printf %s \"$KEY\" | sha256sum` prints them".into());
        };
        if self.scopes.is_empty() {
            return Err("scopes must not be empty".into());
        }
        let scopes = self.scopes.iter().map(|scope| scope.parse::<Scope>().map_err(|e| e.to_string()));
        Ok(ApiKey { name: self.name.clone(), sha256, scopes: scopes.collect::<Result<_, _>>()? })
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (i, byte) in hash.iter_mut().enumerate() {
        let digits = &text[2 * i..2 * i + 2];
        *byte = u8::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
    }
    Some(hash)
}
