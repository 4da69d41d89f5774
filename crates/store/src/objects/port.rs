//! The port to object storage: whole objects under names, and nothing that only some storages can do.
//!
//! # Names
//! Segments of `[A-Za-z0-9_.=-]`, joined by `/`; none is empty, `.` or `..`. No name is also a folder of another one: with
//! `a/b` there is no object `a`. The caller sees to all of this.
//!
//! # Contract
//! - **O1 Whole or not at all.** A name has the bytes of one whole put, never a part of one or a mixture of two.
//! - **O2 Durable before answered.** What a put or delete that was answered has done survives a crash, and a power cut.
//! - **O3 Seen at once.** A get or list that begins after a put was answered sees it, on any handle; after a delete was
//!   answered, the object is `Missing`.
//! - **O4 Deletes can be repeated.** Deleting an object that is not there succeeds.
//! - **O5 Ordered, bounded lists.** Pages from the beginning to one without `resume` hold each object under the folder
//!   that was there all the while exactly once, in the byte order of the names; one that comes or goes meanwhile, at most
//!   once. `resume` is `Some` exactly when more may exist; an empty page may follow.
//! - **O6 Repeatable.** A put or delete that was answered `Unavailable`, or whose future was dropped, may have happened, or
//!   may yet. As a put names its bytes, the same put again makes it certain.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use crate::port::Cause;

/// The most that one page of a list holds: as much as S3 gives in one answer.
pub const LIST_MAX: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    pub name: String,
    pub bytes: u64,
    /// By the clock of the storage, which may know whole seconds only.
    pub modified_at_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPage {
    pub objects: Vec<ObjectInfo>,
    /// Go on behind this name.
    pub resume: Option<String>,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum ObjectError {
    #[error("no such object")]
    Missing,
    /// The object ends before the range does.
    #[error("object ends before the range does")]
    TooShort,
    /// Cannot be reached now, refused or took too long. May be tried again (O6).
    #[error("object storage unavailable")]
    Unavailable(#[source] Cause),
}

/// Objects under one root.
#[async_trait]
pub trait Objects: Send + Sync + 'static {
    /// Where the objects are, without a slash at its end, for clients: `s3://bucket/prefix`, `memory:`, and `archive` for a
    /// folder, whose place on the server is no client's business.
    fn root(&self) -> &str;

    /// Gives a name these bytes, whatever it had before (O1–O3).
    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError>;

    /// All of an object, or exactly the bytes of a range (O1, O3).
    async fn get(&self, name: &str, range: Option<Range<u64>>) -> Result<Bytes, ObjectError>;

    /// Removes an object, if it is there (O2–O4).
    async fn delete(&self, name: &str) -> Result<(), ObjectError>;

    /// Objects whose names begin with `folder/`, or all if `folder` is empty, behind a name, which need not exist. At most
    /// `limit`, which is from 1 to `LIST_MAX` (O3, O5).
    async fn list(&self, folder: &str, behind: Option<&str>, limit: usize) -> Result<ObjectPage, ObjectError>;

    /// Removes what puts have left that a crash before this time did not let come to their end, and says how many. Where such
    /// puts leave nothing, there is nothing to do.
    async fn remove_unfinished(&self, _before_ms: u64) -> Result<u64, ObjectError> {
        Ok(0)
    }
}
