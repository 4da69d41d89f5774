//! Calls that no adapter can serve, refused before they have any effect.

use std::collections::HashSet;
use std::sync::Arc;

use saltern_core::limits::BOOST_BATCH_MAX;

use crate::port::{Put, StoreError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Misuse {
    #[error("this store cannot write several rows in one step")]
    NoAtomicPuts,
    #[error("the same key twice in one put_all")]
    SameKeyTwice,
    #[error("a batch of {0} keys, at most {BOOST_BATCH_MAX} are allowed")]
    BatchTooLarge(usize),
}

impl From<Misuse> for StoreError {
    fn from(misuse: Misuse) -> Self {
        Self::Unavailable(Arc::new(misuse))
    }
}

pub(crate) fn keys_differ(puts: &[Put]) -> Result<(), Misuse> {
    let repeated = match puts {
        [] | [_] => false,
        [a, b] => a.key == b.key,
        many => {
            let mut seen = HashSet::with_capacity(many.len());
            !many.iter().all(|put| seen.insert(&put.key))
        }
    };
    if repeated { Err(Misuse::SameKeyTwice) } else { Ok(()) }
}

pub(crate) fn batch_fits(keys: usize) -> Result<(), Misuse> {
    if keys > BOOST_BATCH_MAX { Err(Misuse::BatchTooLarge(keys)) } else { Ok(()) }
}
