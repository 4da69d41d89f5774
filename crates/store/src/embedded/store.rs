use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use async_trait::async_trait;
use fjall::Slice;
use saltern_core::key::Key;
use saltern_core::page::Order;
use saltern_core::record::Record;
use tokio::sync::{mpsc, oneshot, watch};

use super::campaigns::Shelf;
use super::codec;
use super::commit::{Committer, Message, Premise, Request, Verdict, Write};
use super::due;
use super::end_recorder::EndRecorder;
use super::engine::Engine;
use super::error::{EngineFailure, OpenError};
use super::folder::Folder;
use super::fresh::{Fresh, Layer};
use super::log::{Change, Log};
use super::metrics::EmbeddedMetrics;
use super::mover::Mover;
use super::options::{EmbeddedOptions, PAGE_BYTES_MAX};
use super::physical::{Space, key_with_room, partition_prefix, physical_key};
use super::recall::Recall;
use super::recent::Recent;
use super::tops::Tops;
use super::view::View;
use crate::misuse::keys_differ;
use crate::port::{Capabilities, Condition, Consistency, Put, PutOutcome, Query, QueryPage, Store, StoreError};

/// A store in a folder, which this process has for itself as long as the store lives.
pub struct EmbeddedStore {
    pub(super) view: View,
    /// `None` only while dropping.
    queue: Option<mpsc::Sender<Message>>,
    committer: Option<JoinHandle<()>>,
    failure: Arc<watch::Sender<Option<EngineFailure>>>,
    metrics: EmbeddedMetrics,
    pub(super) shelf: Shelf,
    pub(super) recent: Arc<Recent>,
    _recall: Recall,
    /// Last, so that the folder is free only when the engine is gone.
    folder: Folder,
}

#[derive(Debug, thiserror::Error)]
#[error("the commit thread ended before it answered")]
struct NoAnswer;

impl EmbeddedStore {
    /// Opens a folder, creating it if there is none. Blocks, for about as long as the log takes to be read back.
    pub fn open(folder: &Path, options: EmbeddedOptions) -> Result<Self, OpenError> {
        let path = folder;
        let folder = Folder::open(path)?;
        let mut layer = Layer::default();
        let read_back = || Log::open(&folder.log(), folder.id(), |change| layer.insert(&change));
        let log = folder.is_complete().then(read_back).transpose().map_err(|damage| OpenError::log(path, damage))?;
        let engine = Engine::open(path, &folder.engine(), &options)?;
        let create = || Log::create(&folder.log(), folder.id()).map_err(|damage| OpenError::log(path, damage));
        let log = log.map_or_else(create, Ok)?;
        folder.finish()?;
        let view = View { engine, fresh: Arc::new(Fresh::new(layer)) };
        let shelf = Shelf::open(&view, options.dead_letters_max).map_err(|error| OpenError::damaged(path, error))?;
        let recall = Recall::start(view.clone()).map_err(|error| OpenError::io(path, error))?;
        let (queue, requests) = mpsc::channel(options.queue_max.max(1));
        let failure = Arc::new(watch::Sender::new(None));
        let metrics = EmbeddedMetrics::default();
        let recent = Arc::new(Recent::default());
        let mover = Mover {
            engine: view.engine.clone(),
            fresh: Arc::clone(&view.fresh),
            log: log.upkeep(),
            failure: Arc::clone(&failure),
            metrics: metrics.clone(),
        };
        let end_recorder = EndRecorder::start(log.upkeep()).map_err(|error| OpenError::io(path, error))?;
        let committer = Committer {
            view: view.clone(),
            log,
            end_recorder,
            mover,
            moving: None,
            tops: Tops::default(),
            recent: Arc::clone(&recent),
            failure: Arc::clone(&failure),
            metrics: metrics.clone(),
            batch_max: options.batch_max,
            company: 0,
            layer_bytes: options.layer_bytes,
        };
        let committer = std::thread::Builder::new()
            .name("store-commit".into())
            .spawn(move || committer.run(requests))
            .map_err(|error| OpenError::io(path, error))?;
        Ok(Self {
            view,
            queue: Some(queue),
            committer: Some(committer),
            failure,
            metrics,
            shelf,
            recent,
            _recall: recall,
            folder,
        })
    }

    /// Fails if the folder is gone, or its disk takes nothing. Blocks for as long as the disk does.
    pub fn check_disk(&self) -> io::Result<()> {
        self.folder.check_disk()
    }

    /// Tells whoever finds the folder locked where it is being served.
    pub fn announce(&self, address: &str) -> io::Result<()> {
        self.folder.announce(Some(address))
    }

    /// Finishes what is queued and leaves nothing for the next start to read back. Later calls answer `Unavailable`.
    pub async fn close(&self) -> Result<(), EngineFailure> {
        let (closed, wait) = oneshot::channel();
        self.send(Message::Close(closed)).await?;
        wait.await.unwrap_or(Err(EngineFailure::Closed))
    }

    /// Returns when everything that has been written is in the engine's tables, and the log is empty.
    pub(super) async fn settle(&self) -> Result<(), EngineFailure> {
        let (settled, wait) = oneshot::channel();
        self.send(Message::Settle(settled)).await?;
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
        let mut writes = Vec::with_capacity(puts.len() + 1);
        for put in puts {
            writes.push(self.prepare(put, puts.len() == 1)?);
        }
        writes.extend(puts.iter().filter_map(due::index));
        let writes = self.commit(writes).await?;
        let mut outcomes = Vec::with_capacity(puts.len());
        for write in writes.iter().take(puts.len()) {
            outcomes.push(outcome(write.verdict())?);
        }
        Ok(outcomes)
    }

    /// Hands writes to the commit thread, to be applied together or not at all.
    pub(super) async fn commit(&self, writes: Vec<Write>) -> Result<Vec<Write>, StoreError> {
        let (answer, wait) = oneshot::channel();
        self.send(Message::Write(Request { writes, answer })).await?;
        wait.await.unwrap_or_else(|_| Err(StoreError::Unknown(Arc::new(NoAnswer))))
    }

    /// All that can be done for a put before it is the commit thread's turn.
    fn prepare(&self, put: &Put, is_alone: bool) -> Result<Write, StoreError> {
        let (space, key) = (Space::of(&put.key.partition), key_with_room(&put.key, codec::size_hint(&put.record)));
        let found = match space {
            Space::Claims => Some(self.view.look(space, &key)?),
            // A row that is to be replaced is there, and so is, mostly, one that comes without a claim. A new one lies beyond the
            // end of its partition, as the commit thread knows.
            Space::Rows if is_alone || matches!(put.condition, Condition::Version(_)) => {
                Some(self.view.look(space, &key)?)
            }
            Space::Rows | Space::Campaigns | Space::Due => None,
        };
        let change = Change::joined(space, key.len(), codec::encode_behind(key, &put.record));
        Ok(Write::new(change, Premise::Row(put.condition), found))
    }

    pub(super) fn check(&self) -> Result<(), EngineFailure> {
        self.failure.borrow().clone().map_or(Ok(()), Err)
    }

    pub(super) fn read(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let row = self.view.get(Space::of(&key.partition), &physical_key(key))?;
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

fn outcome(verdict: &Verdict) -> Result<PutOutcome, StoreError> {
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
        match Space::of(&query.partition) {
            Space::Rows => {
                let partition = partition_prefix(&query.partition);
                page(self.view.rows(&partition, (query.from, query.to), query.order, query.limit), query)
            }
            // Each has a partition of its own, under one sort key.
            _ => {
                let key = Key { partition: query.partition.clone(), sort: 0 };
                let row = self.view.get(Space::Claims, &physical_key(&key))?.filter(|_| query.from == 0);
                page(row.map(|row| Ok((0, row))).into_iter(), query)
            }
        }
    }
}

/// Rows up to the limit of their number or of their bytes, whichever is met first.
fn page(found: impl Iterator<Item = Result<(u64, Slice), StoreError>>, query: &Query) -> Result<QueryPage, StoreError> {
    let end = match query.order {
        Order::Ascending => query.to,
        Order::Descending => query.from,
    };
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut full = query.limit == 0;
    for row in found.take(query.limit) {
        let (sort, value) = row?;
        bytes += value.len();
        rows.push((sort, codec::decode(&value)?));
        full = rows.len() == query.limit || bytes >= PAGE_BYTES_MAX;
        if full {
            break;
        }
    }
    let resume = rows.last().map(|(sort, _)| *sort).filter(|last| full && *last != end);
    Ok(QueryPage { rows, resume })
}
