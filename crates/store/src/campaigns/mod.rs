//! The campaigns table: its port, the adapter in memory, the decorator that fails on purpose, the conformance suite.
//!
//! The other adapters are beside those of the messages table, with which they share folder or account.

pub mod conformance;
pub mod faulty;
pub mod memory;
pub mod port;

pub use port::{BoostPut, CampaignStore, MarketPut, MarketRecord};
