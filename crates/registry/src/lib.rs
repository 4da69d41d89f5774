//! The registry port, its adapters (in process, and over Redis), the `faulty` decorator, and the conformance suite.

pub mod conformance;
pub mod faulty;
pub mod local;
pub mod port;
#[cfg(feature = "redis")]
pub mod redis;

pub use port::{Hot, Registry, RegistryError, ThrottledRow, TicketRequest, Tickets};
