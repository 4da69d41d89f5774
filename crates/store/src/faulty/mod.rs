//! Faults from a seed, over any store: what a simulation needs to meet every outcome that the contract allows.

mod decorator;
mod dice;
mod lag;
mod plan;

#[cfg(test)]
mod tests;

pub use decorator::Faulty;
pub(crate) use decorator::{nothing_happened, unknown};
pub use plan::{Fault, FaultPlan, ReadFaults, WriteFaults};
