//! The folder around the engine: whose it is, who has it open, and that nothing of it is missing.
//!
//! ```text
//! SALTERN   says that the folder is ours, and in which format; there once the folder is complete
//! LOCK      locked while a process has the folder open; says which
//! log/      what was acknowledged and is not yet among the engine's tables
//! engine/   the engine's own files
//! ```

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::error::{Holder, OpenError};
use super::journal;
use crate::power_cut;

const MARKER: &str = "SALTERN";
/// Stands in for the marker until the engine's files are complete. Nothing has been acknowledged while it is there.
const UNFINISHED: &str = "SALTERN.new";
const LOCK: &str = "LOCK";
const ENGINE: &str = "engine";
const LOG: &str = "log";

const FORMAT_NAME: &str = "embedded format ";
/// Format 2 has the keyspace of campaigns, format 3 that of what is due, and rows without their content, format 4 the log,
/// format 5 entries of several rows. An older folder gets what it lacks when it is opened.
const FORMAT: u32 = 5;
const FORMAT_WITH_LOG: u32 = 4;
/// Stands in for the marker of the new format while a folder is brought up to it.
const NEXT: &str = "SALTERN.next";

/// Files without which the engine would start afresh and remove what is left of the old data, and since which format.
const ESSENTIAL: [(&str, u32); 7] = [
    ("version", 1),
    ("lock", 1),
    ("keyspaces/0/current", 1),
    ("keyspaces/1/current", 1),
    ("keyspaces/2/current", 1),
    ("keyspaces/3/current", 2),
    ("keyspaces/4/current", 3),
];

pub(super) struct Folder {
    path: PathBuf,
    lock: File,
    content: Content,
}

#[derive(Debug, thiserror::Error)]
#[error("{0} is missing")]
struct Missing(&'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Unfinished,
    Complete { format: u32 },
}

impl Folder {
    /// Makes the folder ours and ready for the engine. What is not ours, or not whole, is left as it is.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        power_cut::create_dir(path).map_err(|error| OpenError::io(path, error))?;
        examine(path)?;
        let lock = acquire(path)?;
        // Again, now that nobody else can be creating it.
        let content = examine(path)?;
        let folder = Self { path: path.to_owned(), lock, content };
        folder.announce(None).map_err(|error| OpenError::io(path, error))?;
        match content {
            Content::Complete { format } => folder.check_engine(format)?,
            Content::Unfinished | Content::Nothing => {
                folder.begin(content).map_err(|error| OpenError::io(path, error))?;
            }
        }
        Ok(folder)
    }

    pub(super) fn engine(&self) -> PathBuf {
        self.path.join(ENGINE)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// Whether there is a log to be read back; else there is nothing in it that counts.
    pub(super) fn has_log(&self) -> bool {
        matches!(self.content, Content::Complete { format } if format >= FORMAT_WITH_LOG)
    }

    /// Whether it was complete before it was opened.
    pub(super) fn has_rows(&self) -> bool {
        matches!(self.content, Content::Complete { .. })
    }

    fn begin(&self, content: Content) -> io::Result<()> {
        if content == Content::Unfinished && self.engine().try_exists()? {
            std::fs::remove_dir_all(self.engine())?;
        }
        self.write_marker(UNFINISHED)?;
        power_cut::sync_dir(&self.path)
    }

    fn write_marker(&self, name: &str) -> io::Result<()> {
        let mut marker = File::create(self.path.join(name))?;
        writeln!(marker, "{FORMAT_NAME}{FORMAT}")?;
        marker.sync_all()
    }

    /// The engine's files are there: from now on rows may be acknowledged.
    pub(super) fn finish(&self) -> Result<(), OpenError> {
        let finish = || {
            let marker = match self.content {
                Content::Complete { format: FORMAT } => return Ok(()),
                Content::Complete { .. } => {
                    self.write_marker(NEXT)?;
                    NEXT
                }
                Content::Nothing | Content::Unfinished => UNFINISHED,
            };
            power_cut::sync_dir(&self.engine())?;
            std::fs::rename(self.path.join(marker), self.path.join(MARKER))?;
            power_cut::sync_dir(&self.path)
        };
        finish().map_err(|error| OpenError::io(&self.path, error))
    }

    fn check_engine(&self, format: u32) -> Result<(), OpenError> {
        for (file, _) in ESSENTIAL.into_iter().filter(|(_, since)| *since <= format) {
            let there = self.engine().join(file).try_exists().map_err(|error| OpenError::io(&self.path, error))?;
            if !there {
                return Err(OpenError::damaged(&self.path, Missing(file)));
            }
        }
        journal::check(&self.engine()).map_err(|damage| OpenError::damaged(&self.path, damage))
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

fn examine(path: &Path) -> Result<Content, OpenError> {
    let io_error = |error| OpenError::io(path, error);
    let format = match std::fs::read(path.join(MARKER)) {
        Ok(marker) => format_of(&marker).ok_or_else(|| OpenError::NotOurs(path.to_owned()))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return unmarked(path),
        Err(error) => return Err(io_error(error)),
    };
    if format > FORMAT {
        return Err(OpenError::NewerFormat { folder: path.to_owned(), format });
    }
    Ok(Content::Complete { format })
}

fn format_of(marker: &[u8]) -> Option<u32> {
    std::str::from_utf8(marker).ok()?.trim_end().strip_prefix(FORMAT_NAME)?.parse().ok().filter(|format| *format > 0)
}

fn unmarked(path: &Path) -> Result<Content, OpenError> {
    let io_error = |error| OpenError::io(path, error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io_error)? {
        names.push(entry.map_err(io_error)?.file_name());
    }
    let unfinished = names.iter().any(|name| name == UNFINISHED);
    let ours = |name: &str| name == LOCK || (unfinished && [UNFINISHED, ENGINE, LOG].contains(&name));
    if !names.iter().all(|name| name.to_str().is_some_and(ours)) {
        return Err(OpenError::NotOurs(path.to_owned()));
    }
    Ok(if unfinished { Content::Unfinished } else { Content::Nothing })
}

fn acquire(path: &Path) -> Result<File, OpenError> {
    let io_error = |error| OpenError::io(path, error);
    let mut options = OpenOptions::new();
    let mut lock =
        options.read(true).write(true).create(true).truncate(false).open(path.join(LOCK)).map_err(io_error)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::Error(error)) => Err(io_error(error)),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // The holder may be unreadable; that it is locked is the news.
            let _ = lock.read_to_string(&mut text);
            Err(OpenError::Locked { folder: path.to_owned(), holder: holder(&text) })
        }
    }
}

fn holder(text: &str) -> Holder {
    let mut lines = text.lines();
    Holder {
        process: lines.next().and_then(|line| line.parse().ok()),
        address: lines.next().filter(|line| !line.is_empty()).map(str::to_owned),
    }
}
