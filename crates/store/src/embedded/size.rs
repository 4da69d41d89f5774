//! What rows take in the engine, key and value, before blocks are compressed: for measurements.

use saltern_core::campaigns::{Boost, BoostKey};
use saltern_core::key::Key;
use saltern_core::record::Record;

use super::codec;
use super::physical::{boost_key, physical_key};

#[must_use]
pub fn row_bytes(key: &Key, record: &Record) -> usize {
    codec::encode_behind(physical_key(key), record).len()
}

#[must_use]
pub fn boost_bytes(key: &BoostKey, boost: &Boost) -> usize {
    boost_key(key).len() + codec::encode_boost(boost).len()
}
