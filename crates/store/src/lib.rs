//! The store port, its adapters (`memory`, `embedded`), the `faulty` decorator, and the conformance suite that binds
//! every adapter to the port's contract.

pub mod conformance;
pub mod embedded;
pub mod faulty;
pub mod memory;
mod misuse;
pub mod port;

pub use port::{
    Capabilities, Cause, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError, query_all,
};
