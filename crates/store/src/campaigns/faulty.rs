//! Faults from a seed, over any campaigns table.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use saltern_core::campaigns::{Boost, BoostKey, DeadLetter, LetterNo, Look};
use saltern_core::ids::TenantId;
use saltern_core::rng::SplitMix64;

use super::port::{BoostPut, CampaignStore, MarketPut, MarketRecord};
use crate::faulty::{Fault, ReadFaults, WriteFaults, nothing_happened, unknown};
use crate::port::{Consistency, StoreError};

/// How often each fault strikes, in parts per thousand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CampaignFaultPlan {
    /// Of the puts.
    pub writes: WriteFaults,
    /// Of the reads as a whole; what concerns pages and lag does not apply.
    pub reads: ReadFaults,
    /// Of the keys of a batch: left out of its answer.
    pub unread: u32,
    /// The longest that a late write is on its way.
    pub late_max: Duration,
}

/// Injects faults by a plan and a seed. Clones are one decorator.
#[derive(Clone)]
pub struct FaultyCampaigns {
    inner: Arc<dyn CampaignStore>,
    dice: Arc<Mutex<(SplitMix64, CampaignFaultPlan)>>,
}

enum Write {
    Boost(BoostKey, Boost),
    Market(TenantId, MarketRecord),
    AddLetter(DeadLetter),
    RemoveLetter(LetterNo),
}

enum Written {
    Boost(BoostPut),
    Market(MarketPut),
    Done,
}

impl FaultyCampaigns {
    #[must_use]
    pub fn new(inner: Arc<dyn CampaignStore>, seed: u64, plan: CampaignFaultPlan) -> Self {
        Self { inner, dice: Arc::new(Mutex::new((SplitMix64::new(seed), plan))) }
    }

    /// Calls that begin from now on meet this plan; an empty one heals everything.
    pub fn set_plan(&self, plan: CampaignFaultPlan) {
        self.roll(|_, present| *present = plan);
    }

    fn roll<T>(&self, draw: impl FnOnce(&mut SplitMix64, &mut CampaignFaultPlan) -> T) -> T {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let (rng, plan) = &mut *dice;
        draw(rng, plan)
    }

    async fn write(&self, write: Write) -> Result<Written, StoreError> {
        let (fault, late) = self.roll(|rng, plan| {
            let late_ms = u64::try_from(plan.late_max.as_millis()).unwrap_or(u64::MAX);
            (plan.writes.at(rng.below(1_000)), Duration::from_millis(rng.below(late_ms.saturating_add(1))))
        });
        match fault {
            None => self.apply(write).await,
            Some(Fault::Lost) => Err(unknown(Fault::Lost)),
            Some(Fault::Unknown) => self.apply(write).await.and(Err(unknown(Fault::Unknown))),
            Some(Fault::Late) => {
                let faulty = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(late).await;
                    // Whatever comes of it, nobody waits for it any more.
                    let _ = faulty.apply(write).await;
                });
                Err(unknown(Fault::Late))
            }
            Some(fault) => Err(nothing_happened(fault)),
        }
    }

    async fn apply(&self, write: Write) -> Result<Written, StoreError> {
        Ok(match write {
            Write::Boost(key, boost) => Written::Boost(self.inner.put_boost(&key, &boost).await?),
            Write::Market(tenant, record) => Written::Market(self.inner.put_market(&tenant, &record).await?),
            Write::AddLetter(letter) => {
                self.inner.add_dead_letter(&letter).await?;
                Written::Done
            }
            Write::RemoveLetter(number) => {
                self.inner.remove_dead_letter(number).await?;
                Written::Done
            }
        })
    }

    fn before_read(&self) -> Result<(), StoreError> {
        let fault = self.roll(|rng, plan| plan.reads.at(rng.below(1_000)));
        fault.map_or(Ok(()), |fault| Err(nothing_happened(fault)))
    }
}

#[async_trait]
impl CampaignStore for FaultyCampaigns {
    async fn put_boost(&self, key: &BoostKey, boost: &Boost) -> Result<BoostPut, StoreError> {
        match self.write(Write::Boost(key.clone(), boost.clone())).await? {
            Written::Boost(put) => Ok(put),
            _ => Err(unknown(Fault::Unknown)),
        }
    }

    async fn boosts(&self, keys: &[BoostKey], consistency: Consistency) -> Result<Vec<Look>, StoreError> {
        self.before_read()?;
        let looks = self.inner.boosts(keys, consistency).await?;
        let left_out =
            |look| self.roll(|rng, plan| if rng.chance_per_mille(plan.unread) { Look::Unread } else { look });
        Ok(looks.into_iter().map(left_out).collect())
    }

    async fn put_market(&self, tenant: &TenantId, record: &MarketRecord) -> Result<MarketPut, StoreError> {
        match self.write(Write::Market(tenant.clone(), record.clone())).await? {
            Written::Market(put) => Ok(put),
            _ => Err(unknown(Fault::Unknown)),
        }
    }

    async fn market(&self, tenant: &TenantId) -> Result<Option<MarketRecord>, StoreError> {
        self.before_read()?;
        self.inner.market(tenant).await
    }

    async fn add_dead_letter(&self, letter: &DeadLetter) -> Result<(), StoreError> {
        self.write(Write::AddLetter(letter.clone())).await.map(drop)
    }

    async fn dead_letters(
        &self,
        before: Option<LetterNo>,
        limit: usize,
    ) -> Result<Vec<(LetterNo, DeadLetter)>, StoreError> {
        self.before_read()?;
        self.inner.dead_letters(before, limit).await
    }

    async fn dead_letter(&self, number: LetterNo) -> Result<Option<DeadLetter>, StoreError> {
        self.before_read()?;
        self.inner.dead_letter(number).await
    }

    async fn remove_dead_letter(&self, number: LetterNo) -> Result<(), StoreError> {
        self.write(Write::RemoveLetter(number)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaigns::conformance;
    use crate::campaigns::memory::MemoryCampaigns;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn without_a_plan_it_keeps_the_contract() {
        let memory = Arc::new(MemoryCampaigns::default());
        conformance::all(Arc::new(FaultyCampaigns::new(memory, 1, CampaignFaultPlan::default()))).await;
    }
}
