//! Saltern's services over the store and registry ports.

pub mod conversations;
