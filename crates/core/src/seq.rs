//! Positions in a conversation.

use std::fmt;
use std::ops::RangeInclusive;

use crate::limits::SEQ_NO_END;

/// A position in a conversation: 1, 2, 3 … below 2^53.
///
/// The value 2^53 itself exists only as an exclusive end (a horizon), never as the place of a row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNo(u64);

impl SeqNo {
    pub const FIRST: Self = Self(1);
    /// One past the last seq_no there can be.
    pub const END: Self = Self(SEQ_NO_END);

    /// `None` for 0 and for anything beyond 2^53.
    #[must_use]
    pub const fn new(value: u64) -> Option<Self> {
        if value >= 1 && value <= SEQ_NO_END { Some(Self(value)) } else { None }
    }

    /// For values that are in range by construction; out of range they are pulled into it.
    #[must_use]
    pub const fn clamped(value: u64) -> Self {
        match value {
            0 => Self::FIRST,
            1..=SEQ_NO_END => Self(value),
            _ => Self::END,
        }
    }

    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn plus(self, distance: u64) -> Self {
        Self::clamped(self.0.saturating_add(distance))
    }

    /// `distance` places earlier, but not before the first.
    #[must_use]
    pub const fn minus(self, distance: u64) -> Self {
        Self::clamped(self.0.saturating_sub(distance))
    }

    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The place before, if there is one.
    #[must_use]
    pub const fn prev(self) -> Option<Self> {
        Self::new(self.0 - 1)
    }
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// A run of seq_nos, both ends included, never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeqRange {
    pub from: SeqNo,
    pub to: SeqNo,
}

impl SeqRange {
    /// `None` if the range would be empty.
    #[must_use]
    pub fn new(from: SeqNo, to: SeqNo) -> Option<Self> {
        (from <= to).then_some(Self { from, to })
    }

    /// The range that ends before `end`.
    #[must_use]
    pub fn until(from: SeqNo, end: SeqNo) -> Option<Self> {
        Self::new(from, end.prev()?)
    }

    #[must_use]
    pub fn single(seq: SeqNo) -> Self {
        Self { from: seq, to: seq }
    }

    /// How many seq_nos; never 0.
    #[must_use]
    pub fn count(self) -> u64 {
        self.to.get() - self.from.get() + 1
    }

    #[must_use]
    pub fn contains(self, seq: SeqNo) -> bool {
        self.from <= seq && seq <= self.to
    }

    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        Self::new(self.from.max(other.from), self.to.min(other.to))
    }

    #[must_use]
    pub fn bounds(self) -> RangeInclusive<u64> {
        self.from.get()..=self.to.get()
    }

    pub fn iter(self) -> impl DoubleEndedIterator<Item = SeqNo> {
        self.bounds().map(SeqNo)
    }
}

impl fmt::Debug for SeqRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}..={}", self.from, self.to)
    }
}
