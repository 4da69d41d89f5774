//! Object storage, for what is kept long and read seldom: its port, one adapter for all that can back it (memory, a
//! folder and, as a feature, S3), a decorator, and the conformance suite that binds them to the contract.

mod adapter;
pub mod conformance;
mod counted;
#[cfg(feature = "s3")]
mod credentials;
mod port;
#[cfg(feature = "s3")]
mod s3;
#[cfg(test)]
mod tests;

#[cfg(feature = "s3")]
pub use crate::aws::ConnectError;
pub use adapter::ObjectRoot;
pub use counted::{CountedObjects, ObjectCounts};
pub use port::{LIST_MAX, ObjectError, ObjectInfo, ObjectPage, Objects};
#[cfg(feature = "s3")]
pub use s3::{S3Error, S3Options};
