//! The messages table and the campaigns table in DynamoDB, or in anything that speaks its API: any number of servers share
//! them.
//!
//! Every promise of the ports is one that DynamoDB makes itself: conditions are judged where the row is written (S1), a
//! refused put brings back the row in the way (S3), strong reads are asked for as such (S5). No failed call is retried
//! in here, since only the service knows its deadline and what an unknown outcome means to it; `error` says which is
//! which (S4).

mod batch;
mod campaigns;
mod connect;
mod dead_letters;
mod due;
mod error;
mod item;
mod metrics;
mod options;
mod scan;
mod store;
mod tables;
mod warmth;

pub use crate::aws::ConnectError;
pub use metrics::DynamoMetrics;
pub use options::DynamoOptions;
pub use store::DynamoStore;
pub use tables::TableError;
pub use warmth::Warmth;
