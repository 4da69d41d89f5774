//! Rows in a folder of one process: a log, and fjall behind it.
//!
//! Writers queue up, the commit thread judges all that are waiting, writes them to the log in one go, syncs it, and only then
//! answers (S2). A row enters what readers see after its sync, so nothing is ever read that a power cut could take back (S5).
//! What the log holds is in memory too; when it is enough, it is sorted and moves into tables of the engine, as a whole.

mod campaigns;
mod checked_text;
mod codec;
mod commit;
mod disk_check;
mod due;
mod end_recorder;
mod engine;
mod error;
mod filter;
mod folder;
mod folder_id;
mod fresh;
mod log;
mod metrics;
mod mover;
mod options;
mod packs;
mod physical;
mod recall;
mod recent;
mod scan;
mod size;
mod store;
mod texts;
mod tops;
mod view;

#[cfg(test)]
mod tests;

pub use error::{EngineFailure, Holder, OpenError};
pub use metrics::EmbeddedMetrics;
pub use options::EmbeddedOptions;
pub use size::{boost_bytes, row_bytes};
pub use store::EmbeddedStore;
