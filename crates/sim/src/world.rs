//! Everything that a run consists of, and the record of what clients have seen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use saltern_core::history::{History, Violation};
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::message::{Body, Draft};
use saltern_core::rng::SplitMix64;
use saltern_registry::faulty::FaultyRegistry;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{Config, Conversations, Sabotage};
use saltern_store::Store;
use saltern_store::faulty::Faulty;
use saltern_store::memory::MemoryStore;
use saltern_store::objects::ObjectRoot;
use saltern_store::throttled::Throttled;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::plan::Plan;
use crate::{Broken, Failure, Report};

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) memory: MemoryStore,
    pub(crate) limits: Option<Throttled>,
    pub(crate) store: Arc<Faulty>,
    pub(crate) objects: Arc<ObjectRoot>,
    pub(crate) registry_state: LocalRegistry,
    pub(crate) registry: Arc<FaultyRegistry>,
    kills: watch::Sender<u64>,
    sabotage: Option<Sabotage>,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    servers: Vec<Conversations>,
    starts: u64,
    histories: Vec<History>,
    trace: Vec<String>,
    strikes: BTreeMap<String, u64>,
    broken: Option<Broken>,
    spreads: Vec<u16>,
    widened: bool,
    collided: bool,
    /// What a tailing client has passed, and seen, per conversation.
    tails: BTreeMap<usize, (u64, Vec<String>)>,
}

impl World {
    pub(crate) fn new(plan: Plan, sabotage: Option<Sabotage>) -> Self {
        let memory = MemoryStore::new(plan.capabilities);
        let limits = plan.limits.map(|limits| Throttled::new(Arc::new(memory.clone()), limits));
        let limited: Arc<dyn Store> = match &limits {
            Some(limits) => Arc::new(limits.clone()),
            None => Arc::new(memory.clone()),
        };
        let store = Arc::new(Faulty::new(limited, plan.seed ^ 0x5702E, plan.store));
        let registry_state = LocalRegistry::new(plan.remembered);
        let registry =
            Arc::new(FaultyRegistry::new(Arc::new(registry_state.clone()), plan.seed ^ 0x2E6, plan.registry));
        let world = Self {
            memory,
            limits,
            store,
            objects: Arc::new(ObjectRoot::in_memory()),
            registry_state,
            registry,
            kills: watch::Sender::new(0),
            sabotage,
            began: Instant::now(),
            state: Mutex::default(),
            plan,
        };
        world.state().histories.resize_with(world.plan.conversations, History::default);
        for server in 0..world.plan.servers {
            world.start(server);
        }
        world
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Randomness of its own for each actor, so that one more draw here does not change everything there.
    pub(crate) fn rng(&self, actor: u64) -> SplitMix64 {
        SplitMix64::new(SplitMix64::new(self.plan.seed ^ (actor << 32)).next_u64())
    }

    fn config(&self, starts: u64) -> Config {
        let began = self.began;
        let clock = move || 1_700_000_000_000 + u64::try_from(began.elapsed().as_millis()).unwrap_or(0);
        Config {
            heat: self.plan.heat.clone(),
            append_deadline: Duration::from_secs(3),
            read_deadline: Duration::from_secs(2),
            seal_after: Duration::from_millis(800),
            conversations_max: self.plan.remembered,
            sabotage: self.sabotage,
            objects: Some(self.objects.clone()),
            ..Config::new(Arc::new(clock), self.plan.seed ^ starts)
        }
    }

    /// Starts a server, with nothing in its memory.
    pub(crate) fn start(&self, server: usize) {
        let mut state = self.state();
        state.starts += 1;
        let config = self.config(state.starts);
        let conversations = Conversations::new(self.store.clone(), self.registry.clone(), config);
        match state.servers.get_mut(server) {
            Some(slot) => *slot = conversations,
            None => state.servers.push(conversations),
        }
    }

    pub(crate) fn server(&self, server: usize) -> Conversations {
        self.state().servers[server].clone()
    }

    /// Kills a server at whatever it is waiting for.
    pub(crate) fn kill(&self, server: usize) {
        self.server(server).abort();
        self.kills.send_modify(|kills| *kills += 1);
    }

    /// Resolves when a server is killed.
    pub(crate) fn killed(&self) -> impl Future<Output = ()> + use<> {
        let mut kills = self.kills.subscribe();
        async move {
            let _ = kills.changed().await;
        }
    }

    /// How long a server stays dead. What it had sent to a shared store may still arrive when its successor is up; an
    /// exclusive store is part of the process, and has nothing on its way after its death.
    pub(crate) fn dead_for(&self) -> Duration {
        let faults = &self.plan.store;
        if self.plan.capabilities.exclusive { faults.late_max + 3 * faults.slow_max } else { Duration::ZERO }
    }

    pub(crate) fn conversation(&self, index: usize) -> ConversationId {
        // Names that look like each other's salted keys.
        id(if index == 0 { "a" } else { "a#1" }, ConversationId::new)
    }

    pub(crate) fn history<T>(&self, conversation: usize, ask: impl FnOnce(&mut History) -> T) -> T {
        ask(&mut self.state().histories[conversation])
    }

    /// Submits what a client has seen to the judge.
    pub(crate) fn judge(&self, conversation: usize, see: impl FnOnce(&mut History) -> Result<(), Violation>) {
        if let Err(violation) = self.history(conversation, see) {
            self.fail(Broken::Promise { conversation, violation });
        }
    }

    pub(crate) fn fail(&self, broken: Broken) {
        self.note(format!("BROKEN {broken}"));
        self.state().broken.get_or_insert(broken);
    }

    pub(crate) fn broken(&self) -> Option<Broken> {
        self.state().broken.clone()
    }

    pub(crate) fn note(&self, line: String) {
        let at = self.began.elapsed().as_millis();
        self.state().trace.push(format!("{at:>6} {line}"));
    }

    /// Counts a fault that the run itself has caused.
    pub(crate) fn strike(&self, kind: &str) {
        *self.state().strikes.entry(kind.to_owned()).or_default() += 1;
    }

    pub(crate) fn note_spreads(&self, spreads: impl IntoIterator<Item = u16>) {
        self.state().spreads.extend(spreads);
    }

    /// Throttles have widened a spread, and whether two of its salts had met in one physical partition.
    pub(crate) fn note_widened(&self, collided: bool) {
        let mut state = self.state();
        state.widened = true;
        state.collided |= collided;
    }

    pub(crate) fn tailed(&self, conversation: usize, after: u64, seen: Vec<String>) {
        self.state().tails.insert(conversation, (after, seen));
    }

    pub(crate) fn tail(&self, conversation: usize) -> (u64, Vec<String>) {
        self.state().tails.get(&conversation).cloned().unwrap_or_default()
    }

    pub(crate) fn over(&self) -> bool {
        self.began.elapsed() >= self.plan.duration || self.broken().is_some()
    }

    pub(crate) fn report(&self, seed: u64) -> Result<Report, Box<Failure>> {
        let mut state = self.state();
        let trace = std::mem::take(&mut state.trace);
        if let Some(broken) = state.broken.clone() {
            return Err(Box::new(Failure { seed, broken, trace }));
        }
        let mut faults = std::mem::take(&mut state.strikes);
        faults.extend(self.store.faults().into_iter().map(|(kind, count)| (format!("store {kind:?}"), count)));
        let loads = self.limits.as_ref().map(Throttled::loads).unwrap_or_default();
        faults.insert("full partition".into(), loads.iter().map(|load| load.throttled_writes).sum());
        faults.insert("registry call".into(), self.registry.faults());
        Ok(Report {
            seed,
            trace,
            acknowledged: state.histories.iter().map(|h| h.acknowledged().len()).sum(),
            store_calls: self.store.calls(),
            store_faults: self.store.faulty_calls(),
            faults,
            n_max: state.spreads.iter().copied().max().unwrap_or(1),
            widened: state.widened,
            collided: state.collided,
            n_shrunk: state.spreads.windows(2).any(|w| w[0] > w[1]),
        })
    }
}

fn id<T, E: std::fmt::Debug>(text: &str, new: impl FnOnce(&str) -> Result<T, E>) -> T {
    new(text).unwrap_or_else(|error| panic!("{text:?} is not an id: {error:?}"))
}

/// The one true body of a message_id.
pub(crate) fn draft(message: &str) -> Draft {
    with_content(message, format!("body of {message}"))
}

/// The same message_id with another body.
pub(crate) fn impostor(message: &str) -> Draft {
    with_content(message, "something else".into())
}

fn with_content(message: &str, content: String) -> Draft {
    let body = Body { sender_id: id("s", ParticipantId::new), receiver_id: None, content, timestamp: None };
    Draft::new(id(message, MessageId::new), body).unwrap_or_else(|error| panic!("not a draft: {error}"))
}
