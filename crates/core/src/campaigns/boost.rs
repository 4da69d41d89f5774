//! A partner's boost in an area: one row, and the order in which rows replace one another.

use sha2::{Digest as _, Sha256};

use super::moment::Moment;
use super::schedule::Schedule;
use crate::message::Digest;

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("must be a finite number above 0, not {0}")]
pub struct ScoreError(pub f64);

/// How much a partner is boosted: finite and positive.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Score(f64);

impl Score {
    pub fn new(score: f64) -> Result<Self, ScoreError> {
        if score.is_finite() && score > 0.0 { Ok(Self(score)) } else { Err(ScoreError(score)) }
    }

    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// No score is NaN.
impl Eq for Score {}

/// How much, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub score: Score,
    pub schedule: Schedule,
}

impl Terms {
    /// The first half of SHA-256 over everything that makes a difference.
    fn digest(&self) -> Digest {
        let mut sha = Sha256::new();
        sha.update(self.score.get().to_be_bytes());
        sha.update([self.schedule.days().bits()]);
        let window = self.schedule.window();
        for moment in [window.starts_at, window.ends_at] {
            sha.update([u8::from(moment.is_some())]);
            sha.update(moment.map_or(0, Moment::as_ms).to_be_bytes());
        }
        for slot in self.schedule.slots() {
            sha.update((slot.as_str().len() as u64).to_be_bytes());
            sha.update(slot.as_str());
        }
        let mut half = [0; 16];
        half.copy_from_slice(&sha.finalize()[..16]);
        Digest(half)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Active(Terms),
    /// Over. Stays as a row, so that no late event brings the campaign back.
    Ended,
}

/// What an event says about one area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boost {
    pub state: State,
    pub last_updated: Moment,
}

/// The total order of boosts: a later one wins, an end wins over what was said at the same time, and between two that
/// still tie the digest decides, so that every server decides alike. Boosts of one rank are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub last_updated: Moment,
    pub ended: bool,
    pub digest: Digest,
}

impl Boost {
    #[must_use]
    pub fn rank(&self) -> Rank {
        let (ended, digest) = match &self.state {
            State::Active(terms) => (false, terms.digest()),
            State::Ended => (true, Digest([0; 16])),
        };
        Rank { last_updated: self.last_updated, ended, digest }
    }
}

#[cfg(test)]
mod tests {
    use super::super::days::{Day, DaySet};
    use super::super::schedule::Window;
    use super::super::slot::SlotName;
    use super::*;

    fn moment(ms: i64) -> Moment {
        Moment::from_ms(ms).unwrap()
    }

    fn terms(score: f64, days: &[Day], slots: &[&str], window: Window) -> Terms {
        let slots = slots.iter().map(|name| SlotName::new(name).unwrap()).collect();
        let schedule = Schedule::new(DaySet::new(days.iter().copied()), slots, window);
        Terms { score: Score::new(score).unwrap(), schedule }
    }

    fn active(score: f64, last_updated: i64) -> Boost {
        let state = State::Active(terms(score, &[], &[], Window::default()));
        Boost { state, last_updated: moment(last_updated) }
    }

    #[test]
    fn scores_are_finite_and_positive() {
        for good in [1.5, f64::MIN_POSITIVE, f64::MAX] {
            assert_eq!(Score::new(good).unwrap().get(), good);
        }
        for bad in [0.0, -0.0, -1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Score::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn later_wins_and_an_end_wins_a_tie() {
        let ended = |ms| Boost { state: State::Ended, last_updated: moment(ms) };
        let ranks = [active(9.0, 1), ended(1), active(0.5, 2), ended(2)].map(|boost| boost.rank());
        assert!(ranks.is_sorted() && ranks.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(ended(1).rank(), ended(1).rank());
    }

    /// Persisted with every row, and compared by all servers.
    #[test]
    fn the_digest_is_pinned() {
        let window = Window { starts_at: None, ends_at: Some(moment(1_763_200_000_000)) };
        let digest = terms(1.5, &[Day::Monday], &["lunch"], window).digest();
        assert_eq!(format!("{digest:?}"), "55e01bda003cdd924ffb8b90e254e3f5");
    }

    #[test]
    fn everything_counts() {
        let (open, at) = (Window::default(), Some(moment(7)));
        let variants = [
            terms(1.5, &[], &[], open),
            terms(1.6, &[], &[], open),
            terms(1.5, &[Day::Monday], &[], open),
            terms(1.5, &[], &["a"], open),
            terms(1.5, &[], &["b"], open),
            terms(1.5, &[], &["a", "b"], open),
            terms(1.5, &[], &["ab"], open),
            terms(1.5, &[], &[], Window { starts_at: at, ends_at: None }),
            terms(1.5, &[], &[], Window { starts_at: None, ends_at: at }),
            terms(1.5, &[], &[], Window { starts_at: Some(moment(0)), ends_at: None }),
        ];
        for (i, a) in variants.iter().enumerate() {
            for (j, b) in variants.iter().enumerate() {
                assert_eq!(a.digest() == b.digest(), i == j, "{a:?} {b:?}");
            }
        }
    }
}
