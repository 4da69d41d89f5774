//! The port over whatever the crate `object_store` can reach.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::{Path as FolderPath, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt as _};

use super::port::{LIST_MAX, ObjectError, ObjectInfo, ObjectPage, Objects};
use crate::power_cut;

type Entries = BoxStream<'static, Result<ObjectInfo, ObjectError>>;

/// In the answers of S3: not the object is missing, but everything. No other place tells the two apart.
pub(super) const NO_SUCH_BUCKET: &str = "<Code>NoSuchBucket</Code>";

/// One place that objects are kept in. Clones are the same place.
#[derive(Debug, Clone)]
pub struct ObjectRoot {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) root: String,
    /// Where it is a folder of this machine.
    pub(super) folder: Option<PathBuf>,
    /// For one call with all its tries, where calls can hang.
    pub(super) call_timeout: Option<Duration>,
}

#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct NoAnswer(Duration);

impl ObjectRoot {
    /// Of its own, and gone with its last clone.
    #[must_use]
    pub fn in_memory() -> Self {
        Self { store: Arc::new(InMemory::new()), root: "memory:".into(), folder: None, call_timeout: None }
    }

    /// Files under a folder, which is created if it is not there.
    ///
    /// A put writes a file `name#1`, or the next free number, and renames it when it is on the disk. What a crash leaves of
    /// one is no object, is in nobody's way, and stays until `remove_unfinished`.
    pub fn folder(path: &FolderPath) -> io::Result<Self> {
        power_cut::create_dir(path)?;
        let folder = path.canonicalize()?;
        let store = LocalFileSystem::new_with_prefix(&folder)?.with_fsync(true);
        Ok(Self { store: Arc::new(store), root: "archive".into(), folder: Some(folder), call_timeout: None })
    }

    pub(super) async fn in_time<T>(
        &self,
        call: impl Future<Output = Result<T, ObjectError>> + Send,
    ) -> Result<T, ObjectError> {
        let Some(limit) = self.call_timeout else { return call.await };
        tokio::time::timeout(limit, call)
            .await
            .unwrap_or_else(|_| Err(ObjectError::Unavailable(Arc::new(NoAnswer(limit)))))
    }

    async fn get_part(&self, path: &Path, range: Range<u64>) -> Result<Bytes, ObjectError> {
        // HTTP has no words for a range without bytes.
        if range.is_empty() {
            return if self.size(path).await? < range.start { Err(ObjectError::TooShort) } else { Ok(Bytes::new()) };
        }
        match self.read(path, &range).await {
            // A range that goes beyond the end is cut off there without a word.
            Ok(bytes) if (bytes.len() as u64) < range.end - range.start => Err(ObjectError::TooShort),
            Ok(bytes) => Ok(bytes),
            // One that begins behind the end is an error like any other.
            Err(error @ Error::Generic { .. }) => match self.size(path).await {
                Ok(size) if size < range.end => Err(ObjectError::TooShort),
                Err(ObjectError::Missing) => Err(ObjectError::Missing),
                _ => Err(failed(error)),
            },
            Err(error) => Err(failed(error)),
        }
    }

    async fn read(&self, path: &Path, range: &Range<u64>) -> Result<Bytes, Error> {
        let options = GetOptions { range: Some(range.clone().into()), ..GetOptions::default() };
        self.store.get_opts(path, options).await?.bytes().await
    }

    async fn size(&self, path: &Path) -> Result<u64, ObjectError> {
        self.store.head(path).await.map(|meta| meta.size).map_err(failed)
    }

    async fn remove(&self, path: &Path) -> Result<(), ObjectError> {
        match self.store.delete(path).await {
            Err(error) if !is_missing(&error) => return Err(failed(error)),
            _ => {}
        }
        // `object_store` makes puts survive a power cut, but not deletes. One that finds nothing may be the second try of
        // one that came no further than here.
        let Some(file) = self.folder.as_ref().map(|folder| folder.join(path.as_ref())) else { return Ok(()) };
        let synced = tokio::task::spawn_blocking(move || file.parent().map_or(Ok(()), power_cut::sync_dir)).await;
        match synced.map_err(io::Error::from).flatten() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ObjectError::Unavailable(Arc::new(error))),
            _ => Ok(()),
        }
    }

    fn entries(&self, folder: &str, behind: Option<&str>) -> Result<Entries, ObjectError> {
        let prefix = path(folder)?;
        let entries = match behind {
            Some(name) => self.store.list_with_offset(Some(&prefix), &path(name)?),
            None => self.store.list(Some(&prefix)),
        };
        // A name that only stands for the folder, as some tools make one in S3, is none of ours.
        let folder = prefix.as_ref().len();
        let entries = entries.map_err(unavailable).map_ok(info);
        Ok(entries.try_filter(move |info| std::future::ready(info.name.len() > folder)).boxed())
    }
}

#[async_trait]
impl Objects for ObjectRoot {
    fn root(&self) -> &str {
        &self.root
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        let path = path(name)?;
        self.in_time(async {
            self.store.put(&path, bytes.into()).await.map_err(unavailable)?;
            Ok(())
        })
        .await
    }

    async fn get(&self, name: &str, range: Option<Range<u64>>) -> Result<Bytes, ObjectError> {
        let path = path(name)?;
        self.in_time(async {
            match range {
                Some(range) => self.get_part(&path, range).await,
                None => self.store.get(&path).await.map_err(failed)?.bytes().await.map_err(failed),
            }
        })
        .await
    }

    async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        let path = path(name)?;
        self.in_time(self.remove(&path)).await
    }

    async fn list(&self, folder: &str, behind: Option<&str>, limit: usize) -> Result<ObjectPage, ObjectError> {
        let limit = limit.clamp(1, LIST_MAX);
        let entries = self.entries(folder, behind)?;
        // Memory and S3 list in the order of names; a folder, in the order in which its files lie.
        self.in_time(async {
            match self.folder {
                Some(_) => sorted_page(entries, limit).await,
                None => page(entries, limit).await,
            }
        })
        .await
    }

    async fn remove_unfinished(&self, before_ms: u64) -> Result<u64, ObjectError> {
        let Some(folder) = self.folder.clone() else { return Ok(0) };
        let before = SystemTime::UNIX_EPOCH + Duration::from_millis(before_ms);
        let removed = tokio::task::spawn_blocking(move || remove_unfinished(&folder, before)).await;
        removed.map_err(io::Error::from).flatten().map_err(|error| ObjectError::Unavailable(Arc::new(error)))
    }
}

/// Files that a put has not renamed. Directories are few: one for each conversation.
fn remove_unfinished(folder: &FolderPath, before: SystemTime) -> io::Result<u64> {
    let mut removed = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            removed += remove_unfinished(&entry.path(), before)?;
        } else if entry.file_name().to_string_lossy().contains('#') && entry.metadata()?.modified()? <= before {
            std::fs::remove_file(entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Ends with the page, however much lies behind it: S3 is asked for one answer, of up to `LIST_MAX` names.
async fn page(entries: Entries, limit: usize) -> Result<ObjectPage, ObjectError> {
    let objects: Vec<_> = entries.take(limit).try_collect().await?;
    let last = objects.last().filter(|_| objects.len() == limit);
    let resume = last.map(|last| last.name.clone());
    Ok(ObjectPage { objects, resume })
}

/// Sees everything under the folder for every page, in batches of 1,024, and keeps no more of it than the page. Files that
/// lie before the page are not asked for their size. Long lists are better asked for folder by folder.
async fn sorted_page(mut entries: Entries, limit: usize) -> Result<ObjectPage, ObjectError> {
    let mut first = BTreeMap::new();
    let mut more = false;
    while let Some(info) = entries.try_next().await? {
        first.insert(info.name.clone(), info);
        if first.len() > limit {
            first.pop_last();
            more = true;
        }
    }
    let resume = first.last_key_value().filter(|_| more).map(|(name, _)| name.clone());
    Ok(ObjectPage { objects: first.into_values().collect(), resume })
}

fn path(name: &str) -> Result<Path, ObjectError> {
    Path::parse(name).map_err(|error| unavailable(error.into()))
}

fn info(meta: ObjectMeta) -> ObjectInfo {
    let modified_at_ms = meta.last_modified.timestamp_millis().try_into().unwrap_or_default();
    ObjectInfo { name: meta.location.into(), bytes: meta.size, modified_at_ms }
}

pub(super) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::NotFound { source, .. } if !source.to_string().contains(NO_SUCH_BUCKET))
}

fn failed(error: Error) -> ObjectError {
    if is_missing(&error) { ObjectError::Missing } else { unavailable(error) }
}

fn unavailable(error: Error) -> ObjectError {
    ObjectError::Unavailable(Arc::new(error))
}
