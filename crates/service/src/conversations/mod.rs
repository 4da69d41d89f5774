//! Conversations: append logs with dense order, idempotent appends and stable pages.

mod api;
mod append;
mod coalesce;
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

pub use api::{AppendError, Appended, Config, HotConversation, Lookup, ReadError, View};
pub use metrics::Metrics;
pub use sabotage::Sabotage;
use saltern_core::ids::ConversationId;
use saltern_core::message::Draft;
use saltern_core::page::{NewerPage, OlderPage};
use saltern_core::seq::SeqNo;
use saltern_registry::Registry;
pub use saltern_registry::RegistryError;
use saltern_store::Store;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::coalesce::Coalescer;
use self::in_flight::InFlight;
use self::known::Directory;
use self::metrics::AppendResult;
use self::recent::Recent;
use self::rows::RowCache;
use self::sealer::Watched;
use self::unstoppable::Unstoppable;
use crate::backoff::Jitter;

/// Conversations that may be synced at once, so that a registry failover does not become a flood of reads.
const SYNCS_MAX: usize = 64;

type OlderKey = (ConversationId, Option<SeqNo>, usize);
type NewerKey = (ConversationId, u64, usize);

/// A cheap handle on the conversation service.
#[derive(Clone)]
pub struct Conversations {
    inner: Arc<Inner>,
}

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
    rows: RowCache,
    watched: Watched,
    jitter: Jitter,
    older: Coalescer<OlderKey, Result<Arc<OlderPage>, ReadError>>,
    newer: Coalescer<NewerKey, Result<Arc<NewerPage>, ReadError>>,
    appends: Arc<Semaphore>,
    reads: Semaphore,
    syncs: Semaphore,
    /// Work that outlives the request that began it.
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Inner {
    /// Runs in the background, to its end.
    fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(mortal(self.stop.clone(), work));
    }
}

/// Work that ends at its next await when the service is aborted, as the simulation's crashes need it. Elsewhere an abort
/// only ends retries: what the store has been asked, it answers.
#[cfg(feature = "sabotage")]
async fn mortal<T>(stop: CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    stop.run_until_cancelled(work).await
}

#[cfg(not(feature = "sabotage"))]
async fn mortal<T>(_stop: CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    Some(work.await)
}

impl Conversations {
    /// Starts the service on the present runtime.
    pub fn new(store: Arc<dyn Store>, registry: Arc<dyn Registry>, config: Config) -> Self {
        let join_started = config.sabotaged(Sabotage::JoinStartedReads);
        let inner = Arc::new(Inner {
            store,
            registry,
            metrics: Metrics::default(),
            directory: Directory::new(config.conversations_max),
            in_flight: InFlight::default(),
            recent: Recent::default(),
            rows: RowCache::new(config.cache_bytes_max),
            watched: Watched::default(),
            jitter: Jitter::new(config.jitter_seed),
            older: Coalescer::new(join_started),
            newer: Coalescer::new(join_started),
            appends: Arc::new(Semaphore::new(config.appends_max)),
            reads: Semaphore::new(config.reads_max),
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

    /// The page before a seq_no, newest first; without one, the newest page.
    pub async fn older(
        &self,
        conversation: &ConversationId,
        before: Option<SeqNo>,
        limit: usize,
    ) -> Result<Arc<OlderPage>, ReadError> {
        let inner = &self.inner;
        let key = (conversation.clone(), before, limit);
        self.read(async {
            let known = inner.directory.get(conversation);
            let query = || async { inner.read_older(&known, before, limit).await.map(Arc::new) };
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
        let inner = &self.inner;
        let key = (conversation.clone(), after, limit);
        self.read(async {
            let known = inner.directory.get(conversation);
            let query = || async { inner.read_newer(&known, after, limit).await.map(Arc::new) };
            inner.newer.run(key, query).await
        })
        .await
    }

    /// What one seq_no holds.
    pub async fn lookup(&self, conversation: &ConversationId, seq: SeqNo) -> Result<Lookup, ReadError> {
        let known = self.inner.directory.get(conversation);
        self.read(async { (self.inner.read_one(&known, seq).await, false) }).await
    }

    /// The operator's view; `None` for a conversation that was never written to.
    pub async fn view(&self, conversation: &ConversationId) -> Result<Option<View>, ReadError> {
        let known = self.inner.directory.get(conversation);
        self.read(async { (self.inner.read_view(&known).await, false) }).await
    }

    /// A read within the bounds on number and time. The answer comes with whether it was shared.
    async fn read<T>(&self, read: impl Future<Output = (Result<T, ReadError>, bool)>) -> Result<T, ReadError> {
        let started = Instant::now();
        let _permit = self.inner.reads.try_acquire().map_err(|_| ReadError::Overloaded)?;
        let read = mortal(self.inner.stop.clone(), read);
        let timely = tokio::time::timeout_at(started + self.inner.config.read_deadline, read).await;
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
