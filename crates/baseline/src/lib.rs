//! The designs that Saltern is measured against, over the same store port. For measurements alone, never in the serving
//! path: they give up promises that Saltern keeps, and each says which.

pub mod boost_text;
mod boosted;
pub mod campaign_v1;
pub mod chunks;
pub mod classic;
pub mod expansion;
mod rows;

pub use boosted::Boosted;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod markets;
