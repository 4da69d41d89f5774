//! Calls that no adapter can serve, refused before they have any effect.

use std::collections::HashSet;
use std::sync::Arc;

use crate::port::{Put, StoreError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Misuse {
    #[error("this store cannot write several rows in one step")]
    NoAtomicPuts,
    #[error("the same key twice in one put_all")]
    SameKeyTwice,
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
