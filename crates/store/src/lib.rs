//! The store ports, their adapters (`memory`, `embedded` and, as a feature, `dynamodb`), their decorators (`throttled`,
//! `faulty`, `counted`), and the conformance suites that bind every one of them to its port's contract. Beside them, in
//! the same manner, the port to object storage.

#[cfg(any(feature = "dynamodb", feature = "s3"))]
mod aws;
pub mod campaigns;
pub mod conformance;
pub mod counted;
pub mod due;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
pub mod embedded;
pub mod faulty;
pub mod memory;
mod misuse;
pub mod objects;
pub mod port;
mod power_cut;
#[cfg(test)]
mod samples;
pub mod scan;
pub mod throttled;

pub use campaigns::{BoostPut, CampaignStore, MarketPut, MarketRecord};
pub use due::{Due, DueMark, DuePage};
pub use port::{
    Capabilities, Cause, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError, query_all,
};
pub use scan::{Scan, ScanPage};
