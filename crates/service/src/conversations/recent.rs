//! Messages seen lately: a hint that a message may be a retry, so that it looks for its claim before it takes a ticket.
//! Being wrong costs a read, or a ticket; never more.

use std::sync::atomic::{AtomicU64, Ordering};

use super::fingerprint::Fingerprint;

/// 2 MiB.
const PLACES: usize = 1 << 18;

/// One fingerprint per place; a newer message takes the place of an older one.
pub(super) struct Recent(Box<[AtomicU64]>);

impl Default for Recent {
    fn default() -> Self {
        Self(std::iter::repeat_with(AtomicU64::default).take(PLACES).collect())
    }
}

impl Recent {
    /// Notes a message, and says whether it was the last one seen in its place.
    pub(super) fn saw_before(&self, Fingerprint(message): Fingerprint) -> bool {
        let place = usize::try_from(message % PLACES as u64).unwrap_or(0);
        self.0[place].swap(message, Ordering::Relaxed) == message
    }
}
