//! The log: what was acknowledged and has not yet moved into the engine's tables.
//!
//! Segments `1.log`, `2.log` … in a folder of their own. Every commit is synced before the next is written, so only the last of
//! the last segment can be torn; whole commits behind a broken one prove damage, and then the files stay as they are. Segments
//! go one by one, the oldest first, each for good before the next: what is left has no hole, and its end is the newest.
//!
//! A file that grows makes the file system sync its own records too, so a segment is filled with zeroes some way ahead.

mod entry;

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

pub(super) use entry::Change;

use crate::power_cut;

const MAGIC: &[u8; 8] = b"SALTLOG\x01";
/// Magic, number of the segment, number of its first commit.
const HEADER_BYTES: usize = 8 + 8 + 8;
/// Bytes of a commit that are kept allocated from one to the next.
const BUFFER_BYTES: usize = 1024 * 1024;
/// By how much a segment grows.
const GROWTH_BYTES: usize = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(super) enum LogDamage {
    #[error("no log")]
    None,
    #[error("log segment {0} is missing")]
    Missing(u64),
    #[error("{0} is not a log segment's name")]
    Name(String),
    #[error("{}: damaged at byte {at}, with intact commits behind it", .segment.display())]
    Middle { segment: PathBuf, at: usize },
    #[error(transparent)]
    Io(#[from] io::Error),
}

pub(super) struct Log {
    folder: PathBuf,
    file: Grown,
    segment: u64,
    /// The number of the next commit.
    next: u64,
    buffer: Vec<u8>,
}

/// A file that is longer than what was written to it.
struct Grown {
    file: File,
    end: u64,
    bytes: u64,
}

impl Grown {
    /// Returns when the bytes are on the disk.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.end += bytes.len() as u64;
        if self.end > self.bytes {
            self.file.write_all(&[0; GROWTH_BYTES])?;
            self.bytes = self.file.stream_position()?;
            self.file.seek(SeekFrom::Start(self.end))?;
        }
        self.file.sync_data()
    }
}

impl Log {
    /// A new log, in the place of whatever is there.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        if folder.try_exists()? {
            std::fs::remove_dir_all(folder)?;
        }
        power_cut::create_dir(folder)?;
        Ok(Self { folder: folder.to_owned(), file: begin(folder, 1, 1)?, segment: 1, next: 1, buffer: Vec::new() })
    }

    /// Reads every change back, in order, and goes on behind the last. Changes nothing if the log is damaged.
    pub(super) fn open(folder: &Path, mut each: impl FnMut(Change)) -> Result<Self, LogDamage> {
        let segments = list(folder)?;
        let (Some((first, _)), Some((last, path))) = (segments.first(), segments.last()) else {
            return Err(LogDamage::None);
        };
        if let Some((_, missing)) = segments.iter().zip(*first..).find(|((number, _), expected)| number != expected) {
            return Err(LogDamage::Missing(missing));
        }
        let (mut next, mut end) = (None, 0);
        for (number, path) in &segments {
            let read = Read { path, number: *number, is_last: number == last };
            (next, end) = read.changes(next, &mut each)?;
        }
        let next = next.unwrap_or(1);
        let file = if end == 0 { begin(folder, *last, next)? } else { resume(path, end)? };
        Ok(Self { folder: folder.to_owned(), file, segment: *last, next, buffer: Vec::new() })
    }

    /// Returns when the changes are on the disk.
    pub(super) fn commit<'a>(&mut self, changes: impl IntoIterator<Item = &'a Change>) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES);
        entry::encode(self.next, changes, &mut self.buffer);
        self.file.append(&self.buffer)?;
        self.next += 1;
        Ok(())
    }

    /// Begins a new segment. What has been committed so far is in those up to the one returned.
    pub(super) fn rotate(&mut self) -> io::Result<u64> {
        self.file = begin(&self.folder, self.segment + 1, self.next)?;
        self.segment += 1;
        Ok(self.segment - 1)
    }
}

/// Removes the segments whose changes are kept elsewhere by now.
pub(super) fn remove_through(folder: &Path, last: u64) -> Result<(), LogDamage> {
    for (_, path) in list(folder)?.into_iter().filter(|(number, _)| *number <= last) {
        std::fs::remove_file(path)?;
        power_cut::sync_dir(folder)?;
    }
    Ok(())
}

fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.log"))
}

/// A segment without commits, in the place of one that was not even begun.
fn begin(folder: &Path, number: u64, next: u64) -> io::Result<Grown> {
    let mut file = File::create(segment_path(folder, number))?;
    file.write_all(&header(number, next))?;
    file.sync_all()?;
    power_cut::sync_dir(folder)?;
    let bytes = HEADER_BYTES as u64;
    Ok(Grown { file, end: bytes, bytes })
}

/// Cuts off what was torn or never used, and goes on there.
fn resume(path: &Path, end: usize) -> io::Result<Grown> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let end = end as u64;
    if file.metadata()?.len() > end {
        file.set_len(end)?;
        file.sync_all()?;
    }
    file.seek(SeekFrom::Start(end))?;
    Ok(Grown { file, end, bytes: end })
}

fn header(number: u64, next: u64) -> Vec<u8> {
    [MAGIC.as_slice(), &number.to_le_bytes(), &next.to_le_bytes()].concat()
}

fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>, LogDamage> {
    let files = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(LogDamage::None),
        files => files?,
    };
    let mut segments = Vec::new();
    for file in files {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_suffix(".log").and_then(|number| number.parse().ok());
        segments.push((number.ok_or_else(|| LogDamage::Name(name.to_owned()))?, path));
    }
    segments.sort();
    Ok(segments)
}

/// A segment that is being read.
struct Read<'a> {
    path: &'a Path,
    number: u64,
    is_last: bool,
}

impl Read<'_> {
    /// The number of the next commit, if that is known, and where it belongs; nowhere, if the segment was not even begun.
    fn changes(&self, next: Option<u64>, each: &mut impl FnMut(Change)) -> Result<(Option<u64>, usize), LogDamage> {
        let bytes = std::fs::read(self.path)?;
        let Some(mut expected) = self.first(&bytes).filter(|first| next.is_none_or(|next| next == *first)) else {
            // Its predecessor goes only when it has been begun for good.
            let may_be_unwritten = self.is_last && next.is_some();
            let is_unwritten = bytes.len() <= HEADER_BYTES || bytes.iter().all(|byte| *byte == 0);
            return if may_be_unwritten && is_unwritten { Ok((next, 0)) } else { Err(self.damaged(0)) };
        };
        let mut at = HEADER_BYTES;
        while let Some(found) = entry::find(&bytes, at).filter(|found| found.number == expected) {
            found.changes().ok_or_else(|| self.damaged(at))?.into_iter().for_each(&mut *each);
            (at, expected) = (found.end, expected + 1);
        }
        // That one before the last lacks nothing is told by the header of the next.
        if self.is_last && entry::any_behind(&bytes, at) {
            return Err(self.damaged(at));
        }
        Ok((Some(expected), at))
    }

    /// The number of the first commit, by the header.
    fn first(&self, bytes: &[u8]) -> Option<u64> {
        let (head, first) = bytes.get(..HEADER_BYTES)?.split_last_chunk()?;
        let first = u64::from_le_bytes(*first);
        header(self.number, first).starts_with(head).then_some(first)
    }

    fn damaged(&self, at: usize) -> LogDamage {
        LogDamage::Middle { segment: self.path.to_owned(), at }
    }
}

#[cfg(test)]
mod tests;
