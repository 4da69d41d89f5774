//! A seeded simulation of the conversation service: several servers over one store and one registry, all of them
//! faulty, with clients that retry, disconnect and read, on virtual time and one thread.
//!
//! One seed is one run: the same seed gives the same trace, so a failure can be replayed
//! (`SALTERN_SIM_SEED=… cargo test -p saltern-sim --test replay -- --nocapture`).

mod archivist;
mod chaos;
mod clients;
mod finale;
mod plan;
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;

use saltern_core::history::Violation;
use saltern_service::conversations::Sabotage;

use crate::plan::Plan;
use crate::world::World;

/// What a run has to say.
#[derive(Debug)]
pub struct Report {
    pub seed: u64,
    /// What happened, line by line, with virtual times.
    pub trace: Vec<String>,
    pub acknowledged: usize,
    pub store_calls: u64,
    pub store_faults: u64,
    /// How often each kind of fault struck: of the store, the registry and the servers.
    pub faults: BTreeMap<String, u64>,
    /// The widest and the final spread of any conversation.
    pub n_max: u16,
    pub n_shrunk: bool,
    /// Throttles widened a spread.
    pub widened: bool,
    /// Two of its salts lived in one physical partition.
    pub collided: bool,
}

/// A run that broke a promise.
#[derive(Debug, thiserror::Error)]
#[error(
    "seed {seed}: {broken}\nreplay: SALTERN_SIM_SEED={seed} cargo test -p saltern-sim --test replay -- --nocapture"
)]
pub struct Failure {
    pub seed: u64,
    #[source]
    pub broken: Broken,
    pub trace: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("conversation {conversation}: {violation}")]
    Promise { conversation: usize, violation: Violation },
    #[error("a read said that data was lost or damaged: {0}")]
    ReadSaysLost(String),
    #[error("{0} was answered with a conflict, though its body never changed")]
    FalseConflict(String),
    #[error("{0} was accepted a second time with another body")]
    AcceptedConflict(String),
    #[error("{0} shows another body than the one acknowledged")]
    WrongBody(String),
    #[error("after all faults had ended: {0}")]
    NeverHealed(String),
    #[error("stored rows: {0}")]
    Rows(String),
}

/// Runs one seed to its end.
pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<Report, Box<Failure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.unwrap_or_else(|error| panic!("no runtime for the simulation: {error}"));
    runtime.block_on(async {
        let world = Arc::new(World::new(Plan::new(seed), sabotage));
        clients::play(&world).await;
        if world.broken().is_none() {
            finale::check(&world).await;
        }
        world.report(seed)
    })
}
