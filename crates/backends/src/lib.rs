//! Real servers for tests, as child processes on free ports of loopback that end with their handles, and proxies that
//! come between. Whatever fails here is a panic, and so a failed test.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, clippy::must_use_candidate, reason = "for tests alone")]

mod address;
mod dynamodb;
mod dynamodb_proxy;
mod kafka;
mod moto;
mod process;
mod redis;

pub use address::Address;
pub use dynamodb::DynamoLocal;
pub use dynamodb_proxy::DynamoProxy;
pub use kafka::Kafka;
pub use moto::Moto;
pub use process::{free_port, wait_until};
pub use redis::Redis;
