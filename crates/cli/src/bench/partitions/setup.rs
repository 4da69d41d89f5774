//! The stores and services that are measured.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use saltern_core::heat::HeatPolicy;
use saltern_core::ids::ConversationId;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{Config, Conversations};
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore};
use saltern_store::memory::MemoryStore;
use saltern_store::{Capabilities, Store};

use crate::service::now_ms;

/// Consecutive seq_nos that share a chunk key.
pub(super) const CHUNK: u64 = 100;
/// More conversations than any measurement has.
const CONVERSATIONS_MAX: usize = 10_000;

/// What one salt is planned to carry decides how many a design with a fixed number would choose.
pub(super) fn salts_for(rate_wcu_per_s: u32) -> u16 {
    let salts = (f64::from(rate_wcu_per_s) / HeatPolicy::default().target_wcu_per_s).ceil();
    (1..u16::MAX).find(|n| f64::from(*n) >= salts).unwrap_or(u16::MAX)
}

/// A store that promises what DynamoDB does: no cheap transactions, and others may write too.
pub(super) fn cloud_store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Capabilities { atomic_puts: false, exclusive: false }))
}

pub(super) fn embedded_store(folder: &Path) -> Result<Arc<EmbeddedStore>> {
    Ok(Arc::new(EmbeddedStore::open(folder, EmbeddedOptions::default())?))
}

pub(in crate::bench) fn fixed(n: u16) -> HeatPolicy {
    HeatPolicy { n_min: n, n_max: n, ..HeatPolicy::default() }
}

/// The service as it is, with a registry of its own.
pub(super) fn service(store: Arc<dyn Store>, heat: HeatPolicy) -> Conversations {
    with_settings(store, Config { heat, ..settings() })
}

/// Without its memory of history: every page asks the store.
pub(in crate::bench) fn uncached_service(store: Arc<dyn Store>, heat: HeatPolicy) -> Conversations {
    with_settings(store, Config { heat, cache_bytes_max: 0, ..settings() })
}

fn settings() -> Config {
    Config::new(Arc::new(now_ms), now_ms())
}

fn with_settings(store: Arc<dyn Store>, settings: Config) -> Conversations {
    Conversations::new(store, Arc::new(LocalRegistry::new(CONVERSATIONS_MAX)), settings)
}

pub(in crate::bench) fn conversation(name: &str) -> Result<ConversationId> {
    Ok(ConversationId::new(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_spread_is_what_the_rate_needs() {
        assert_eq!([1, 800, 801, 4_000, 100_000].map(salts_for), [1, 1, 2, 5, 125]);
    }
}
