//! A look at the engine's journals before it opens them.
//!
//! The engine takes the first thing it cannot parse for the end of a journal and cuts off the rest. That is right for
//! the last batch of a crashed process, which was never acknowledged; in the middle of a journal it would silently
//! drop acknowledged rows. Every batch is synced before the next is written, so whole batches behind a broken one
//! prove damage, and then the files must stay as they are.

use std::io;
use std::path::{Path, PathBuf};

/// Ends every batch of the engine's format 3.
const TRAILER: &[u8] = b"FJL\x03";
const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;

#[derive(Debug, thiserror::Error)]
pub(super) enum JournalDamage {
    #[error("no journal")]
    None,
    #[error("journal {0} is missing")]
    Missing(u64),
    #[error("{0} is not a journal's name")]
    Name(String),
    #[error("{}: damaged at byte {at}, with intact batches behind it", .journal.display())]
    Middle { journal: PathBuf, at: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Fails if opening the engine would lose batches that are still there.
pub(super) fn check(engine: &Path) -> Result<(), JournalDamage> {
    let journals = list(engine)?;
    let Some((first, _)) = journals.first() else { return Err(JournalDamage::None) };
    // The oldest go first, so what is left has no holes.
    if let Some(((_, _), id)) = journals.iter().zip(*first..).find(|((id, _), expected)| id != expected) {
        return Err(JournalDamage::Missing(id));
    }
    for (id, path) in &journals {
        let active = *id == first + journals.len() as u64 - 1;
        let bytes = std::fs::read(path)?;
        if let Some(at) = damage(&bytes, active) {
            return Err(JournalDamage::Middle { journal: path.clone(), at });
        }
    }
    Ok(())
}

fn list(engine: &Path) -> Result<Vec<(u64, PathBuf)>, JournalDamage> {
    let mut journals = Vec::new();
    for entry in std::fs::read_dir(engine)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("jnl")) {
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let id = name.parse().map_err(|_| JournalDamage::Name(name.to_owned()))?;
            journals.push((id, path));
        }
    }
    journals.sort();
    Ok(journals)
}

/// Where a journal is damaged, if it cannot be a torn last batch.
fn damage(bytes: &[u8], active: bool) -> Option<usize> {
    let (mut at, mut last) = (0, None);
    while let Some((next, seqno)) = batch(bytes, at) {
        (at, last) = (next, Some(seqno));
    }
    // Journals are allocated in advance; what was never written is zero.
    let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let rest = bytes.get(at..written).unwrap_or_default();
    let torn = if active {
        // Content may look like a trailer, but hardly like a whole batch of the right number behind it.
        rest.windows(TRAILER.len()).enumerate().any(|(i, window)| {
            let behind = || batch(bytes, at + i + TRAILER.len());
            window == TRAILER && behind().is_some_and(|(_, seqno)| last.is_none_or(|last| seqno > last))
        })
    } else {
        // Synced before its successor was created: nothing can be torn, only unused.
        !rest.is_empty()
    };
    torn.then_some(at)
}

/// The end and the number of the batch that starts at `at`, if there is a whole one.
fn batch(bytes: &[u8], at: usize) -> Option<(usize, u64)> {
    let mut from = Cursor { bytes, at };
    let START = from.byte()? else { return None };
    let items = from.u32()?;
    let seqno = u64::from_le_bytes(from.array()?);
    for _ in 0..items {
        match from.byte()? {
            ITEM => {
                let _kind_compression_and_keyspace: [u8; 10] = from.array()?;
                let key = u16::from_le_bytes(from.array()?);
                let _plain_length = from.u32()?;
                let value = from.u32()?;
                from.skip(usize::from(key))?;
                from.skip(usize::try_from(value).ok()?)?;
            }
            CLEAR => from.skip(size_of::<u64>())?,
            _ => return None,
        }
    }
    let END = from.byte()? else { return None };
    let _checksum: [u8; 8] = from.array()?;
    let trailer: [u8; TRAILER.len()] = from.array()?;
    (trailer == TRAILER).then_some((from.at, seqno))
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(*array)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.at = self.at.checked_add(length).filter(|at| *at <= self.bytes.len())?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(batches: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for seqno in batches {
            bytes.extend([START, 1, 0, 0, 0]);
            bytes.extend(seqno.to_le_bytes());
            bytes.extend([ITEM, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, b'k', b'v', b'v']);
            bytes.extend([END, 9, 9, 9, 9, 9, 9, 9, 9]);
            bytes.extend(TRAILER);
        }
        bytes
    }

    #[test]
    fn a_torn_or_unused_tail_is_no_damage() {
        let whole = journal(&[1, 2, 3]);
        let last = whole.len() * 2 / 3;
        for cut in last..=whole.len() {
            assert_eq!(damage(&whole[..cut], true), None, "cut at {cut}");
            let mut zeroed = whole.clone();
            zeroed[cut..].fill(0);
            zeroed.resize(whole.len() + 4_096, 0);
            assert_eq!(damage(&zeroed, true), None, "zeroes from {cut}");
        }
    }

    #[test]
    fn a_broken_batch_before_whole_ones_is_damage() {
        let whole = journal(&[1, 2, 3]);
        let one = whole.len() / 3;
        for at in (0..one * 2).filter(|at| at % one == 0 || at % one == 13) {
            let mut broken = whole.clone();
            broken[at] = 0xEE;
            assert_eq!(damage(&broken, true), Some(at / one * one), "byte {at}");
        }
    }

    #[test]
    fn a_sealed_journal_has_nothing_torn() {
        let whole = journal(&[1, 2]);
        assert_eq!(damage(&whole[..whole.len() - 1], false), Some(whole.len() / 2));
        let unused = [whole.as_slice(), &[0; 64]].concat();
        assert_eq!(damage(&unused, false), None);
    }
}
