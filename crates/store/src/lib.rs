//! The store ports, their adapters (`memory`, `embedded` and, as a feature, `dynamodb`), their decorators (`throttled`,
//! `faulty`, `counted`), and the conformance suites that bind every one of them to its port's contract.

pub mod campaigns;
pub mod conformance;
pub mod counted;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
pub mod embedded;
pub mod faulty;
pub mod memory;
mod misuse;
pub mod port;
pub mod scan;
pub mod throttled;

pub use campaigns::{BoostPut, CampaignStore, MarketPut, MarketRecord};
pub use port::{
    Capabilities, Cause, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError, query_all,
};
pub use scan::{Scan, ScanPage};
