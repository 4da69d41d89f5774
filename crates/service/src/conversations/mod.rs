//! Conversations: append logs with dense order, idempotent appends and stable pages.

mod api;
mod append;
mod archive;
mod coalesce;
mod fingerprint;
mod history;
mod in_flight;
mod known;
mod metrics;
mod recent;
mod rows;
mod sabotage;
mod sealer;
mod settle;
mod ticket;
mod unstoppable;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use api::{AppendError, Appended, Config, Contents, EraseError, HotConversation, Lookup, ReadError, View};
pub use archive::{
    Archive, ArchiveError, ContentProblem, Estimate, ObjectLayout, PassOptions, PassReport, Progress, Swept,
};
#[cfg(not(feature = "sabotage"))]
use futures_util::FutureExt as _;
pub use metrics::Metrics;
pub use sabotage::Sabotage;
use saltern_core::ids::ConversationId;
use saltern_core::message::Draft;
use saltern_core::page::{NewerPage, OlderPage};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_registry::Registry;
pub use saltern_registry::RegistryError;
use saltern_store::Store;
pub use saltern_store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::archive::Parts;
use self::coalesce::Coalescer;
use self::in_flight::InFlight;
use self::known::Directory;
use self::metrics::AppendResult;
use self::recent::Recent;
use self::rows::RowCache;
use self::sealer::Watched;
use self::unstoppable::Unstoppable;
use crate::backoff::Jitter;
use crate::deadline::by;

/// Conversations that may be synced at once, so that a registry failover does not become a flood of reads.
const SYNCS_MAX: usize = 64;

/// Where others write too, a row is remembered no longer: content that one of them has erased is not shown after that.
const SHARED_ROWS_LAST: Duration = Duration::from_secs(60);

/// An erasure may take so many times as long as an append: it may have to wait for another server.
const ERASE_DEADLINES: u32 = 3;

type OlderKey = (ConversationId, Option<SeqNo>, usize, Contents);
type NewerKey = (ConversationId, u64, usize, Contents);

/// A cheap handle on the conversation service.
#[derive(Clone)]
pub struct Conversations {
    inner: Arc<Inner>,
}

/// One of the reads that may be in flight at once (`Config::reads_max`). The code that answers a client holds it until the answer
/// has left the process: what was read stays in memory until then.
#[derive(Debug)]
pub struct ReadPermit(#[expect(dead_code, reason = "held, never used")] OwnedSemaphorePermit);

impl fmt::Debug for Conversations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversations").finish_non_exhaustive()
    }
}

struct Inner {
    store: Arc<dyn Store>,
    registry: Arc<dyn Registry>,
    config: Config,
    metrics: Metrics,
    directory: Directory,
    in_flight: InFlight,
    recent: Recent,
    rows: Arc<RowCache>,
    archive: Arc<Archive>,
    watched: Watched,
    jitter: Jitter,
    older: Coalescer<OlderKey, Result<Arc<OlderPage>, ReadError>>,
    newer: Coalescer<NewerKey, Result<Arc<NewerPage>, ReadError>>,
    appends: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    syncs: Semaphore,
    /// Work that outlives the request that began it.
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Inner {
    /// Runs in the background, to its end.
    fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(mortal(&self.stop, work));
    }
}

/// Work that ends at its next await when the service is aborted, as the simulation's crashes need it. Elsewhere an abort
/// only ends retries: what the store has been asked, it answers.
#[cfg(feature = "sabotage")]
fn mortal<T, W: Future<Output = T>>(stop: &CancellationToken, work: W) -> impl Future<Output = Option<T>> + use<T, W> {
    stop.clone().run_until_cancelled_owned(work)
}

#[cfg(not(feature = "sabotage"))]
fn mortal<T, W: Future<Output = T>>(_: &CancellationToken, work: W) -> impl Future<Output = Option<T>> + use<T, W> {
    work.map(Some)
}

impl Conversations {
    /// Starts the service on the present runtime.
    pub fn new(store: Arc<dyn Store>, registry: Arc<dyn Registry>, config: Config) -> Self {
        let join_started = config.sabotaged(Sabotage::JoinStartedReads);
        let lasts = (!store.capabilities().exclusive).then_some(SHARED_ROWS_LAST);
        let rows = Arc::new(RowCache::new(config.cache_bytes_max, lasts));
        let archive = Arc::new(Archive::new(Parts {
            store: Arc::clone(&store),
            objects: config.objects.clone(),
            layout: config.object_layout,
            wall_clock: Arc::clone(&config.wall_clock),
            seal_after: config.seal_after,
            seed: config.jitter_seed,
            rows: Arc::clone(&rows),
            cache_bytes_max: config.archive_cache_bytes_max,
            patience: config.patience,
        }));
        let inner = Arc::new(Inner {
            store,
            registry,
            metrics: Metrics::default(),
            directory: Directory::new(config.conversations_max),
            in_flight: InFlight::default(),
            recent: Recent::default(),
            rows,
            archive,
            watched: Watched::default(),
            jitter: Jitter::new(config.jitter_seed),
            older: Coalescer::new(join_started),
            newer: Coalescer::new(join_started),
            appends: Arc::new(Semaphore::new(config.appends_max)),
            reads: Arc::new(Semaphore::new(config.reads_max)),
            syncs: Semaphore::new(SYNCS_MAX),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            config,
        });
        let sealer = Arc::clone(&inner).seal_in_background();
        tokio::spawn(inner.stop.clone().run_until_cancelled_owned(sealer));
        Self { inner }
    }

    /// Appends one message. Once begun, it runs to its end even if this future is dropped.
    pub async fn append(&self, conversation: &ConversationId, draft: Draft) -> Result<Appended, AppendError> {
        let started = Instant::now();
        let result = match Arc::clone(&self.inner.appends).try_acquire_owned() {
            Err(_) => Err(AppendError::Overloaded),
            Ok(permit) => {
                let (inner, known) = (Arc::clone(&self.inner), self.inner.directory.get(conversation));
                let append = async move {
                    let result = inner.append(&known, &draft).await;
                    drop(permit);
                    result
                };
                Unstoppable::new(&self.inner, append).await.unwrap_or(Err(AppendError::Unsettled(None)))
            }
        };
        self.count_append(&result);
        self.inner.metrics.append_seconds.observe(started.elapsed().as_secs_f64());
        result
    }

    /// Appends up to 500 messages; one answer for each, in order.
    pub async fn append_batch(
        &self,
        conversation: &ConversationId,
        drafts: Vec<Draft>,
    ) -> Vec<Result<Appended, AppendError>> {
        let started = Instant::now();
        let count = drafts.len();
        let all = |error: AppendError| std::iter::repeat_n(Err(error), count).collect();
        let permits = u32::try_from(count).unwrap_or(u32::MAX);
        let results: Vec<_> = match Arc::clone(&self.inner.appends).try_acquire_many_owned(permits) {
            Err(_) => all(AppendError::Overloaded),
            Ok(permit) => {
                let (inner, known) = (Arc::clone(&self.inner), self.inner.directory.get(conversation));
                let append = async move {
                    let results = inner.append_batch(&known, &drafts).await;
                    drop(permit);
                    results
                };
                Unstoppable::new(&self.inner, append).await.unwrap_or_else(|| all(AppendError::Unsettled(None)))
            }
        };
        results.iter().for_each(|result| self.count_append(result));
        self.inner.metrics.append_seconds.observe(started.elapsed().as_secs_f64());
        results
    }

    fn count_append(&self, result: &Result<Appended, AppendError>) {
        let result = match result {
            Ok(Appended { replayed: false, .. }) => AppendResult::Appended,
            Ok(Appended { replayed: true, .. }) => AppendResult::Replayed,
            Err(AppendError::Conflict(_)) => AppendResult::Conflict,
            Err(AppendError::Overloaded) => AppendResult::Overloaded,
            Err(AppendError::Registry(_)) => AppendResult::Registry,
            Err(AppendError::Unsettled(_)) => AppendResult::Unsettled,
            Err(AppendError::Full) => AppendResult::Full,
            Err(AppendError::Damaged(_)) => AppendResult::Damaged,
        };
        self.inner.metrics.count_append(result);
    }

    /// Admits one read, if fewer than `reads_max` are in flight.
    pub fn admit_read(&self) -> Result<ReadPermit, ReadError> {
        let permit = Arc::clone(&self.inner.reads).try_acquire_owned();
        permit.map(ReadPermit).map_err(|_| ReadError::Overloaded)
    }

    /// Admits one read as soon as another ends, if that is soon enough.
    pub async fn wait_to_read(&self, patience: Duration) -> Result<ReadPermit, ReadError> {
        let permit = tokio::time::timeout(patience, Arc::clone(&self.inner.reads).acquire_owned()).await;
        permit.ok().and_then(Result::ok).map(ReadPermit).ok_or(ReadError::Overloaded)
    }

    /// The page before a seq_no, newest first; without one, the newest page.
    pub async fn older(
        &self,
        conversation: &ConversationId,
        before: Option<SeqNo>,
        limit: usize,
    ) -> Result<Arc<OlderPage>, ReadError> {
        self.older_with(&self.admit_read()?, conversation, before, limit, Contents::Fetched).await
    }

    /// The same, with a say in what is fetched from the archive.
    pub async fn older_with(
        &self,
        permit: &ReadPermit,
        conversation: &ConversationId,
        before: Option<SeqNo>,
        limit: usize,
        contents: Contents,
    ) -> Result<Arc<OlderPage>, ReadError> {
        let inner = &self.inner;
        let key = (conversation.clone(), before, limit, contents);
        self.read(permit, async {
            let known = inner.directory.get(conversation);
            let query = || async { inner.read_older(&known, before, limit, contents).await.map(Arc::new) };
            inner.older.run(key, query).await
        })
        .await
    }

    /// The page after a seq_no, oldest first; 0 starts at the beginning.
    pub async fn newer(
        &self,
        conversation: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Arc<NewerPage>, ReadError> {
        self.newer_with(&self.admit_read()?, conversation, after, limit, Contents::Fetched).await
    }

    /// The same, with a say in what is fetched from the archive.
    pub async fn newer_with(
        &self,
        permit: &ReadPermit,
        conversation: &ConversationId,
        after: u64,
        limit: usize,
        contents: Contents,
    ) -> Result<Arc<NewerPage>, ReadError> {
        let inner = &self.inner;
        let key = (conversation.clone(), after, limit, contents);
        self.read(permit, async {
            let known = inner.directory.get(conversation);
            let query = || async { inner.read_newer(&known, after, limit, contents).await.map(Arc::new) };
            inner.newer.run(key, query).await
        })
        .await
    }

    /// What one seq_no holds.
    pub async fn lookup(&self, conversation: &ConversationId, seq: SeqNo) -> Result<Lookup, ReadError> {
        self.lookup_with(&self.admit_read()?, conversation, seq, Contents::Fetched).await
    }

    /// The same, with a say in what is fetched from the archive.
    pub async fn lookup_with(
        &self,
        permit: &ReadPermit,
        conversation: &ConversationId,
        seq: SeqNo,
        contents: Contents,
    ) -> Result<Lookup, ReadError> {
        let known = self.inner.directory.get(conversation);
        self.read(permit, async { (self.inner.read_one(&known, seq, contents).await, false) }).await
    }

    /// Erases the content of one message, if there is a message. Answers with what was there.
    pub async fn erase(&self, conversation: &ConversationId, seq: SeqNo) -> Result<Lookup, EraseError> {
        let there = self.lookup_with(&self.admit_read()?, conversation, seq, Contents::Refs).await?;
        if let Lookup::Message(_) = there {
            self.erase_range(conversation, SeqRange::single(seq)).await?;
        }
        Ok(there)
    }

    /// Erases the contents of all messages that are there now. Answers with how many were erased by this.
    pub async fn erase_all(&self, conversation: &ConversationId) -> Result<u64, EraseError> {
        let head = self.view(conversation).await?.and_then(|view| SeqNo::new(view.head_seq));
        match head.and_then(|head| SeqRange::new(SeqNo::FIRST, head)) {
            Some(all) => self.erase_range(conversation, all).await,
            None => Ok(0),
        }
    }

    async fn erase_range(&self, conversation: &ConversationId, range: SeqRange) -> Result<u64, EraseError> {
        let _permit = self.admit_read().map_err(|_| EraseError::Overloaded)?;
        // However far it has come, the next one goes on from there.
        let deadline = self.inner.config.append_deadline * ERASE_DEADLINES;
        let erased = tokio::time::timeout(deadline, self.inner.archive.erase(conversation, range)).await;
        let erased = erased.unwrap_or(Err(ArchiveError::Busy))?;
        self.inner.metrics.messages_erased.inc_by(erased);
        Ok(erased)
    }

    /// What runs passes.
    #[must_use]
    pub fn archive(&self) -> &Arc<Archive> {
        &self.inner.archive
    }

    /// The operator's view; `None` for a conversation that was never written to.
    pub async fn view(&self, conversation: &ConversationId) -> Result<Option<View>, ReadError> {
        let known = self.inner.directory.get(conversation);
        self.read(&self.admit_read()?, async { (self.inner.read_view(&known).await, false) }).await
    }

    /// A read within the bounds on number and time. The answer comes with whether it was shared.
    async fn read<T>(
        &self,
        _: &ReadPermit,
        read: impl Future<Output = (Result<T, ReadError>, bool)>,
    ) -> Result<T, ReadError> {
        let started = Instant::now();
        let read = mortal(&self.inner.stop, read);
        let timely = by(started + self.inner.config.read_deadline, read).await;
        let (result, shared) = timely.ok().flatten().ok_or(ReadError::Unavailable(None))?;
        if shared {
            self.inner.metrics.reads_coalesced.inc();
        }
        self.inner.metrics.read_seconds.observe(started.elapsed().as_secs_f64());
        result
    }

    /// The hottest conversations, hottest first.
    pub async fn hot(&self, limit: usize) -> Result<Vec<HotConversation>, RegistryError> {
        let deadline = Instant::now() + self.inner.config.read_deadline;
        let mut hottest = Vec::new();
        for hot in self.inner.registry.hot(limit).await? {
            let known = self.inner.directory.get(&hot.conversation);
            let control = match known.control() {
                Some(control) => Some(control),
                // The hot list is worth more than its detail: a conversation that cannot be read shows as unsalted.
                None => self.inner.read_control(&known, deadline).await.ok().flatten(),
            };
            hottest.push(HotConversation {
                conversation: hot.conversation,
                rate_wcu_per_s: hot.rate_wcu_per_s,
                n: control.as_ref().map_or(1, |c| c.layout.n()),
                max_n: control.as_ref().map_or(1, |c| c.layout.max_n()),
                throttles: hot.throttles,
            });
        }
        Ok(hottest)
    }

    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// Takes no more appends, and waits for those under way.
    pub async fn shut_down(&self) {
        self.inner.appends.close();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
        self.inner.stop.cancel();
    }

    /// Gives up on everything under way: what was on its way may or may not have happened.
    pub fn abort(&self) {
        self.inner.appends.close();
        self.inner.stop.cancel();
    }
}
