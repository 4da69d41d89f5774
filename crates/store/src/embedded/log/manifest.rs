//! Which segments the log consists of, and where each of them ends: the file `MANIFEST` beside them.
//!
//! ```text
//! log manifest
//! folder 5d2c…
//! segment 3 header 1f0e… commits 120 to 240 end 48211
//! open segment 4 header 77ab… commits 240 to 251 end 9120
//! next segment 5 commit 251
//! checksum 03c5…
//! ```
//! `commits A to B` are those with numbers from A up to but not including B. Only the last segment may be open: commits are still
//! being added to it, and what is said of its end was true when the manifest was written.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::LogDamage;
use crate::embedded::checked_text;
use crate::embedded::folder_id::FolderId;
use crate::power_cut;

pub(super) const NAME: &str = "MANIFEST";
pub(super) const TEMPORARY: &str = "MANIFEST.new";
const TITLE: &str = "log manifest";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) number: u64,
    /// The checksum of its header.
    pub(super) header: u64,
    pub(super) first_commit: u64,
    /// The number after that of its last commit.
    pub(super) next_commit: u64,
    /// Where its last commit ends.
    pub(super) end: u64,
    /// Whether it may have more commits than that.
    pub(super) is_open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manifest {
    pub(super) folder: FolderId,
    /// The oldest first, without a gap. Only the last may be open.
    pub(super) segments: Vec<Listed>,
    /// The number of the segment that comes next.
    pub(super) next_segment: u64,
    /// The number of the commit that comes after those of the segments.
    pub(super) next_commit: u64,
}

impl Manifest {
    pub(super) fn new(folder: FolderId) -> Self {
        Self { folder, segments: Vec::new(), next_segment: 1, next_commit: 1 }
    }

    /// The oldest segment that is needed. Older ones are in the engine's tables.
    pub(super) fn first_segment(&self) -> u64 {
        self.segments.first().map_or(self.next_segment, |first| first.number)
    }

    pub(super) fn encode(&self) -> String {
        let mut text = format!("{TITLE}\nfolder {}\n", self.folder);
        for Listed { number, header, first_commit, next_commit, end, is_open } in &self.segments {
            let open = if *is_open { "open " } else { "" };
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "{open}segment {number} header {header:016x} commits {first_commit} to {next_commit} end {end}"
            );
        }
        let _ = writeln!(text, "next segment {} commit {}", self.next_segment, self.next_commit);
        checked_text::seal(text)
    }

    /// `None` if it is not, to the bit, what `encode` writes of a manifest.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut lines = checked_text::verified(bytes)?.lines();
        (lines.next()? == TITLE).then_some(())?;
        let folder = FolderId::parse(lines.next()?.strip_prefix("folder ")?)?;
        let mut lines: Vec<_> = lines.collect();
        let next = lines.pop()?.strip_prefix("next segment ")?;
        let (next_segment, next_commit) = next.split_once(" commit ")?;
        let manifest = Self {
            folder,
            segments: lines.into_iter().map(listed).collect::<Option<_>>()?,
            next_segment: next_segment.parse().ok()?,
            next_commit: next_commit.parse().ok()?,
        };
        (manifest.is_consistent() && manifest.encode().as_bytes() == bytes).then_some(manifest)
    }

    fn is_consistent(&self) -> bool {
        let follows = |pair: &[Listed]| {
            let [a, b] = pair else { return false };
            !a.is_open && a.number.checked_add(1) == Some(b.number) && a.next_commit == b.first_commit
        };
        let ends = self.segments.last().is_none_or(|last| {
            last.number.checked_add(1) == Some(self.next_segment) && last.next_commit == self.next_commit
        });
        ends && self.segments.windows(2).all(follows) && self.segments.iter().all(|s| s.first_commit <= s.next_commit)
    }
}

fn listed(line: &str) -> Option<Listed> {
    let (is_open, line) = line.strip_prefix("open ").map_or((false, line), |line| (true, line));
    let words: Vec<_> = line.split(' ').collect();
    let ["segment", number, "header", header, "commits", first, "to", next, "end", end] = words[..] else {
        return None;
    };
    Some(Listed {
        number: number.parse().ok()?,
        header: u64::from_str_radix(header, 16).ok()?,
        first_commit: first.parse().ok()?,
        next_commit: next.parse().ok()?,
        end: end.parse().ok()?,
        is_open,
    })
}

/// The manifest of a log that is open, in memory and on disk.
pub(super) struct ManifestFile {
    folder: PathBuf,
    current: Mutex<Manifest>,
}

impl ManifestFile {
    /// The first manifest of a folder.
    pub(super) fn create(folder: &Path, manifest: Manifest) -> io::Result<Self> {
        let file = Self { folder: folder.to_owned(), current: Mutex::new(manifest) };
        file.update(|_| ())?;
        Ok(file)
    }

    pub(super) fn open(folder: &Path, expected: FolderId) -> Result<Self, LogDamage> {
        let bytes = match std::fs::read(folder.join(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(LogDamage::NoManifest),
            bytes => bytes?,
        };
        let manifest = Manifest::decode(&bytes).ok_or(LogDamage::Manifest)?;
        if manifest.folder != expected {
            return Err(LogDamage::OtherFolder { file: NAME.into(), expected, found: manifest.folder });
        }
        Ok(Self { folder: folder.to_owned(), current: Mutex::new(manifest) })
    }

    fn lock(&self) -> MutexGuard<'_, Manifest> {
        // No code panics while it holds the lock.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn current(&self) -> Manifest {
        self.lock().clone()
    }

    /// Changes the manifest in memory. The next update writes it.
    pub(super) fn edit(&self, change: impl FnOnce(&mut Manifest)) {
        change(&mut self.lock());
    }

    /// Changes the manifest. Returns when it is on the disk.
    pub(super) fn update(&self, change: impl FnOnce(&mut Manifest)) -> io::Result<()> {
        let mut current = self.lock();
        let mut changed = current.clone();
        change(&mut changed);
        let (path, temporary) = (self.folder.join(NAME), self.folder.join(TEMPORARY));
        power_cut::replace_file(&path, &temporary, changed.encode().as_bytes())?;
        *current = changed;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let listed = |number, first_commit, next_commit, is_open| Listed {
            number,
            header: 0x0123_4567_89ab_cdef - number,
            first_commit,
            next_commit,
            end: 4_711 * number,
            is_open,
        };
        Manifest {
            folder: FolderId::from_bytes(*b"0123456789abcdef"),
            segments: vec![listed(3, 120, 240, false), listed(4, 240, 251, true)],
            next_segment: 5,
            next_commit: 251,
        }
    }

    #[test]
    fn manifests_are_pinned() {
        let text = "log manifest\nfolder 30313233343536373839616263646566\n\
                    segment 3 header 0123456789abcdec commits 120 to 240 end 14133\n\
                    open segment 4 header 0123456789abcdeb commits 240 to 251 end 18844\n\
                    next segment 5 commit 251\nchecksum 9cc683f2e9e98986\n";
        assert_eq!(manifest().encode(), text);
        assert_eq!(Manifest::decode(text.as_bytes()), Some(manifest()));
    }

    #[test]
    fn a_manifest_with_a_gap_is_none() {
        let changes: [fn(&mut Manifest); 6] = [
            |m| m.segments[0].number = 2,
            |m| m.segments[0].is_open = true,
            |m| m.segments[0].next_commit = 239,
            |m| m.segments[1].next_commit = 1,
            |m| m.next_segment = 6,
            |m| m.next_commit = 252,
        ];
        for (i, change) in changes.into_iter().enumerate() {
            let mut changed = manifest();
            change(&mut changed);
            assert_eq!(Manifest::decode(changed.encode().as_bytes()), None, "{i}");
        }
    }
}
