//! The service over an embedded store with partition limits, and the load on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use saltern_core::heat::HeatPolicy;
use saltern_core::ids::ConversationId;
use saltern_core::key::PartitionKey;
use saltern_core::layout::Salt;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{Config, Conversations};
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore};
use saltern_store::throttled::{PartitionLimits, Throttled};
use tokio::time::interval;

use super::gauge::{Gauge, Reading};
use super::load::{Load, Tally};
use super::plan::{Plan, Step};
use super::report::StepReport;
use super::view::{Frame, SaltLoad, View};
use crate::args::RampArgs;
use crate::histogram::Histogram;
use crate::offer::offer;
use crate::scratch::Scratch;
use crate::service::now_ms;

const CONVERSATION: &str = "conv_abc123";
const LOOK: Duration = Duration::from_millis(200);

pub(super) struct Stage {
    service: Conversations,
    conversation: ConversationId,
    store: Arc<EmbeddedStore>,
    limits: Throttled,
    load: Load,
    gauge: Gauge,
    began: Instant,
}

/// What is left when all answers are in.
pub(super) struct Outcome {
    pub(super) tally: Tally,
    pub(super) conversation: ConversationId,
    pub(super) store: Arc<EmbeddedStore>,
}

impl Stage {
    pub(super) fn open(scratch: &Scratch, args: &RampArgs) -> Result<Self> {
        let store = Arc::new(EmbeddedStore::open(&scratch.path().join("data"), EmbeddedOptions::default())?);
        let limits = PartitionLimits {
            burst: Duration::from_secs(args.burst.into()),
            ..PartitionLimits::dynamodb(args.physical_partitions)
        };
        let limits = Throttled::new(store.clone(), limits);
        let heat = HeatPolicy::default();
        let (n_min, n_max) = args.fixed_n.map_or((heat.n_min, heat.n_max), |n| (n, n));
        let config = Config { heat: HeatPolicy { n_min, n_max, ..heat }, ..Config::new(Arc::new(now_ms), now_ms()) };
        let service = Conversations::new(Arc::new(limits.clone()), Arc::new(LocalRegistry::new(1)), config);
        let conversation = ConversationId::new(CONVERSATION)?;
        let load = Load::new(service.clone(), conversation.clone())?;
        Ok(Self { service, conversation, store, limits, load, gauge: Gauge::default(), began: Instant::now() })
    }

    /// Plays one step and says what was measured of it.
    pub(super) async fn play(&mut self, plan: &Plan, index: usize, view: &mut View) -> StepReport {
        let step = plan.steps[index];
        let mut measured = Measured::begin(self.read(), plan.settles);
        let Self { load, gauge, .. } = self;
        let load = &*load;
        let offering = offer(step.offered_wcu_per_s, plan.step, || load.send());
        tokio::pin!(offering);
        let mut looks = interval(LOOK);
        loop {
            tokio::select! {
                () = &mut offering => break,
                _ = looks.tick() => {}
            }
            gauge.read(read(load, &self.limits));
            measured.look(gauge, load);
            let n = n_of(&self.service).await;
            view.show(&frame(&self.limits, &self.conversation, gauge, load, n), index, self.began.elapsed());
        }
        measured.report(step, read(load, &self.limits), load, n_of(&self.service).await)
    }

    fn read(&self) -> Reading {
        read(&self.load, &self.limits)
    }

    /// Waits for all answers and ends the service.
    pub(super) async fn settle(self) -> Outcome {
        let tally = self.load.settle().await;
        self.service.shut_down().await;
        Outcome { tally, conversation: self.conversation, store: self.store }
    }
}

fn read(load: &Load, limits: &Throttled) -> Reading {
    Reading { at: Instant::now(), acked: load.tally().acked.len(), partitions: limits.loads() }
}

/// How many salts the conversation is spread over now.
async fn n_of(service: &Conversations) -> u16 {
    let hot = service.hot(1).await.unwrap_or_default();
    hot.first().map_or(1, |hot| hot.n)
}

fn frame(limits: &Throttled, conversation: &ConversationId, gauge: &Gauge, load: &Load, n: u16) -> Frame {
    let rates = gauge.wcu_per_s();
    let salts = if n == 1 { vec![Salt::Unsalted] } else { (0..n).map(Salt::Of).collect() };
    let salt_load = |salt| {
        let partition = PartitionKey::messages(conversation, salt);
        let physical = limits.physical(&partition);
        SaltLoad { partition, physical, wcu_per_s: rates.get(physical).copied().unwrap_or(0.0) }
    };
    Frame {
        n,
        acked_per_s: gauge.acked_per_s(),
        busiest_wcu_per_s: busiest(&rates),
        throttled: gauge.last().map_or(0, Reading::throttled),
        p99_ms: load.tally().latency.percentile_ms(0.99),
        salts: salts.into_iter().map(salt_load).collect(),
    }
}

fn busiest(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(0.0, f64::max)
}

/// What is measured of a step: everything after it has settled, and how much was throttled before.
struct Measured {
    began: Reading,
    settled_at: Instant,
    settled: Option<Reading>,
    busiest_wcu_per_s: f64,
}

impl Measured {
    fn begin(began: Reading, settles: Duration) -> Self {
        Self { settled_at: began.at + settles, began, settled: None, busiest_wcu_per_s: 0.0 }
    }

    fn look(&mut self, gauge: &Gauge, load: &Load) {
        if self.settled.is_none()
            && let Some(now) = gauge.last().filter(|now| now.at >= self.settled_at)
        {
            self.settled = Some(now.clone());
            load.tally().latency = Histogram::default();
        }
        // Only seconds that lie in the settled time as a whole.
        if let (Some(settled), Some(since)) = (&self.settled, gauge.since())
            && since >= settled.at
        {
            self.busiest_wcu_per_s = self.busiest_wcu_per_s.max(busiest(&gauge.wcu_per_s()));
        }
    }

    fn report(self, step: Step, end: Reading, load: &Load, n: u16) -> StepReport {
        let settled = self.settled.unwrap_or_else(|| self.began.clone());
        let seconds = (end.at - settled.at).as_secs_f64();
        StepReport {
            offered_wcu_per_s: step.offered_wcu_per_s,
            n,
            acked_per_s: (end.acked - settled.acked) as f64 / seconds,
            throttled: end.throttled() - settled.throttled(),
            max_partition_wcu_per_s: self.busiest_wcu_per_s,
            p99_ms: load.tally().latency.percentile_ms(0.99),
            throttled_while_settling: settled.throttled() - self.began.throttled(),
            documented: step.documented,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use saltern_store::Capabilities;
    use saltern_store::memory::MemoryStore;

    use super::*;
    use crate::config::PHYSICAL_PARTITIONS;

    /// The story is to be seen undisturbed: with the default partitions no two salts meet, at the documents' n and beyond.
    #[test]
    fn the_salts_of_the_ramp_live_apart() {
        let memory = Arc::new(MemoryStore::new(Capabilities { atomic_puts: false, exclusive: false }));
        let partitions = std::num::NonZeroU32::new(PHYSICAL_PARTITIONS).unwrap();
        let limits = Throttled::new(memory, PartitionLimits::dynamodb(partitions));
        let conversation = ConversationId::new(CONVERSATION).unwrap();
        let place = |salt| limits.physical(&PartitionKey::messages(&conversation, Salt::Of(salt)));
        assert_eq!((0..8).map(place).collect::<HashSet<_>>().len(), 8);
    }
}
