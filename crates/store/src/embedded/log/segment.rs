//! A segment: a header, commits, and zeroes up to the end of the file.
//!
//! ```text
//! header:  "SALTLOG\x01"   folder: 16 bytes   secret: 16 bytes   number: u64   first commit: u64   end of the predecessor: u64   checksum: u64
//! ```
//! Numbers are little-endian. A file that grows makes the file system sync its own records too, so it grows in steps, ahead of
//! need, and is always durable before a commit goes there: a file that is too short for its commits has been cut.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::entry::CommitKey;
use crate::embedded::folder_id::FolderId;
use crate::power_cut;

const MAGIC: &[u8; 8] = b"SALTLOG\x01";
pub(super) const HEADER_BYTES: usize = 8 + 16 + 16 + 8 + 8 + 8 + 8;
/// A segment's length is a multiple of this, unless a crash cuts its growth short.
pub(super) const GROWTH_BYTES: usize = 1024 * 1024;
static ZEROES: [u8; GROWTH_BYTES] = [0; GROWTH_BYTES];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) folder: FolderId,
    pub(super) secret: [u8; 16],
    pub(super) number: u64,
    pub(super) first_commit: u64,
    /// Where the commits of the segment before it end; 0 if there is none.
    pub(super) predecessor_end: u64,
}

impl Header {
    pub(super) fn key(&self) -> CommitKey {
        CommitKey::new(self.secret, self.number)
    }

    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let parts: [&[u8]; 6] = [
            MAGIC,
            &self.folder.bytes(),
            &self.secret,
            &self.number.to_le_bytes(),
            &self.first_commit.to_le_bytes(),
            &self.predecessor_end.to_le_bytes(),
        ];
        let (mut header, mut at) = ([0; HEADER_BYTES], 0);
        for part in parts {
            header[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let sum = xxh3_64(&header[..at]);
        header[at..].copy_from_slice(&sum.to_le_bytes());
        header
    }

    /// Tells this header from any other.
    pub(super) fn checksum(&self) -> u64 {
        let header = self.encode();
        header.last_chunk().map_or(0, |sum| u64::from_le_bytes(*sum))
    }

    /// The header that a segment's bytes begin with, if it is whole.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        let number = |at: usize| Some(u64::from_le_bytes(*header.get(at..)?.first_chunk()?));
        let decoded = Self {
            folder: FolderId::from_bytes(*header.get(8..)?.first_chunk()?),
            secret: *header.get(24..)?.first_chunk()?,
            number: number(40)?,
            first_commit: number(48)?,
            predecessor_end: number(56)?,
        };
        (decoded.encode() == header).then_some(decoded)
    }
}

/// How long a file must be, at the least, when a commit of this length has been synced that ends here.
pub(super) fn length_after(end: usize, commit_bytes: usize) -> usize {
    (end + commit_bytes.max(GROWTH_BYTES / 2)).next_multiple_of(GROWTH_BYTES)
}

pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.log"))
}

/// The segment that commits are written to.
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) key: CommitKey,
    file: File,
    /// Where the next commit goes.
    end: usize,
    /// What is allocated, and filled with zeroes from `end` on.
    length: usize,
}

impl Segment {
    /// A segment without commits, in the place of one that a crash has left unused.
    pub(super) fn create(folder: &Path, header: &Header) -> io::Result<Self> {
        power_cut::step()?;
        let mut file = File::create(path(folder, header.number))?;
        power_cut::write(&mut file, &header.encode())?;
        power_cut::write(&mut file, &ZEROES[HEADER_BYTES..])?;
        power_cut::step()?;
        file.sync_all()?;
        power_cut::step()?;
        power_cut::sync_dir(folder)?;
        Ok(Self { number: header.number, key: header.key(), file, end: HEADER_BYTES, length: GROWTH_BYTES })
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Returns when the commit is on the disk.
    pub(super) fn append(&mut self, commit: &[u8]) -> io::Result<()> {
        let end = self.end + commit.len();
        if end > self.length {
            self.grow(end.next_multiple_of(GROWTH_BYTES))?;
            self.sync()?;
        }
        self.file.seek(SeekFrom::Start(self.end as u64))?;
        power_cut::write(&mut self.file, commit)?;
        self.grow(length_after(end, commit.len()))?;
        self.sync()?;
        self.end = end;
        Ok(())
    }

    fn grow(&mut self, length: usize) -> io::Result<()> {
        if self.length < length {
            self.file.seek(SeekFrom::Start(self.length as u64))?;
        }
        while self.length < length {
            power_cut::write(&mut self.file, &ZEROES)?;
            self.length += GROWTH_BYTES;
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        power_cut::step()?;
        self.file.sync_data()?;
        power_cut::step()
    }
}
