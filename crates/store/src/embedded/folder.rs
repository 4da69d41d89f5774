//! The folder around the engine: whose it is, who has it open, and that nothing of it is missing.
//!
//! ```text
//! SALTERN   says that the folder is ours, in which format, and its id, with a checksum; there once the folder is complete
//! LOCK      locked while a process has the folder open; says which
//! CHECK     written now and then by a server, to see whether the disk answers
//! log/      what was acknowledged and is not yet among the engine's tables
//! engine/   the engine's own files
//! ```
//!
//! Opening removes nothing that may hold acknowledged data. While a folder is being created, `SALTERN.new` stands in for the
//! marker. What is found beside it is removed only if it has no commits in its log and no rows in its tables.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::checked_text;
use super::disk_check;
use super::error::{Holder, OpenError};
use super::folder_id::FolderId;
use super::log;
use crate::power_cut;

const MARKER: &str = "SALTERN";
/// Stands in for the marker until the folder is complete. Nothing has been acknowledged while it is there.
const UNFINISHED: &str = "SALTERN.new";
const LOCK: &str = "LOCK";
const ENGINE: &str = "engine";
const LOG: &str = "log";
const KEYSPACES: &str = "keyspaces";

const FORMAT_NAME: &str = "embedded format ";
const FORMAT: u32 = 1;
const ID_NAME: &str = "folder ";

/// Files without which the engine would start afresh, or read nothing of what is there.
const ESSENTIAL: [&str; 8] = [
    "version",
    "lock",
    "0.jnl",
    "keyspaces/0/current",
    "keyspaces/1/current",
    "keyspaces/2/current",
    "keyspaces/3/current",
    "keyspaces/4/current",
];

pub(super) struct Folder {
    path: PathBuf,
    lock: File,
    /// Locked too, because anybody may take `LOCK` for a left-over and delete it.
    marker: File,
    id: FolderId,
    is_complete: bool,
}

#[derive(Debug, thiserror::Error)]
enum FolderDamage {
    #[error("engine/{0} is missing")]
    MissingFile(&'static str),
    #[error("the file SALTERN is missing, but there is data beside it")]
    NoMarker,
    #[error("the file SALTERN is corrupt: its checksum does not match its content")]
    Marker,
    #[error(
        "the file SALTERN is missing, and beside SALTERN.new, which marks a folder without data, engine/ holds tables"
    )]
    TablesInUnfinished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Unfinished,
    Complete(FolderId),
}

impl Folder {
    /// Makes the folder ours and ready for the engine. What is not ours, or not whole, is left as it is.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let io_error = |error| OpenError::io(path, error);
        power_cut::create_dir(path).map_err(io_error)?;
        examine(path)?;
        let lock = acquire(path)?;
        // Again, now that nobody else can be creating it.
        let content = examine(path)?;
        let id = match content {
            Content::Complete(id) => id,
            Content::Unfinished | Content::Nothing => FolderId::random().map_err(io_error)?,
        };
        let is_complete = content == Content::Complete(id);
        let marker = match content {
            Content::Complete(_) => File::open(path.join(MARKER)).map_err(io_error)?,
            Content::Unfinished | Content::Nothing => {
                remove_unfinished(path)?;
                begin(path, id).map_err(io_error)?
            }
        };
        locked(&marker, path, Holder::default)?;
        let folder = Self { path: path.to_owned(), lock, marker, id, is_complete };
        folder.announce(None).map_err(io_error)?;
        if is_complete {
            folder.check_engine()?;
        }
        Ok(folder)
    }

    pub(super) fn engine(&self) -> PathBuf {
        self.path.join(ENGINE)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    pub(super) fn id(&self) -> FolderId {
        self.id
    }

    /// Whether it was complete before it was opened. Else nothing in it counts.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The engine's files and the log are there: from now on rows may be acknowledged.
    pub(super) fn finish(&self) -> Result<(), OpenError> {
        let finish = || {
            power_cut::sync_dir(&self.engine())?;
            std::fs::rename(self.path.join(UNFINISHED), self.path.join(MARKER))?;
            power_cut::sync_dir(&self.path)
        };
        if self.is_complete { Ok(()) } else { finish().map_err(|error| OpenError::io(&self.path, error)) }
    }

    fn check_engine(&self) -> Result<(), OpenError> {
        for file in ESSENTIAL {
            let there = self.engine().join(file).try_exists().map_err(|error| OpenError::io(&self.path, error))?;
            if !there {
                return Err(OpenError::damaged(&self.path, FolderDamage::MissingFile(file)));
            }
        }
        Ok(())
    }

    /// Fails if the folder is gone, or its disk takes nothing. Blocks for as long as the disk does.
    pub(super) fn check_disk(&self) -> io::Result<()> {
        disk_check::check(&self.path, &self.marker, &self.path.join(MARKER))
    }

    /// Tells others who has the folder, and where to reach it.
    pub(super) fn announce(&self, address: Option<&str>) -> io::Result<()> {
        let mut lock = &self.lock;
        lock.set_len(0)?;
        lock.rewind()?;
        writeln!(lock, "{}", std::process::id())?;
        address.map_or(Ok(()), |address| writeln!(lock, "{address}"))
    }
}

pub(super) fn marker_text(format: u32, id: FolderId) -> String {
    checked_text::seal(format!("{FORMAT_NAME}{format}\n{ID_NAME}{id}\n"))
}

fn examine(path: &Path) -> Result<Content, OpenError> {
    let marker = match std::fs::read(path.join(MARKER)) {
        Ok(marker) => marker,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return unmarked(path),
        Err(error) => return Err(OpenError::io(path, error)),
    };
    let damaged = || OpenError::damaged(path, FolderDamage::Marker);
    let Some(text) = checked_text::verified(&marker) else {
        return Err(if holds_data(path) { damaged() } else { OpenError::NotOurs(path.to_owned()) });
    };
    // Later formats, too, begin and end with these lines.
    let (first, rest) = text.split_once('\n').ok_or_else(damaged)?;
    match first.strip_prefix(FORMAT_NAME).and_then(|format| format.parse().ok()) {
        Some(format) if format > FORMAT => Err(OpenError::NewerFormat { folder: path.to_owned(), format }),
        Some(FORMAT) => {
            let id = rest.trim_end().strip_prefix(ID_NAME).and_then(FolderId::parse).ok_or_else(damaged)?;
            if marker == marker_text(FORMAT, id).as_bytes() { Ok(Content::Complete(id)) } else { Err(damaged()) }
        }
        _ => Err(OpenError::NotOurs(path.to_owned())),
    }
}

/// Whether there is a log or an engine of ours.
fn holds_data(path: &Path) -> bool {
    log::is_there(&path.join(LOG)) || path.join(ENGINE).join(KEYSPACES).is_dir()
}

/// Removes what a crash left of a folder that was being created. Fails if there may be anything else in it.
fn remove_unfinished(path: &Path) -> Result<(), OpenError> {
    log::check_unused(&path.join(LOG)).map_err(|damage| OpenError::log(path, damage))?;
    check_no_rows(path)?;
    match std::fs::remove_dir_all(path.join(ENGINE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(OpenError::io(path, error)),
        _ => Ok(()),
    }
}

/// Fails unless no keyspace of ours has a table. The first keyspace is the engine's own, which lists the others.
fn check_no_rows(path: &Path) -> Result<(), OpenError> {
    let io_error = |error| OpenError::io(path, error);
    for keyspace in entries(&path.join(ENGINE).join(KEYSPACES)).map_err(io_error)? {
        let is_ours = keyspace.file_name().is_some_and(|name| name != "0");
        if is_ours && !entries(&keyspace.join("tables")).map_err(io_error)?.is_empty() {
            return Err(OpenError::damaged(path, FolderDamage::TablesInUnfinished));
        }
    }
    Ok(())
}

/// Marks the folder as one that is being created, without data.
fn begin(path: &Path, id: FolderId) -> io::Result<File> {
    let mut marker = File::create(path.join(UNFINISHED))?;
    marker.write_all(marker_text(FORMAT, id).as_bytes())?;
    marker.sync_all()?;
    power_cut::sync_dir(path)?;
    Ok(marker)
}

/// What is in a directory. Nothing, if it does not exist.
fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

fn unmarked(path: &Path) -> Result<Content, OpenError> {
    let io_error = |error| OpenError::io(path, error);
    let entries = entries(path).map_err(io_error)?;
    let names: Vec<_> = entries.iter().filter_map(|entry| entry.file_name()).collect();
    if names.iter().any(|name| *name == MARKER) {
        // Another process has completed the folder meanwhile.
        return examine(path);
    }
    let unfinished = names.iter().any(|name| *name == UNFINISHED);
    if !unfinished && holds_data(path) {
        return Err(OpenError::damaged(path, FolderDamage::NoMarker));
    }
    let ours = |name: &str| name == LOCK || (unfinished && [UNFINISHED, ENGINE, LOG].contains(&name));
    if !names.iter().all(|name| name.to_str().is_some_and(ours)) {
        return Err(OpenError::NotOurs(path.to_owned()));
    }
    Ok(if unfinished { Content::Unfinished } else { Content::Nothing })
}

fn acquire(path: &Path) -> Result<File, OpenError> {
    let io_error = |error| OpenError::io(path, error);
    let mut options = OpenOptions::new();
    let lock = options.read(true).write(true).create(true).truncate(false).open(path.join(LOCK)).map_err(io_error)?;
    let read_holder = || {
        let mut text = String::new();
        // The holder may be unreadable; that it is locked is the news.
        let _ = (&lock).read_to_string(&mut text);
        holder(&text)
    };
    locked(&lock, path, read_holder)?;
    Ok(lock)
}

/// Locks a file until it is closed.
fn locked(file: &File, path: &Path, holder: impl FnOnce() -> Holder) -> Result<(), OpenError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::Error(error)) => Err(OpenError::io(path, error)),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked { folder: path.to_owned(), holder: holder() }),
    }
}

fn holder(text: &str) -> Holder {
    let mut lines = text.lines();
    Holder {
        process: lines.next().and_then(|line| line.parse().ok()),
        address: lines.next().filter(|line| !line.is_empty()).map(str::to_owned),
    }
}
