//! The log: what was acknowledged and has not yet moved into the engine's tables.
//!
//! Segments `1.log`, `2.log` … and a `MANIFEST` that lists them, in a folder of their own. Every commit is synced before the next
//! is written, so only the last of the last segment can be torn. A commit that was begun after a broken one proves corruption, and
//! then the files stay as they are.
//!
//! A segment is created by the first commit that needs one, and is never written to again after its process has ended. The order
//! of steps makes every crash harmless:
//!
//! 1. A new segment is synced, then listed in the manifest together with the end of its predecessor, then gets its first commit. A
//!    segment that the manifest does not list yet has no commits, and the next one takes its place.
//! 2. Segments whose changes are in tables leave the manifest, then the folder. What the manifest no longer lists and is older than
//!    all that it lists is removed by the next start.
//!
//! So the manifest reveals every missing, shortened, emptied or exchanged segment. One thing looks like a crash: damage to the
//! newest segment, after the end that the manifest last recorded, that spares the head of no commit after it. That is the last
//! commit broken, or everything from some commit on zeroed. The manifest records the end when a segment is completed, and in
//! between every second and whenever commits pause (`end_recorder.rs`). A stop in order leaves no segment at all.

mod entry;
mod manifest;
mod segment;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) use entry::Change;
use manifest::{Listed, Manifest, ManifestFile};
use segment::{GROWTH_BYTES, HEADER_BYTES, Header, Segment};

use crate::embedded::folder_id::FolderId;
use crate::power_cut;

/// Bytes of a commit that are kept allocated from one to the next.
const BUFFER_BYTES: usize = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub(super) enum LogDamage {
    #[error("log/MANIFEST is missing, which lists the segments of the log")]
    NoManifest,
    #[error("log/MANIFEST is corrupt: its checksum does not match its content")]
    Manifest,
    #[error("log/{file} belongs to another folder: SALTERN has the id {expected}, the file {found}")]
    OtherFolder { file: String, expected: FolderId, found: FolderId },
    #[error("log/{0} is neither a segment of the log nor its manifest")]
    Name(String),
    #[error("log/{number}.log is missing, with commits from {first_commit} on")]
    Missing { number: u64, first_commit: u64 },
    #[error("log/{0}.log is not listed in log/MANIFEST, but holds data")]
    Unlisted(u64),
    #[error("log/{0}.log is corrupt: its header is not the one that was written")]
    Header(u64),
    #[error("log/{segment}.log is corrupt at byte {at}, where commit {commit} should begin")]
    Commit { segment: u64, at: usize, commit: u64 },
    #[error(
        "log/{segment}.log is corrupt at byte {at}, where commit {commit} should begin: commit {later} was begun after it"
    )]
    MidSegment { segment: u64, at: usize, commit: u64, later: u64 },
    #[error("log/{segment}.log has been cut: it ends at byte {length}, and more had been written")]
    Cut { segment: u64, length: usize },
    #[error(
        "log/{segment}.log ends before commit {found} at byte {at}, but commits before {expected} up to byte {end} had been synced"
    )]
    Short { segment: u64, found: u64, at: u64, expected: u64, end: u64 },
    #[error("log/ holds data of a folder that was never completed")]
    Unfinished,
    #[error(transparent)]
    Io(#[from] io::Error),
}

pub(super) struct Log {
    folder: PathBuf,
    manifest: Arc<ManifestFile>,
    active: Option<Segment>,
    /// The number of the next commit.
    next: u64,
    buffer: Vec<u8>,
}

/// Fails unless the folder provably holds no commits: it is what a crash left while the data folder was being created.
pub(super) fn check_unused(folder: &Path) -> Result<(), LogDamage> {
    if !folder.try_exists()? {
        return Ok(());
    }
    if !list(folder)?.is_empty() {
        return Err(LogDamage::Unfinished);
    }
    match std::fs::read(folder.join(manifest::NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        bytes => {
            let manifest = Manifest::decode(&bytes?).ok_or(LogDamage::Manifest)?;
            (manifest == Manifest::new(manifest.folder)).then_some(()).ok_or(LogDamage::Unfinished)
        }
    }
}

/// Whether there is a log in the folder, whole or not.
pub(super) fn is_there(folder: &Path) -> bool {
    folder.join(manifest::NAME).is_file()
}

impl Log {
    /// A new log for a folder that has none.
    pub(super) fn create(folder: &Path, id: FolderId) -> Result<Self, LogDamage> {
        check_unused(folder)?;
        power_cut::create_dir(folder)?;
        let manifest = Arc::new(ManifestFile::create(folder, Manifest::new(id))?);
        Ok(Self { folder: folder.to_owned(), manifest, active: None, next: 1, buffer: Vec::new() })
    }

    /// Reads every change back, in order. Changes nothing if the log is corrupt.
    pub(super) fn open(folder: &Path, id: FolderId, mut each: impl FnMut(Change)) -> Result<Self, LogDamage> {
        let file = ManifestFile::open(folder, id)?;
        let mut manifest = file.current();
        let mut files = list(folder)?;
        let mut end = None;
        for listed in &mut manifest.segments {
            let Listed { number, first_commit, .. } = *listed;
            let path = files.remove(&number).ok_or(LogDamage::Missing { number, first_commit })?;
            let bytes = std::fs::read(&path)?;
            let read = Read { bytes: &bytes, header: header_of(&bytes, number, id)?, listed };
            (listed.next_commit, listed.end) = read.changes(&mut each)?;
            if listed.is_open {
                // What was read must not be taken back by a power cut.
                File::open(&path)?.sync_all()?;
                listed.is_open = false;
            }
            (manifest.next_commit, end) = (listed.next_commit, Some(listed.end));
        }
        let unused = files.split_off(&manifest.next_segment);
        for (number, path) in &unused {
            let predecessor = Predecessor { next_commit: manifest.next_commit, end };
            predecessor.check_unused(&std::fs::read(path)?, *number, &manifest)?;
        }
        for (number, path) in &files {
            header_of(&std::fs::read(path)?, *number, id)?;
        }
        let next = manifest.next_commit;
        let log = Self { folder: folder.to_owned(), manifest: Arc::new(file), active: None, next, buffer: Vec::new() };
        remove(files.into_values(), folder)?;
        log.manifest.edit(|current| *current = manifest);
        Ok(log)
    }

    /// Returns when the changes are on the disk.
    pub(super) fn commit<'a>(&mut self, changes: impl IntoIterator<Item = &'a Change>) -> io::Result<()> {
        let active = match &mut self.active {
            Some(active) => active,
            none => none.insert(begin(&self.folder, &self.manifest)?),
        };
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES);
        active.key.encode(active.end(), self.next, changes, &mut self.buffer);
        active.append(&self.buffer)?;
        self.next += 1;
        Ok(())
    }

    /// Completes the segment, so that the next commit begins a new one. What has been committed so far is in those up to the one
    /// returned.
    pub(super) fn rotate(&mut self) -> u64 {
        let active = self.active.take();
        let mut last = 0;
        self.manifest.edit(|manifest| {
            last = manifest.next_segment - 1;
            if let (Some(active), Some(listed)) = (active, manifest.segments.last_mut()) {
                (listed.next_commit, listed.end, listed.is_open) = (self.next, active.end() as u64, false);
                manifest.next_commit = self.next;
            }
        });
        last
    }

    pub(super) fn segments(&self) -> usize {
        self.manifest.current().segments.len()
    }

    /// How far the open segment has been synced.
    pub(super) fn synced_end(&self) -> Option<SyncedEnd> {
        let active = self.active.as_ref()?;
        Some(SyncedEnd { segment: active.number, next_commit: self.next, end: active.end() as u64 })
    }

    pub(super) fn upkeep(&self) -> LogUpkeep {
        LogUpkeep { folder: self.folder.clone(), manifest: Arc::clone(&self.manifest) }
    }
}

/// A new segment, listed and without commits.
fn begin(folder: &Path, manifest: &ManifestFile) -> io::Result<Segment> {
    let mut secret = [0; 16];
    getrandom::fill(&mut secret)?;
    let current = manifest.current();
    let header = Header {
        folder: current.folder,
        secret,
        number: current.next_segment,
        first_commit: current.next_commit,
        predecessor_end: current.segments.last().map_or(0, |last| last.end),
    };
    let segment = Segment::create(folder, &header)?;
    manifest.update(|manifest| {
        manifest.segments.push(Listed {
            number: header.number,
            header: header.checksum(),
            first_commit: header.first_commit,
            next_commit: header.first_commit,
            end: HEADER_BYTES as u64,
            is_open: true,
        });
        manifest.next_segment += 1;
    })?;
    Ok(segment)
}

/// All commits before this one are in this segment, up to this byte, or in earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyncedEnd {
    segment: u64,
    next_commit: u64,
    end: u64,
}

/// What other threads do for a log while commits go on.
#[derive(Clone)]
pub(super) struct LogUpkeep {
    folder: PathBuf,
    manifest: Arc<ManifestFile>,
}

impl LogUpkeep {
    /// Records how far the open segment has been synced. Does nothing if that is known, or the segment complete.
    pub(super) fn record(&self, synced: SyncedEnd) -> io::Result<()> {
        let SyncedEnd { segment, next_commit, end } = synced;
        let is_news = |last: &Listed| last.is_open && last.number == segment && last.next_commit < next_commit;
        if !self.manifest.current().segments.last().is_some_and(is_news) {
            return Ok(());
        }
        self.manifest.update(|manifest| {
            if let Some(last) = manifest.segments.last_mut().filter(|last| is_news(last)) {
                (last.next_commit, last.end) = (next_commit, end);
                manifest.next_commit = next_commit;
            }
        })
    }

    /// Removes the segments up to this one: their changes are kept elsewhere by now.
    pub(super) fn retire_through(&self, last: u64) -> Result<(), LogDamage> {
        self.manifest.update(|manifest| manifest.segments.retain(|segment| segment.number > last))?;
        let first = self.manifest.current().first_segment();
        remove(
            list(&self.folder)?.into_iter().filter(|(number, _)| *number < first).map(|(_, path)| path),
            &self.folder,
        )
    }
}

/// Removes files that the manifest no longer needs.
fn remove(files: impl Iterator<Item = PathBuf>, folder: &Path) -> Result<(), LogDamage> {
    let mut any = false;
    for path in files {
        power_cut::step()?;
        std::fs::remove_file(path)?;
        any = true;
    }
    if any {
        power_cut::step()?;
        power_cut::sync_dir(folder)?;
    }
    Ok(())
}

/// The segments that are there, by number.
fn list(folder: &Path) -> Result<BTreeMap<u64, PathBuf>, LogDamage> {
    let files = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(LogDamage::NoManifest),
        files => files?,
    };
    let mut segments = BTreeMap::new();
    for file in files {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if [manifest::NAME, manifest::TEMPORARY].contains(&name) {
            continue;
        }
        let number = name.strip_suffix(".log").and_then(|number| number.parse().ok());
        let number = number.filter(|number| segment::path(folder, *number) == path);
        segments.insert(number.ok_or_else(|| LogDamage::Name(name.to_owned()))?, path);
    }
    Ok(segments)
}

fn header_of(bytes: &[u8], number: u64, expected: FolderId) -> Result<Header, LogDamage> {
    let header = Header::decode(bytes).ok_or(LogDamage::Header(number))?;
    if header.folder != expected {
        return Err(LogDamage::OtherFolder { file: format!("{number}.log"), expected, found: header.folder });
    }
    if header.number != number {
        return Err(LogDamage::Header(number));
    }
    Ok(header)
}

/// What comes before a segment that the manifest does not list.
struct Predecessor {
    next_commit: u64,
    /// Where the last segment ends. It may have been retired while its successor was being created.
    end: Option<u64>,
}

impl Predecessor {
    /// Fails unless the segment is what a crash leaves of one that was being created.
    fn check_unused(&self, bytes: &[u8], number: u64, manifest: &Manifest) -> Result<(), LogDamage> {
        let is_next = number == manifest.next_segment;
        let is_empty = bytes.get(HEADER_BYTES..).unwrap_or_default().iter().all(|byte| *byte == 0);
        if !is_next || !is_empty || bytes.len() > GROWTH_BYTES {
            return Err(LogDamage::Unlisted(number));
        }
        let Ok(header) = header_of(bytes, number, manifest.folder) else {
            // It was not even begun, or is another's: without commits in either case.
            return Ok(());
        };
        // It was created after its predecessor had ended.
        let Header { first_commit: expected, predecessor_end: end, .. } = header;
        let at = self.end.unwrap_or(end);
        if (expected, end) == (self.next_commit, at) {
            return Ok(());
        }
        Err(LogDamage::Short { segment: number - 1, found: self.next_commit, at, expected, end })
    }
}

/// A segment that is being read.
struct Read<'a> {
    bytes: &'a [u8],
    header: Header,
    listed: &'a Listed,
}

impl Read<'_> {
    /// The number of the next commit, and where the last one ends.
    fn changes(&self, each: &mut impl FnMut(Change)) -> Result<(u64, u64), LogDamage> {
        let Self { bytes, header, listed } = self;
        if header.checksum() != listed.header {
            return Err(LogDamage::Header(listed.number));
        }
        let (key, mut at, mut commit) = (header.key(), HEADER_BYTES, header.first_commit);
        // What the file must be at least as long as, because all but the last commit found were surely synced.
        let (mut synced, mut begun) = (GROWTH_BYTES, GROWTH_BYTES);
        let is_complete = |at: usize| !listed.is_open && at as u64 >= listed.end;
        while !is_complete(at)
            && let Some(found) = key.find(bytes, at).filter(|found| found.number == commit)
        {
            let damage = LogDamage::Commit { segment: listed.number, at, commit };
            found.changes().ok_or(damage)?.into_iter().for_each(&mut *each);
            (synced, begun) = (begun, begun.max(segment::length_after(found.end, found.end - at)));
            (at, commit) = (found.end, commit + 1);
        }
        if listed.is_open {
            self.check_end(at, commit, synced)?;
        }
        let (next_commit, end) = (listed.next_commit, listed.end);
        let is_short = commit < next_commit || (at as u64) < end;
        if is_short || (!listed.is_open && (commit, at as u64) != (next_commit, end)) {
            return Err(self.short(at, commit));
        }
        Ok((commit, at as u64))
    }

    /// Why there are fewer commits than the manifest says.
    fn short(&self, at: usize, commit: u64) -> LogDamage {
        let Self { bytes, header, listed } = self;
        let Listed { number: segment, next_commit: expected, end, .. } = **listed;
        match header.key().any_after(bytes, at) {
            Some(later) => LogDamage::MidSegment { segment, at, commit, later },
            None if (bytes.len() as u64) < end => LogDamage::Cut { segment, length: bytes.len() },
            None => LogDamage::Short { segment, found: commit, at: at as u64, expected, end },
        }
    }

    /// Fails unless a crash may have left the end of the segment like this: no whole commit is at `at`.
    fn check_end(&self, at: usize, commit: u64, synced: usize) -> Result<(), LogDamage> {
        let Self { bytes, header, listed } = self;
        let (segment, key) = (listed.number, header.key());
        if let Some(later) = key.any_after(bytes, at) {
            return Err(LogDamage::MidSegment { segment, at, commit, later });
        }
        // Space is durable, and full of zeroes, before a commit is written to it.
        let growing = bytes.len() - bytes.len() % GROWTH_BYTES;
        let is_beyond = key.head(bytes, at).is_some_and(|head| head.end > bytes.len());
        if bytes.len() < synced || is_beyond || bytes[growing..].iter().any(|byte| *byte != 0) {
            return Err(LogDamage::Cut { segment, length: bytes.len() });
        }
        Ok(())
    }
}

/// Makes the manifest say of the open segment what it said when that was created.
#[cfg(test)]
pub(super) fn unrecord(folder: &Path, id: FolderId) {
    let file = ManifestFile::open(folder, id).unwrap();
    file.update(|manifest| {
        let last = manifest.segments.last_mut().unwrap();
        assert!(last.is_open);
        (last.next_commit, last.end) = (last.first_commit, HEADER_BYTES as u64);
        manifest.next_commit = last.first_commit;
    })
    .unwrap();
}

#[cfg(test)]
mod tests;
