//! What is asked of object storage, counted: each of it is paid for.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

use super::port::{ObjectError, ObjectPage, Objects};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectCounts {
    pub puts: u64,
    pub gets: u64,
    /// What came back from gets.
    pub bytes_got: u64,
    pub deletes: u64,
    /// Pages asked for.
    pub lists: u64,
}

impl ObjectCounts {
    /// What was added after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            puts: self.puts.saturating_sub(earlier.puts),
            gets: self.gets.saturating_sub(earlier.gets),
            bytes_got: self.bytes_got.saturating_sub(earlier.bytes_got),
            deletes: self.deletes.saturating_sub(earlier.deletes),
            lists: self.lists.saturating_sub(earlier.lists),
        }
    }
}

/// Counts what is asked of object storage. Clones are one decorator.
#[derive(Clone)]
pub struct CountedObjects {
    inner: Arc<dyn Objects>,
    counts: Arc<Mutex<ObjectCounts>>,
}

impl CountedObjects {
    #[must_use]
    pub fn new(inner: Arc<dyn Objects>) -> Self {
        Self { inner, counts: Arc::default() }
    }

    #[must_use]
    pub fn counts(&self) -> ObjectCounts {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, ObjectCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Objects for CountedObjects {
    async fn remove_unfinished(&self, before_ms: u64) -> Result<u64, ObjectError> {
        self.inner.remove_unfinished(before_ms).await
    }

    fn root(&self) -> &str {
        self.inner.root()
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        self.lock().puts += 1;
        self.inner.put(name, bytes).await
    }

    async fn get(&self, name: &str, range: Option<Range<u64>>) -> Result<Bytes, ObjectError> {
        self.lock().gets += 1;
        let bytes = self.inner.get(name, range).await?;
        self.lock().bytes_got += bytes.len() as u64;
        Ok(bytes)
    }

    async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        self.lock().deletes += 1;
        self.inner.delete(name).await
    }

    async fn list(&self, folder: &str, behind: Option<&str>, limit: usize) -> Result<ObjectPage, ObjectError> {
        self.lock().lists += 1;
        self.inner.list(folder, behind, limit).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{ObjectRoot, conformance};

    fn counted() -> CountedObjects {
        CountedObjects::new(Arc::new(ObjectRoot::in_memory()))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn keeps_the_contract() {
        conformance::all(Arc::new(counted())).await;
    }

    #[tokio::test]
    async fn counts_what_is_asked_and_what_comes_back() {
        let objects = counted();
        objects.put("a/1", Bytes::from_static(b"hello")).await.unwrap();
        let written = objects.counts();
        assert_eq!(written, ObjectCounts { puts: 1, ..ObjectCounts::default() });

        objects.get("a/1", None).await.unwrap();
        objects.get("a/1", Some(1..3)).await.unwrap();
        objects.get("a/2", None).await.unwrap_err();
        objects.list("a", None, 10).await.unwrap();
        objects.delete("a/1").await.unwrap();
        let read = ObjectCounts { gets: 3, bytes_got: 7, deletes: 1, lists: 1, ..ObjectCounts::default() };
        assert_eq!(objects.counts().since(written), read);
        assert_eq!(objects.root(), "memory:");
    }
}
