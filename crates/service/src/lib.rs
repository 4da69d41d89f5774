//! Saltern's services over the store and registry ports.

mod backoff;
pub mod campaigns;
pub mod conversations;
pub mod verify;

/// A clock that people set: milliseconds since 1970.
pub type WallClock = std::sync::Arc<dyn Fn() -> u64 + Send + Sync>;
