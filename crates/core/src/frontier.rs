//! What one server has seen of a conversation's rows: how far they are final, and the highest of them.

use std::collections::BTreeMap;

use crate::seq::{SeqNo, SeqRange};

/// Islands of rows remembered above the first hole. Forgetting one costs a read, never correctness.
const ISLANDS_MAX: usize = 256;

/// Every row is final once it exists, so whatever was seen stays true: knowledge here only grows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frontier {
    resolved: SeqNo,
    islands: BTreeMap<SeqNo, SeqNo>,
    head: Option<SeqNo>,
}

impl Default for Frontier {
    fn default() -> Self {
        Self { resolved: SeqNo::FIRST, islands: BTreeMap::new(), head: None }
    }
}

impl Frontier {
    /// Every seq_no below has a row, message or void.
    #[must_use]
    pub fn resolved(&self) -> SeqNo {
        self.resolved
    }

    /// The last seq_no that is final along with all before it; 0 if there is none.
    #[must_use]
    pub fn stable_through(&self) -> u64 {
        self.resolved.get() - 1
    }

    /// The highest row seen: a lower bound of the conversation's head.
    #[must_use]
    pub fn head(&self) -> Option<SeqNo> {
        self.head
    }

    /// The first hole, if a row is known above it.
    #[must_use]
    pub fn hole(&self) -> Option<SeqRange> {
        let (&first, _) = self.islands.first_key_value()?;
        SeqRange::until(self.resolved, first)
    }

    /// All rows of the range exist.
    pub fn saw(&mut self, range: SeqRange) {
        self.head = self.head.max(Some(range.to));
        if range.from <= self.resolved {
            return self.resolve(range.to.next());
        }
        let (mut from, mut to) = (range.from, range.to);
        let near = self.islands.range(..=to.next()).rev();
        let touching = near.take_while(|&(_, end)| end.next() >= from).map(|(&start, _)| start);
        for start in touching.collect::<Vec<_>>() {
            if let Some(end) = self.islands.remove(&start) {
                (from, to) = (from.min(start), to.max(end));
            }
        }
        self.islands.insert(from, to);
        if self.islands.len() > ISLANDS_MAX {
            self.islands.pop_last();
        }
    }

    /// Every seq_no below `resolved` has a row, says the control record.
    pub fn resolve(&mut self, resolved: SeqNo) {
        self.resolved = self.resolved.max(resolved);
        self.head = self.head.max(self.resolved.prev());
        while let Some(island) = self.islands.first_entry() {
            if *island.key() > self.resolved {
                break;
            }
            self.resolved = self.resolved.max(island.remove().next());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain set of all rows seen.
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((1..80_u64, 0..6_u64), 0..60)) {
            let mut frontier = Frontier::default();
            let mut seen = BTreeSet::new();
            for (from, more) in steps {
                let range = SeqRange::new(SeqNo::clamped(from), SeqNo::clamped(from + more)).unwrap();
                frontier.saw(range);
                seen.extend(range.bounds());
                let resolved = (1..).find(|s| !seen.contains(s)).unwrap();
                prop_assert_eq!(frontier.resolved().get(), resolved);
                prop_assert_eq!(frontier.head().map(SeqNo::get), seen.last().copied());
                let above = seen.range(resolved..).next();
                let hole = above.map(|&a| (resolved, a - 1));
                prop_assert_eq!(frontier.hole().map(|h| (h.from.get(), h.to.get())), hole);
            }
        }
    }

    #[test]
    fn forgets_the_highest_islands_first_and_stays_bounded() {
        let mut frontier = Frontier::default();
        for i in (2..4_000).step_by(2) {
            frontier.saw(SeqRange::single(SeqNo::clamped(i)));
        }
        assert_eq!(frontier.islands.len(), ISLANDS_MAX);
        assert_eq!(frontier.head(), SeqNo::new(3_998));
        assert_eq!(frontier.hole(), Some(SeqRange::single(SeqNo::FIRST)));
    }
}
