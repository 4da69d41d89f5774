//! DynamoDB's partition limits over any store, so that hot and colliding partitions can be seen and tested anywhere.
//!
//! Partition keys are hashed onto a fixed number of physical partitions, each with its own write and read units per
//! second and what it has saved up of them. Rows cost by their size; a query costs by the bytes it read.

mod bucket;
mod decorator;
mod limits;

#[cfg(test)]
mod tests;

pub use decorator::{PartitionLoad, Throttled};
pub use limits::PartitionLimits;
