//! Long runs of voids, remembered so that readers step over them.

use crate::limits::{VOID_RUN_MIN, VOID_RUNS_MAX};
use crate::seq::{SeqNo, SeqRange};

/// Disjoint runs, in order. Every seq_no of a run holds a void, for ever.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VoidRuns(Vec<SeqRange>);

impl VoidRuns {
    /// Rebuilds what a store kept; runs that do not fit are dropped, which only costs reads.
    pub fn from_runs(runs: impl IntoIterator<Item = SeqRange>) -> Self {
        let mut all = Self::default();
        runs.into_iter().for_each(|run| all.add(run));
        all
    }

    #[must_use]
    pub fn runs(&self) -> &[SeqRange] {
        &self.0
    }

    /// The run that holds `seq`.
    #[must_use]
    pub fn run_at(&self, seq: SeqNo) -> Option<SeqRange> {
        let i = self.0.partition_point(|run| run.to < seq);
        self.0.get(i).copied().filter(|run| run.contains(seq))
    }

    /// The nearest run that lies wholly below `seq`.
    #[must_use]
    pub fn below(&self, seq: SeqNo) -> Option<SeqRange> {
        let i = self.0.partition_point(|run| run.to < seq);
        i.checked_sub(1).map(|i| self.0[i])
    }

    /// The nearest run that lies wholly above `seq`.
    #[must_use]
    pub fn above(&self, seq: SeqNo) -> Option<SeqRange> {
        let i = self.0.partition_point(|run| run.from <= seq);
        self.0.get(i).copied()
    }

    /// Takes up a run, joined with its neighbours, if it is long enough to be worth its place.
    pub fn add(&mut self, run: SeqRange) {
        let start = self.0.partition_point(|r| r.to.next() < run.from);
        let end = self.0.partition_point(|r| r.from <= run.to.next());
        let joined =
            self.0[start..end].iter().fold(run, |all, r| SeqRange { from: all.from.min(r.from), to: all.to.max(r.to) });
        if joined.count() < VOID_RUN_MIN {
            return;
        }
        self.0.splice(start..end, [joined]);
        if self.0.len() > VOID_RUNS_MAX {
            let shortest = (0..self.0.len()).min_by_key(|&i| self.0[i].count()).unwrap_or(0);
            self.0.remove(shortest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(from: u64, to: u64) -> SeqRange {
        SeqRange::new(SeqNo::clamped(from), SeqNo::clamped(to)).unwrap()
    }

    #[test]
    fn runs_join_and_short_ones_are_not_kept() {
        let mut voids = VoidRuns::default();
        voids.add(run(10, 20));
        assert!(voids.runs().is_empty());
        voids.add(run(100, 199));
        voids.add(run(300, 399));
        voids.add(run(200, 299));
        assert_eq!(voids.runs(), [run(100, 399)]);
        assert_eq!(voids.run_at(SeqNo::clamped(250)), Some(run(100, 399)));
        assert_eq!(voids.run_at(SeqNo::clamped(400)), None);
        assert_eq!(voids.below(SeqNo::clamped(400)), Some(run(100, 399)));
        assert_eq!(voids.below(SeqNo::clamped(399)), None);
        assert_eq!(voids.above(SeqNo::clamped(99)), Some(run(100, 399)));
        assert_eq!(voids.above(SeqNo::clamped(100)), None);
    }

    #[test]
    fn the_number_of_runs_is_bounded_and_the_shortest_goes() {
        let mut voids = VoidRuns::default();
        for i in 0..100 {
            voids.add(run(1_000 * (i + 1), 1_000 * (i + 1) + 100 + i));
        }
        assert_eq!(voids.runs().len(), VOID_RUNS_MAX);
        assert_eq!(voids.runs().last(), Some(&run(100_000, 100_199)));
    }
}
