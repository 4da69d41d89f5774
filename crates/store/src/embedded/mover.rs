//! Moves a layer of the log into the engine's tables. Each layer has a thread of its own, one after the other.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use super::engine::Engine;
use super::error::EngineFailure;
use super::fresh::{Fresh, Layer};
use super::log::LogUpkeep;
use super::metrics::EmbeddedMetrics;
use super::physical::Space;

#[derive(Clone)]
pub(super) struct Mover {
    pub(super) engine: Engine,
    pub(super) fresh: Arc<Fresh>,
    pub(super) log: LogUpkeep,
    pub(super) failure: Arc<watch::Sender<Option<EngineFailure>>>,
    pub(super) metrics: EmbeddedMetrics,
}

impl Mover {
    /// A crash in between leaves the segments, and with them the same layer for the next start to move again.
    pub(super) fn run(&self, layer: &Layer, last_segment: u64) -> Result<(), EngineFailure> {
        let began = Instant::now();
        let moved = self.take_in(layer, last_segment);
        match &moved {
            Ok(()) => self.metrics.moved(began.elapsed()),
            Err(failure) => {
                tracing::error!(error = failure as &dyn std::error::Error, "store has failed");
                self.failure.send_replace(Some(failure.clone()));
            }
        }
        moved
    }

    fn take_in(&self, layer: &Layer, last_segment: u64) -> Result<(), EngineFailure> {
        self.engine.take_in(Space::Rows, self.engine.packed(layer))?;
        self.engine.take_in(Space::Claims, layer.claims_in_order().map(Ok))?;
        for space in [Space::Campaigns, Space::Due] {
            self.engine.take_in(space, layer.others_in_order(space).map(Ok))?;
        }
        // Visible in tables by now, and for good.
        self.fresh.moved();
        self.log.retire_through(last_segment).map_err(EngineFailure::log)
    }
}
