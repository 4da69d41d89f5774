//! The store port, its adapters (`memory`, `embedded` and, as a feature, `dynamodb`), its decorators (`throttled`,
//! `faulty`, `counted`), and the conformance suite that binds every one of them to the port's contract.

pub mod conformance;
pub mod counted;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
pub mod embedded;
pub mod faulty;
pub mod memory;
mod misuse;
pub mod port;
pub mod throttled;

pub use port::{
    Capabilities, Cause, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError, query_all,
};
