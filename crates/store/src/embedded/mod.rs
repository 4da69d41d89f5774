//! Rows in a folder of one process: fjall behind one thread that commits for everyone.
//!
//! Writers queue up, the commit thread judges and syncs all that are waiting at once, and only then answers (S2).
//! A row enters what readers see after its sync, so nothing is ever read that a power cut could take back (S5).

mod campaigns;
mod codec;
mod commit;
mod due;
mod engine;
mod error;
mod folder;
mod journal;
mod lookahead;
mod metrics;
mod options;
mod physical;
mod recent;
mod scan;
mod size;
mod store;
mod tops;

#[cfg(test)]
mod tests;

pub use error::{EngineFailure, Holder, OpenError};
pub use metrics::EmbeddedMetrics;
pub use options::EmbeddedOptions;
pub use size::{boost_bytes, row_bytes};
pub use store::EmbeddedStore;
