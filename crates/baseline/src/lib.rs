//! The designs that Saltern is measured against, over the same store port. For measurements alone, never in the serving
//! path: they give up promises that Saltern keeps, and each says which.

pub mod chunks;
pub mod classic;
mod rows;

#[cfg(test)]
mod fixtures;
