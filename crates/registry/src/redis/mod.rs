//! The registry of many servers, over Redis or Valkey: a single primary, or a cluster.
//!
//! A conversation is one hash, changed by scripts, each of which is one atomic step on one key. Nothing here has to be
//! durable (R4): a server that restarts empty, evicts, or fails over to a replica that lags costs a sync.

mod bare;
mod connection;
mod hot;
mod keys;
mod options;
mod registry;
mod scripts;

pub use bare::BareCounter;
pub use options::RedisOptions;
pub use registry::RedisRegistry;
