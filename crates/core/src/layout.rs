//! Where a seq_no lives: epochs, horizon, stripes and salts.

use crate::limits::{EPOCHS_MAX, N_MAX, STRIPE};
use crate::seq::{SeqNo, SeqRange};

/// The suffix of a partition key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Salt {
    /// n = 1: the bare conversation key, as if there were no salting at all.
    Unsalted,
    Of(u16),
}

/// From this seq_no on, a conversation spreads over `n` salts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Epoch {
    pub from: SeqNo,
    pub n: u16,
}

impl Epoch {
    /// The salt of a seq_no of this epoch: 32 in a row share one, then the next has its turn.
    #[must_use]
    pub fn salt(self, seq: SeqNo) -> Salt {
        if self.n == 1 { Salt::Unsalted } else { self.salt_of_stripe(stripe(seq)) }
    }

    fn salt_of_stripe(self, stripe: u64) -> Salt {
        let salt = stripe % u64::from(self.n);
        Salt::Of(u16::try_from(salt).unwrap_or(u16::MAX))
    }
}

fn stripe(seq: SeqNo) -> u64 {
    (seq.get() - 1) / STRIPE
}

/// One bounded range query on one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub salt: Salt,
    pub range: SeqRange,
    /// How many seq_nos of the range live in this partition.
    pub places: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a layout: {0}")]
pub struct LayoutError(&'static str);

/// All epochs of a conversation, and the horizon below which they are the whole truth (I4).
///
/// A layout is never wrong, only short: below its own horizon it agrees with every later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    epochs: Vec<Epoch>,
    horizon: SeqNo,
}

impl Layout {
    /// The layout of a new conversation: unsalted, with room for `lease` messages.
    #[must_use]
    pub fn new(lease: u64) -> Self {
        Self { epochs: vec![Epoch { from: SeqNo::FIRST, n: 1 }], horizon: SeqNo::FIRST.plus(lease) }
    }

    /// Rebuilds a layout from what a store kept.
    pub fn from_parts(epochs: Vec<Epoch>, horizon: SeqNo) -> Result<Self, LayoutError> {
        let Some(first) = epochs.first() else { return Err(LayoutError("no epoch")) };
        if first.from != SeqNo::FIRST {
            return Err(LayoutError("first epoch does not start at 1"));
        }
        if epochs.iter().any(|e| e.n == 0 || e.n > N_MAX) {
            return Err(LayoutError("n out of range"));
        }
        if epochs.windows(2).any(|w| w[0].from >= w[1].from) {
            return Err(LayoutError("epochs out of order"));
        }
        if epochs.last().is_some_and(|e| e.from >= horizon) {
            return Err(LayoutError("epoch beyond the horizon"));
        }
        Ok(Self { epochs, horizon })
    }

    #[must_use]
    pub fn epochs(&self) -> &[Epoch] {
        &self.epochs
    }

    /// Nothing is ever issued at or above it.
    #[must_use]
    pub fn horizon(&self) -> SeqNo {
        self.horizon
    }

    /// The epoch that the next horizon will continue.
    #[must_use]
    pub fn newest_epoch(&self) -> Epoch {
        self.epochs[self.epochs.len() - 1]
    }

    /// The n that the next horizon will continue with.
    #[must_use]
    pub fn n(&self) -> u16 {
        self.newest_epoch().n
    }

    #[must_use]
    pub fn max_n(&self) -> u16 {
        self.epochs.iter().map(|e| e.n).max().unwrap_or(1)
    }

    /// The salt of a seq_no; `None` at or above the horizon, where only a newer layout knows.
    #[must_use]
    pub fn salt(&self, seq: SeqNo) -> Option<Salt> {
        (seq < self.horizon).then(|| self.epochs[self.epoch_index(seq)].salt(seq))
    }

    fn epoch_index(&self, seq: SeqNo) -> usize {
        self.epochs.partition_point(|e| e.from <= seq).saturating_sub(1)
    }

    /// A further horizon, with `n` salts from the present horizon on.
    ///
    /// Past `EPOCHS_MAX` epochs a smaller n is not taken up.
    #[must_use]
    pub fn raised(&self, horizon: SeqNo, n: u16) -> Self {
        debug_assert!(horizon > self.horizon);
        let mut epochs = self.epochs.clone();
        let n = n.clamp(1, N_MAX);
        if n > self.n() || (n < self.n() && epochs.len() < EPOCHS_MAX) {
            epochs.push(Epoch { from: self.horizon, n });
        }
        Self { epochs, horizon }
    }

    /// I4: whatever `older` says below its horizon, this layout says too.
    #[must_use]
    pub fn continues(&self, older: &Self) -> bool {
        let common = self.epochs.iter().take_while(|e| e.from < older.horizon);
        self.horizon >= older.horizon && common.eq(older.epochs.iter())
    }

    /// The range of seq_nos of the epoch that holds `seq`, up to the horizon.
    fn epoch_range(&self, seq: SeqNo) -> Option<SeqRange> {
        let i = self.epoch_index(seq);
        let end = self.epochs.get(i + 1).map_or(self.horizon, |e| e.from);
        SeqRange::until(self.epochs[i].from, end)
    }

    /// Where the epoch that holds `seq` starts.
    #[must_use]
    pub fn epoch_start(&self, seq: SeqNo) -> SeqNo {
        self.epochs[self.epoch_index(seq)].from
    }

    /// Cuts a range into range queries, at most one per partition and epoch, which between them ask for
    /// every place in the range below the horizon and for no other.
    #[must_use]
    pub fn slices(&self, range: SeqRange) -> Vec<Slice> {
        let mut slices = Vec::new();
        for i in self.epoch_index(range.from)..self.epochs.len() {
            let epoch = self.epochs[i];
            let Some(whole) = self.epoch_range(epoch.from) else { break };
            let Some(part) = whole.intersect(range) else { break };
            cut(epoch, part, &mut slices);
        }
        slices
    }
}

fn cut(epoch: Epoch, part: SeqRange, slices: &mut Vec<Slice>) {
    if epoch.n == 1 {
        slices.push(Slice { salt: Salt::Unsalted, range: part, places: part.count() });
        return;
    }
    let (first, last) = (stripe(part.from), stripe(part.to));
    let n = u64::from(epoch.n);
    for lowest in first..=last.min(first + n - 1) {
        let highest = lowest + (last - lowest) / n * n;
        let from = part.from.max(SeqNo::clamped(lowest * STRIPE + 1));
        let to = part.to.min(SeqNo::clamped((highest + 1) * STRIPE));
        let skipped = (highest - lowest) / n * (n - 1) * STRIPE;
        if let Some(range) = SeqRange::new(from, to) {
            let salt = epoch.salt_of_stripe(lowest);
            slices.push(Slice { salt, range, places: range.count() - skipped });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn seq(n: u64) -> SeqNo {
        SeqNo::new(n).unwrap()
    }

    fn layout(epochs: &[(u64, u16)], horizon: u64) -> Layout {
        let epochs = epochs.iter().map(|&(from, n)| Epoch { from: seq(from), n }).collect();
        Layout::from_parts(epochs, seq(horizon)).unwrap()
    }

    #[rstest]
    #[case(1, Salt::Unsalted)]
    #[case(32, Salt::Unsalted)]
    #[case(33, Salt::Of(1))]
    #[case(64, Salt::Of(1))]
    #[case(65, Salt::Of(2))]
    #[case(97, Salt::Of(0))]
    #[case(129, Salt::Of(0))]
    #[case(160, Salt::Of(0))]
    fn salts_are_pinned(#[case] at: u64, #[case] salt: Salt) {
        let layout = layout(&[(1, 1), (33, 3), (129, 4)], 161);
        assert_eq!(layout.salt(seq(at)), Some(salt));
    }

    #[test]
    fn nothing_is_known_at_the_horizon() {
        let layout = Layout::new(8);
        assert_eq!(layout.salt(seq(8)), Some(Salt::Unsalted));
        assert_eq!(layout.salt(seq(9)), None);
    }

    #[test]
    fn a_new_epoch_starts_at_the_old_horizon() {
        let layout = Layout::new(8).raised(seq(25), 2).raised(seq(57), 2).raised(seq(121), 5);
        let epochs: Vec<_> = layout.epochs().iter().map(|e| (e.from.get(), e.n)).collect();
        assert_eq!(epochs, [(1, 1), (9, 2), (57, 5)]);
        assert_eq!((layout.n(), layout.max_n()), (5, 5));
    }

    #[test]
    fn past_the_epoch_cap_n_only_grows() {
        let mut layout = Layout::new(8);
        for i in 0..2_000_u64 {
            let n = if i % 2 == 0 { 2 } else { 1 };
            layout = layout.raised(layout.horizon().plus(8), n);
        }
        assert_eq!(layout.epochs().len(), EPOCHS_MAX);
        assert_eq!(layout.n(), 2);
        let grown = layout.raised(layout.horizon().plus(8), 3);
        assert_eq!(grown.n(), 3);
        assert_eq!(grown.raised(grown.horizon().plus(8), 1).n(), 3);
    }

    #[rstest]
    #[case(&[], 9)]
    #[case(&[(2, 1)], 9)]
    #[case(&[(1, 0)], 9)]
    #[case(&[(1, 257)], 9)]
    #[case(&[(1, 1), (1, 2)], 9)]
    #[case(&[(1, 1), (9, 2)], 9)]
    fn damaged_layouts_are_refused(#[case] epochs: &[(u64, u16)], #[case] horizon: u64) {
        let epochs = epochs.iter().map(|&(from, n)| Epoch { from: seq(from), n }).collect();
        assert!(Layout::from_parts(epochs, seq(horizon)).is_err());
    }

    #[test]
    fn a_page_of_twenty_touches_at_most_two_partitions_whatever_n_is() {
        for n in [1, 2, 5, 10, 40, 256] {
            let layout = layout(&[(1, n)], 20_000);
            for before in 21..3_000 {
                let slices = layout.slices(SeqRange::until(seq(before - 20), seq(before)).unwrap());
                assert!(slices.len() <= 2, "n = {n}, before = {before}: {slices:?}");
                assert_eq!(slices.iter().map(|s| s.places).sum::<u64>(), 20);
            }
        }
    }

    fn layouts() -> impl Strategy<Value = Layout> {
        (1..200_u64, prop::collection::vec((1..200_u64, 1..7_u16), 0..8)).prop_map(|(lease, steps)| {
            steps.into_iter().fold(Layout::new(lease), |l, (step, n)| l.raised(l.horizon().plus(step), n))
        })
    }

    proptest! {
        /// The slices of a range hold each of its places exactly once, and count them right.
        #[test]
        fn slices_cover_a_range_exactly(layout in layouts(), a in 1..1_500_u64, b in 0..1_500_u64) {
            let range = SeqRange::new(seq(a), seq(a + b)).unwrap();
            let slices = layout.slices(range);
            let mut asked = BTreeMap::new();
            for slice in &slices {
                let inside = |s: &SeqNo| layout.salt(*s) == Some(slice.salt);
                let places: Vec<_> = slice.range.iter().filter(inside).collect();
                prop_assert_eq!(places.len() as u64, slice.places);
                for place in places {
                    prop_assert_eq!(asked.insert(place, slice.salt), None);
                }
            }
            let wanted: BTreeMap<_, _> =
                range.iter().filter_map(|s| Some((s, layout.salt(s)?))).collect();
            prop_assert_eq!(asked, wanted);
        }

        /// I4: any older view is exact below its own horizon.
        #[test]
        fn later_layouts_continue_earlier_ones(layout in layouts(), step in 1..100_u64, n in 1..9_u16) {
            let later = layout.raised(layout.horizon().plus(step), n);
            prop_assert!(later.continues(&layout));
            prop_assert!(!layout.continues(&later));
            let below = SeqRange::until(SeqNo::FIRST, layout.horizon()).unwrap();
            for s in below.iter() {
                prop_assert_eq!(layout.salt(s), later.salt(s));
            }
        }
    }
}
