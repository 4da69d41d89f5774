//! Saltern over HTTP: the only crate that knows it.
//!
//! A request goes by its path and method (`interface`) through a `gate` (request id, API key, bound on requests in flight, metrics) to one of the `routes`,
//! which parse (`path`, `query`, `body`, `wire`), call the service, and answer. Every failure is a `Problem`.

mod activity;
mod answers;
mod app;
mod auth;
mod body;
mod budget;
mod connection;
mod connections;
mod gate;
mod interface;
mod metrics;
mod ndjson;
mod openapi;
mod path;
mod problem;
mod query;
mod request_id;
mod routes;
mod server;
mod socket;
mod wire;

pub use app::{Readiness, Services};
pub use auth::{ApiKey, Scope, UnknownScope};
pub use interface::Interface;
pub use routes::interface;
pub use server::{BindError, Server, ServerConfig};
