//! Memory that requests and answers may take up, counted in bytes.
//!
//! A budget bounds all of them together. A share of it bounds those of one API key, so that no key takes the memory of the
//! others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::problem::{Problem, overloaded};

/// Bodies that may be in memory at once, all together.
pub(crate) const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Of these, the bodies sent with one API key.
pub(crate) const BODIES_BYTES_MAX_PER_KEY: usize = BODIES_BYTES_MAX / 4;
/// Pages and messages that may wait to be written to their readers, all together.
pub(crate) const ANSWERS_BYTES_MAX: usize = 256 * 1024 * 1024;

pub(crate) struct Budget {
    bytes_max: usize,
    used: AtomicUsize,
    /// What this is a share of.
    whole: Option<Arc<Budget>>,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, used: AtomicUsize::new(0), whole: None })
    }

    /// At most so many bytes of this budget. Shares may add up to more than the whole.
    pub(crate) fn share(self: &Arc<Self>, bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { bytes_max, used: AtomicUsize::new(0), whole: Some(Arc::clone(self)) })
    }

    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, Problem> {
        let mut reservation = Reservation { budget: Arc::clone(self), bytes: 0 };
        reservation.resize(bytes)?;
        Ok(reservation)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|used| *used <= self.bytes_max);
        if self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            return false;
        }
        let taken = self.whole.as_ref().is_none_or(|whole| whole.take(bytes));
        if !taken {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.whole {
            whole.give_back(bytes);
        }
    }
}

/// A part of a budget, taken for as long as it is held.
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reservation {
    /// On failure it stays as large as it was.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), Problem> {
        if bytes > self.bytes {
            if !self.budget.take(bytes - self.bytes) {
                return Err(overloaded());
            }
        } else {
            self.budget.give_back(self.bytes - bytes);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(budget: &Budget) -> usize {
        budget.used.load(Ordering::Relaxed)
    }

    #[test]
    fn what_is_reserved_is_bounded_and_given_back() {
        let budget = Budget::new(100);
        let mut first = budget.reserve(60).ok().unwrap();
        assert!(budget.reserve(41).is_err());
        assert!(first.resize(101).is_err());
        assert_eq!(used(&budget), 60);
        first.resize(10).ok().unwrap();
        let second = budget.reserve(90).ok().unwrap();
        assert!(first.resize(11).is_err());
        drop(first);
        drop(second);
        assert_eq!(used(&budget), 0);
    }

    #[test]
    fn a_share_leaves_the_rest_to_others() {
        let whole = Budget::new(100);
        let (greedy, other) = (whole.share(50), whole.share(50));
        let held: Vec<_> = std::iter::from_fn(|| greedy.reserve(10).ok()).collect();
        assert_eq!((held.len(), used(&whole)), (5, 50));
        assert!(other.reserve(50).is_ok());
        let rest = whole.reserve(45).ok().unwrap();
        assert!(other.reserve(6).is_err());
        assert_eq!((used(&other), used(&whole)), (0, 95));
        drop((held, rest));
        assert_eq!((used(&greedy), used(&whole)), (0, 0));
    }
}
