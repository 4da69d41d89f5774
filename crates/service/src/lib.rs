//! Saltern's services over the store and registry ports.

mod backoff;
pub mod campaigns;
pub mod conversations;
mod deadline;
mod patience;
pub mod upkeep;
pub mod verify;

pub use patience::Patience;

/// A clock that people set: milliseconds since 1970.
pub type WallClock = std::sync::Arc<dyn Fn() -> u64 + Send + Sync>;
