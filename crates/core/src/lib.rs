//! What Saltern decides, apart from how it is carried out.
//!
//! Everything here is a pure function of its arguments: no I/O, no async, no clock, no randomness. Time comes in as
//! a value. That is what lets the simulation replay any run from its seed.

pub mod archive;
pub mod campaigns;
pub mod control;
pub mod cost;
pub mod frontier;
pub mod heat;
pub mod history;
pub mod ids;
pub mod key;
pub mod layout;
pub mod limits;
pub mod message;
pub mod meter;
pub mod page;
pub mod record;
pub mod rng;
pub mod seq;
pub mod verify;
pub mod voids;
pub mod words;
