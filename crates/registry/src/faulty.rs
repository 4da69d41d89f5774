//! Faults from a seed, over any registry.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saltern_core::heat::Sample;
use saltern_core::ids::ConversationId;
use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;

use crate::port::{Hot, Registry, RegistryError, ThrottledRow, TicketRequest, Tickets};

/// How often which fault strikes, per thousand calls. The default is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegistryFaultPlan {
    /// The call fails and has no effect.
    pub down_per_mille: u32,
    /// The call has its effect, but its answer is lost.
    pub unknown_per_mille: u32,
    /// The call waits, before its effect, after it, or both; up to `slow_max` each time.
    pub slow_per_mille: u32,
    pub slow_max: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InjectedFault {
    #[error("injected: the registry is down")]
    Down,
    #[error("injected: the answer was lost")]
    AnswerLost,
}

/// Given the same seed, plan and order of calls, the same calls fail.
pub struct FaultyRegistry {
    inner: Arc<dyn Registry>,
    dice: Mutex<Dice>,
    down: AtomicBool,
    calls: AtomicU64,
    faults: AtomicU64,
}

struct Dice {
    rng: SplitMix64,
    plan: RegistryFaultPlan,
}

/// What is in store for one call.
struct Fate {
    down: bool,
    unknown: bool,
    wait_before: Option<Duration>,
    wait_after: Option<Duration>,
}

impl Dice {
    /// Rolls for every fault, whether or not an earlier one has struck: one probability does not move the others.
    fn roll(&mut self) -> Fate {
        Fate {
            down: self.rng.chance_per_mille(self.plan.down_per_mille),
            unknown: self.rng.chance_per_mille(self.plan.unknown_per_mille),
            wait_before: self.wait(),
            wait_after: self.wait(),
        }
    }

    fn wait(&mut self) -> Option<Duration> {
        let slow = self.rng.chance_per_mille(self.plan.slow_per_mille);
        let max_us = u64::try_from(self.plan.slow_max.as_micros()).unwrap_or(u64::MAX);
        let wait_us = self.rng.below(max_us.saturating_add(1));
        slow.then_some(Duration::from_micros(wait_us))
    }
}

impl FaultyRegistry {
    #[must_use]
    pub fn new(inner: Arc<dyn Registry>, seed: u64, plan: RegistryFaultPlan) -> Self {
        Self {
            inner,
            dice: Mutex::new(Dice { rng: SplitMix64::new(seed), plan }),
            down: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            faults: AtomicU64::new(0),
        }
    }

    /// Changes what strikes from the next call on.
    pub fn set_plan(&self, plan: RegistryFaultPlan) {
        self.dice().plan = plan;
    }

    /// While down, every call fails without effect, whatever the plan says.
    pub fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    /// How many calls came in.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many of them were answered with an error made up here.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    fn dice(&self) -> MutexGuard<'_, Dice> {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, fault: InjectedFault) -> RegistryError {
        self.faults.fetch_add(1, Ordering::Relaxed);
        RegistryError(Arc::new(fault))
    }

    /// A call is a future, so it has no effect until it is awaited.
    async fn pass<T>(&self, call: impl Future<Output = Result<T, RegistryError>>) -> Result<T, RegistryError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let fate = self.dice().roll();
        wait(fate.wait_before).await;
        if fate.down || self.down.load(Ordering::SeqCst) {
            return Err(self.fail(InjectedFault::Down));
        }
        let answer = call.await?;
        wait(fate.wait_after).await;
        if fate.unknown {
            return Err(self.fail(InjectedFault::AnswerLost));
        }
        Ok(answer)
    }
}

async fn wait(time: Option<Duration>) {
    if let Some(time) = time {
        tokio::time::sleep(time).await;
    }
}

#[async_trait]
impl Registry for FaultyRegistry {
    async fn tickets(&self, conversation: &ConversationId, request: TicketRequest) -> Result<Tickets, RegistryError> {
        self.pass(self.inner.tickets(conversation, request)).await
    }

    async fn install(&self, conversation: &ConversationId, next: SeqNo, horizon: SeqNo) -> Result<(), RegistryError> {
        self.pass(self.inner.install(conversation, next, horizon)).await
    }

    async fn raise(&self, conversation: &ConversationId, horizon: SeqNo) -> Result<(), RegistryError> {
        self.pass(self.inner.raise(conversation, horizon)).await
    }

    async fn sample(&self, conversation: &ConversationId, epoch: SeqNo) -> Result<Sample, RegistryError> {
        self.pass(self.inner.sample(conversation, epoch)).await
    }

    async fn throttled(&self, conversation: &ConversationId, row: ThrottledRow) -> Result<(), RegistryError> {
        self.pass(self.inner.throttled(conversation, row)).await
    }

    async fn rate_wcu_per_s(&self, conversation: &ConversationId) -> Result<f64, RegistryError> {
        self.pass(self.inner.rate_wcu_per_s(conversation)).await
    }

    async fn hot(&self, limit: usize) -> Result<Vec<Hot>, RegistryError> {
        self.pass(self.inner.hot(limit)).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::conformance;
    use crate::local::LocalRegistry;

    const REQUEST: TicketRequest = TicketRequest { count: 1, wcu: 1 };

    fn name() -> ConversationId {
        ConversationId::new("conv").unwrap()
    }

    fn faulty(seed: u64, plan: RegistryFaultPlan) -> FaultyRegistry {
        FaultyRegistry::new(Arc::new(LocalRegistry::new(100)), seed, plan)
    }

    /// A registry that knows the conversation, whose faults begin afterwards.
    async fn known(seed: u64, plan: RegistryFaultPlan) -> FaultyRegistry {
        let registry = faulty(seed, RegistryFaultPlan::default());
        registry.install(&name(), SeqNo::FIRST, SeqNo::clamped(10_000)).await.unwrap();
        registry.set_plan(plan);
        registry
    }

    async fn next(registry: &FaultyRegistry) -> u64 {
        registry.set_plan(RegistryFaultPlan::default());
        match registry.tickets(&name(), REQUEST).await.unwrap() {
            Tickets::Issued { first, .. } => first.get(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn conforms_without_faults() {
        conformance::all(Arc::new(faulty(1, RegistryFaultPlan::default()))).await;
    }

    #[tokio::test]
    async fn down_has_no_effect_and_a_lost_answer_has() {
        let registry = known(1, RegistryFaultPlan { down_per_mille: 1_000, ..Default::default() }).await;
        assert!(registry.tickets(&name(), REQUEST).await.is_err());
        assert_eq!(next(&registry).await, 1);
        registry.set_plan(RegistryFaultPlan { unknown_per_mille: 1_000, ..Default::default() });
        assert!(registry.tickets(&name(), REQUEST).await.is_err());
        assert_eq!(next(&registry).await, 3);
        registry.set_down(true);
        assert!(registry.tickets(&name(), REQUEST).await.is_err());
        registry.set_down(false);
        assert_eq!(next(&registry).await, 4);
        assert_eq!((registry.calls(), registry.faults()), (7, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn slow_calls_take_their_time_and_no_more() {
        let slow_max = Duration::from_millis(50);
        let registry = known(1, RegistryFaultPlan { slow_per_mille: 1_000, slow_max, ..Default::default() }).await;
        let began = Instant::now();
        for _ in 0..100 {
            registry.tickets(&name(), REQUEST).await.unwrap();
        }
        let took = began.elapsed();
        assert!(took > slow_max * 80 && took < slow_max * 130, "{took:?}");
        assert_eq!(registry.faults(), 0);
    }

    #[tokio::test]
    async fn the_same_seed_has_the_same_faults() {
        let plan = RegistryFaultPlan { down_per_mille: 200, unknown_per_mille: 200, ..Default::default() };
        let mut runs = Vec::new();
        for seed in [7, 7, 8] {
            let registry = known(seed, plan).await;
            let mut run = Vec::new();
            for _ in 0..100 {
                run.push(registry.tickets(&name(), REQUEST).await.ok());
            }
            assert!((15..60).contains(&registry.faults()));
            runs.push(run);
        }
        assert_eq!(runs[0], runs[1]);
        assert_ne!(runs[0], runs[2]);
    }
}
