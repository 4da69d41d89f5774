use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use fjall::{Guard, Slice};
use saltern_core::key::Key;
use saltern_core::page::Order;
use saltern_core::record::Record;
use tokio::sync::{mpsc, oneshot, watch};

use super::campaigns::Shelf;
use super::codec::{self, Damage};
use super::commit::{Committer, Message, Premise, Request, Verdict, Write};
use super::due;
use super::engine::Engine;
use super::error::{EngineFailure, OpenError, read_failed};
use super::folder::Folder;
use super::lookahead::{Commits, Found, Latest};
use super::metrics::EmbeddedMetrics;
use super::options::{EmbeddedOptions, PAGE_BYTES_MAX};
use super::physical::{Space, physical, physical_key, sort_of};
use super::recent::Recent;
use super::tops::Tops;
use crate::misuse::keys_differ;
use crate::port::{Capabilities, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError};

/// A store in a folder, which this process has for itself as long as the store lives.
pub struct EmbeddedStore {
    pub(super) engine: Engine,
    commits: Commits,
    /// `None` only while dropping.
    queue: Option<mpsc::Sender<Message>>,
    committer: Option<JoinHandle<()>>,
    failure: Arc<watch::Sender<Option<EngineFailure>>>,
    metrics: EmbeddedMetrics,
    pub(super) shelf: Shelf,
    pub(super) recent: Arc<Recent>,
    /// Last, so that the folder is free only when the engine is gone.
    folder: Folder,
}

#[derive(Debug, thiserror::Error)]
#[error("the commit thread ended before it answered")]
struct NoAnswer;

impl EmbeddedStore {
    /// Opens a folder, creating it if there is none. Blocks, for about as long as the last journal takes to replay.
    pub fn open(folder: &Path, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let path = folder;
        let folder = Folder::open(path)?;
        let engine = Engine::open(path, &folder.engine(), &options)?;
        folder.finish()?;
        let shelf = Shelf::open(&engine, options.dead_letters_max).map_err(|error| OpenError::damaged(path, error))?;
        let (queue, requests) = mpsc::channel(options.queue_max.max(1));
        let failure = Arc::new(watch::Sender::new(None));
        let metrics = EmbeddedMetrics::default();
        let commits = Commits::default();
        let recent = Arc::new(Recent::default());
        let committer = Committer {
            engine: engine.clone(),
            tops: Tops::default(),
            latest: Latest::new(commits.clone()),
            recent: Arc::clone(&recent),
            failure: Arc::clone(&failure),
            metrics: metrics.clone(),
            batch_max: options.batch_max,
        };
        let committer = std::thread::Builder::new()
            .name("store-commit".into())
            .spawn(move || committer.run(requests))
            .map_err(|error| OpenError::io(path, error))?;
        Ok(Self {
            engine,
            commits,
            queue: Some(queue),
            committer: Some(committer),
            failure,
            metrics,
            shelf,
            recent,
            folder,
        })
    }

    /// Tells whoever finds the folder locked where it is being served.
    pub fn announce(&self, address: &str) -> io::Result<()> {
        self.folder.announce(Some(address))
    }

    /// Finishes what is queued and leaves nothing for the next start to replay. Later calls answer `Unavailable`.
    pub async fn close(&self) -> Result<(), EngineFailure> {
        let (closed, wait) = oneshot::channel();
        self.send(Message::Close(closed)).await?;
        wait.await.unwrap_or(Err(EngineFailure::Closed))
    }

    /// Resolves when the store has failed or been closed, and serves no more.
    pub fn failure(&self) -> impl Future<Output = EngineFailure> + Send + use<> {
        let mut failure = self.failure.subscribe();
        async move {
            let failed = failure.wait_for(Option::is_some).await.ok().and_then(|failure| failure.clone());
            failed.unwrap_or(EngineFailure::Closed)
        }
    }

    #[must_use]
    pub fn metrics(&self) -> &EmbeddedMetrics {
        &self.metrics
    }

    async fn send(&self, message: Message) -> Result<(), EngineFailure> {
        let Some(queue) = &self.queue else { return Err(EngineFailure::Closed) };
        queue.send(message).await.map_err(|_| EngineFailure::Closed)
    }

    async fn write(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        let mut writes = puts.iter().map(|put| self.prepare(put)).collect::<Result<Vec<_>, _>>()?;
        writes.extend(puts.iter().filter_map(due::index));
        self.commit(writes).await?.into_iter().take(puts.len()).map(outcome).collect()
    }

    /// Hands writes to the commit thread, to be applied together or not at all.
    pub(super) async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Verdict>, StoreError> {
        let (answer, wait) = oneshot::channel();
        self.send(Message::Write(Request { writes, answer })).await?;
        wait.await.unwrap_or_else(|_| Err(StoreError::Unknown(Arc::new(NoAnswer))))
    }

    /// What is there now, for the commit thread to confirm.
    pub(super) fn look_ahead(&self, space: Space, key: &Slice) -> Result<Found, StoreError> {
        let as_of = self.commits.visible();
        let row = self.engine.space(space).get(key).map_err(read_failed)?;
        Ok(Found { row, as_of })
    }

    /// All that can be done for a put before it is the commit thread's turn.
    fn prepare(&self, put: &Put) -> Result<Write, StoreError> {
        let (space, key) = (Space::of(&put.key.partition), physical_key(&put.key));
        let found = match space {
            Space::Claims => Some(self.look_ahead(space, &key)?),
            Space::Rows | Space::Campaigns | Space::Due => None,
        };
        let value = Some(codec::encode(&put.record).into());
        Ok(Write { space, key, value, premise: Premise::Row(put.condition), found })
    }

    pub(super) fn check(&self) -> Result<(), EngineFailure> {
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    pub(super) fn read(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let row = self.engine.space(Space::of(&key.partition)).get(physical_key(key)).map_err(read_failed)?;
        Ok(row.as_deref().map(codec::decode).transpose()?)
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(committer) = self.committer.take()
            && committer.join().is_err()
        {
            tracing::error!("the commit thread panicked");
        }
    }
}

fn outcome(verdict: Verdict) -> Result<PutOutcome, StoreError> {
    Ok(match verdict {
        Verdict::Applied => PutOutcome::Applied,
        Verdict::Refused(row) => PutOutcome::Refused(row.as_deref().map(codec::decode).transpose()?),
    })
}

#[async_trait]
impl Store for EmbeddedStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { atomic_puts: true, exclusive: true }
    }

    async fn put(&self, put: &Put) -> Result<PutOutcome, StoreError> {
        let outcomes = self.write(std::slice::from_ref(put)).await?;
        outcomes.into_iter().next().ok_or_else(|| StoreError::Unknown(Arc::new(NoAnswer)))
    }

    async fn put_all(&self, puts: &[Put]) -> Result<Vec<PutOutcome>, StoreError> {
        keys_differ(puts)?;
        self.write(puts).await
    }

    async fn get(&self, keys: &[Key], _: Consistency) -> Result<Vec<Option<Record>>, StoreError> {
        self.check()?;
        keys.iter().map(|key| self.read(key)).collect()
    }

    async fn query(&self, query: &Query) -> Result<QueryPage, StoreError> {
        self.check()?;
        if query.from > query.to {
            return Ok(QueryPage { rows: Vec::new(), resume: None });
        }
        let bounds = physical(&query.partition, query.from)..=physical(&query.partition, query.to);
        let range = self.engine.space(Space::of(&query.partition)).range(bounds);
        match query.order {
            Order::Ascending => page(range, query.limit, query.to),
            Order::Descending => page(range.rev(), query.limit, query.from),
        }
    }
}

/// Rows up to the limit of their number or of their bytes, whichever is met first.
fn page(range: impl Iterator<Item = Guard>, limit: usize, end: u64) -> Result<QueryPage, StoreError> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut full = limit == 0;
    for guard in range.take(limit) {
        let (key, value): (Slice, Slice) = guard.into_inner().map_err(read_failed)?;
        bytes += value.len();
        rows.push((sort_of(&key).ok_or(Damage::Key)?, codec::decode(&value)?));
        full = rows.len() == limit || bytes >= PAGE_BYTES_MAX;
        if full {
            break;
        }
    }
    let resume = rows.last().map(|(sort, _)| *sort).filter(|last| full && *last != end);
    Ok(QueryPage { rows, resume })
}
