use std::fmt;
use std::str::FromStr;

use super::Nonce;
use super::reference::RefError;
use crate::seq::{SeqNo, SeqRange};

/// What a control record says about the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveState {
    /// No row below has its content in the row any more.
    pub through: SeqNo,
    /// No message at or above `through` was taken in before: what the index of due conversations goes by. `None` in records
    /// of before there was an archive.
    pub oldest_ms: Option<u64>,
    /// Work that may have left objects behind.
    pub moving: Option<Box<Move>>,
    /// How many moves have begun. One that was planned by what rows said begins only if no other has begun since.
    pub moves: u64,
}

impl ArchiveState {
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self { through: SeqNo::FIRST, oldest_ms: Some(now_ms), moving: None, moves: 0 }
    }

    /// The same, to be found by the index: one that does not say how old its messages are is looked at soon.
    #[must_use]
    pub fn indexed(&self) -> Self {
        Self { oldest_ms: self.oldest_ms.or(Some(0)), ..self.clone() }
    }

    /// Of a conversation that knows nothing of the archive.
    #[must_use]
    pub fn unknown() -> Self {
        Self { through: SeqNo::FIRST, oldest_ms: None, moving: None, moves: 0 }
    }
}

/// The content of a range on its way into new objects. Written down before the first of them is, and struck out when all rows
/// have followed and the objects that they came from are gone: so no object that is in use can hold what was
/// erased without a note of it here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub range: SeqRange,
    /// Of the objects that are being written.
    pub nonce: Nonce,
    /// Of the objects that rows of the range may refer to meanwhile, and that go when all have moved.
    pub replaces: Vec<Nonce>,
    pub began_at_ms: u64,
}

/// Its text form is persisted.
impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SeqRange { from, to } = self.range;
        write!(f, "{from}-{to} {} {}", self.began_at_ms, self.nonce)?;
        self.replaces.iter().try_for_each(|nonce| write!(f, " {nonce}"))
    }
}

impl FromStr for Move {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        parse(text).ok_or_else(|| RefError::new(text))
    }
}

fn parse(text: &str) -> Option<Move> {
    let nonce = |hex: &str| u64::from_str_radix(hex, 16).ok().map(Nonce);
    let mut words = text.split(' ');
    let (from, to) = words.next()?.split_once('-')?;
    let seq = |text: &str| SeqNo::new(text.parse().ok()?);
    Some(Move {
        range: SeqRange::new(seq(from)?, seq(to)?)?,
        began_at_ms: words.next()?.parse().ok()?,
        nonce: nonce(words.next()?)?,
        replaces: words.map(nonce).collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_move_comes_back() {
        let range = SeqRange::new(SeqNo::FIRST, SeqNo::clamped(512)).unwrap();
        let alone = Move { range, nonce: Nonce(1), replaces: Vec::new(), began_at_ms: 77 };
        assert_eq!(alone.to_string(), "1-512 77 0000000000000001");
        let replacing = Move { replaces: vec![Nonce(u64::MAX), Nonce(2)], ..alone.clone() };
        assert_eq!(replacing.to_string(), "1-512 77 0000000000000001 ffffffffffffffff 0000000000000002");
        for there in [alone, replacing] {
            assert_eq!(there.to_string().parse(), Ok(there));
        }
    }

    #[rstest]
    fn other_texts_are_none(
        #[values("", "1-2", "1-2 3", "2-1 3 4", "0-1 3 4", "1-2 3 g", "1-2 3 4 ", "1 2 3 4")] text: &str,
    ) {
        assert!(text.parse::<Move>().is_err());
    }
}
