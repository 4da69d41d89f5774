//! The archive: whatever happens on the way, every content can be read at every moment, and what is erased is gone.
//!
//! In memory on virtual time; with the feature `cloud-tests` also on DynamoDB Local and moto's S3.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cases;
#[cfg(feature = "cloud-tests")]
mod cloud;
mod faults;
mod passes;
mod stepping;
#[cfg(feature = "cloud-tests")]
#[path = "../tables/mod.rs"]
mod tables;
mod world;
