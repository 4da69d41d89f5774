//! No archive: contents stay in rows, and what an archive had cannot be had.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use saltern_store::objects::{ObjectError, ObjectPage, Objects};

pub(super) struct Absent;

#[derive(Debug, thiserror::Error)]
#[error("no archive is configured")]
struct NotConfigured;

fn absent<T>() -> Result<T, ObjectError> {
    Err(ObjectError::Unavailable(Arc::new(NotConfigured)))
}

#[async_trait]
impl Objects for Absent {
    fn root(&self) -> &str {
        ""
    }

    async fn put(&self, _: &str, _: Bytes) -> Result<(), ObjectError> {
        absent()
    }

    async fn get(&self, _: &str, _: Option<Range<u64>>) -> Result<Bytes, ObjectError> {
        absent()
    }

    async fn delete(&self, _: &str) -> Result<(), ObjectError> {
        absent()
    }

    async fn list(&self, _: &str, _: Option<&str>, _: usize) -> Result<ObjectPage, ObjectError> {
        absent()
    }
}
