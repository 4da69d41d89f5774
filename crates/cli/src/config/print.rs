//! The effective configuration as TOML, each value with its source.

use std::fmt::Write as _;

use super::{Config, DEFAULT_FILE};

/// Bytes shown of an API key's hash: enough to tell keys apart.
const HASH_SHOWN: usize = 4;
/// Where sources are lined up.
const SOURCE_COLUMN: usize = 40;

impl Config {
    /// What `config check` prints.
    pub(crate) fn into_toml(mut self) -> String {
        let mut out = format!("# Effective configuration: default < {DEFAULT_FILE} < SALTERN_* variables < flags\n");
        let mut section = "";
        for (key, knob) in self.knobs() {
            let (table, name) = key.split_once('.').unwrap_or(("", key));
            if table != section {
                let _ = write!(out, "\n[{table}]\n");
                section = table;
            }
            let line = format!("{name} = {}", knob.to_toml());
            let _ = writeln!(out, "{line:<SOURCE_COLUMN$} # {}", knob.source());
        }
        for key in &self.api_keys {
            let name = toml::Value::String(key.name.clone());
            let hash: String = key.sha256.iter().take(HASH_SHOWN).map(|byte| format!("{byte:02x}")).collect();
            let scopes: Vec<_> = key.scopes.iter().map(|s| toml::Value::String(s.to_string())).collect();
            let scopes = toml::Value::Array(scopes);
            let _ = write!(out, "\n[[api_keys]]\nname = {name}\nsha256 = \"{hash}…\"\nscopes = {scopes}\n");
        }
        out
    }
}
