//! Measurements of the cloud mode's adapters, on servers that this command starts or is pointed at.

mod backends;
mod requests;
mod tickets;

pub(super) use requests::requests;
pub(super) use tickets::tickets;
