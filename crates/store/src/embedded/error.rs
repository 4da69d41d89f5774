use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::codec::Damage;
use super::log::LogDamage;
use crate::port::{Cause, StoreError};

/// Why a folder could not be opened. Each says in one line what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("folder {} is in use by {holder}; stop it, or choose another folder", .folder.display())]
    Locked { folder: PathBuf, holder: Holder },
    #[error("folder {} holds files that are not Saltern's; choose an empty or a new folder", .0.display())]
    NotOurs(PathBuf),
    #[error("folder {} was written by a newer Saltern (format {format}); use that version or a later one", .folder.display())]
    NewerFormat { folder: PathBuf, format: u32 },
    #[error("folder {} cannot be used; check the path and its permissions", .folder.display())]
    Io { folder: PathBuf, source: io::Error },
    #[error("folder {} is damaged; keep a copy of it and restore a backup", .folder.display())]
    Damaged { folder: PathBuf, source: Cause },
    #[error("disk of folder {} is full; make room and start again", .0.display())]
    Full(PathBuf),
}

impl OpenError {
    pub(super) fn io(folder: &Path, source: io::Error) -> Self {
        let folder = folder.to_owned();
        if is_full(&source) { Self::Full(folder) } else { Self::Io { folder, source } }
    }

    pub(super) fn log(folder: &Path, damage: LogDamage) -> Self {
        match damage {
            LogDamage::Io(error) => Self::io(folder, error),
            damage => Self::damaged(folder, damage),
        }
    }

    pub(super) fn damaged(folder: &Path, what: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Damaged { folder: folder.to_owned(), source: Arc::new(what) }
    }

    pub(super) fn engine(folder: &Path, error: fjall::Error) -> Self {
        match io_error(&error).map(io::Error::kind) {
            Some(_) if io_error(&error).is_some_and(is_full) => Self::Full(folder.to_owned()),
            Some(io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem) => {
                Self::Io { folder: folder.to_owned(), source: io::Error::other(error) }
            }
            _ => Self::damaged(folder, error),
        }
    }
}

/// Who has a folder open, as far as it told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holder {
    pub process: Option<u32>,
    pub address: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}")?,
            None => f.write_str("another process")?,
        }
        self.address.iter().try_for_each(|address| write!(f, " serving {address}"))
    }
}

/// Why the store has stopped for good. Only opening it anew can help.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineFailure {
    #[error("disk is full")]
    Full(#[source] Cause),
    #[error("storage engine failed")]
    Engine(#[source] Cause),
    #[error("log could not be written")]
    Log(#[source] Cause),
    #[error("store is closed")]
    Closed,
}

impl EngineFailure {
    pub(super) fn new(error: fjall::Error) -> Self {
        if io_error(&error).is_some_and(is_full) { Self::Full(Arc::new(error)) } else { Self::Engine(Arc::new(error)) }
    }

    /// What was there could not be read, and so not be replaced.
    pub(super) fn unread(error: StoreError) -> Self {
        Self::Engine(Arc::new(error))
    }

    pub(super) fn log(error: impl Into<LogDamage>) -> Self {
        match error.into() {
            LogDamage::Io(error) if is_full(&error) => Self::Full(Arc::new(error)),
            error => Self::Log(Arc::new(error)),
        }
    }
}

impl From<EngineFailure> for StoreError {
    fn from(failure: EngineFailure) -> Self {
        Self::Unavailable(Arc::new(failure))
    }
}

impl From<Damage> for StoreError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(Arc::new(damage))
    }
}

/// What a failed read means. Nothing is wrong with the data if the system could not deliver it.
pub(super) fn read_failed(error: fjall::Error) -> StoreError {
    match (&error, io_error(&error).map(io::Error::kind)) {
        (_, Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::NotFound)) => {
            StoreError::Damaged(Arc::new(error))
        }
        (_, Some(_)) | (fjall::Error::Poisoned | fjall::Error::Locked | fjall::Error::KeyspaceDeleted, _) => {
            StoreError::Unavailable(Arc::new(error))
        }
        _ => StoreError::Damaged(Arc::new(error)),
    }
}

fn io_error(error: &fjall::Error) -> Option<&io::Error> {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => Some(error),
        _ => None,
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
