//! The registry port, its in-process adapter, the `faulty` decorator, and the conformance suite.

pub mod conformance;
pub mod faulty;
pub mod local;
pub mod port;

pub use port::{Hot, Registry, RegistryError, ThrottledRow, TicketRequest, Tickets};
