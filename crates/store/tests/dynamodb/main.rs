//! The DynamoDB adapter against AWS's own engine, DynamoDB Local, and against servers that fail on purpose.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod campaigns;
mod contract;
mod failing;
mod fixtures;
mod local;
mod tables;
