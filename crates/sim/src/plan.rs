//! What a seed decides before the run begins.

use std::num::NonZeroU32;
use std::time::Duration;

use saltern_core::heat::HeatPolicy;
use saltern_core::rng::SplitMix64;
use saltern_registry::faulty::RegistryFaultPlan;
use saltern_store::Capabilities;
use saltern_store::faulty::{FaultPlan, ReadFaults, WriteFaults};
use saltern_store::throttled::PartitionLimits;

pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) capabilities: Capabilities,
    pub(crate) servers: usize,
    pub(crate) conversations: usize,
    pub(crate) writers: usize,
    pub(crate) messages_each: u64,
    pub(crate) readers: usize,
    pub(crate) duration: Duration,
    pub(crate) store: FaultPlan,
    pub(crate) registry: RegistryFaultPlan,
    pub(crate) heat: HeatPolicy,
    /// Partitions so narrow that the traffic of a run is hot, and so few that salts meet.
    pub(crate) limits: Option<PartitionLimits>,
    /// Conversations that a server or the registry remembers: few, so that forgetting happens.
    pub(crate) remembered: usize,
}

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let exclusive = rng.chance_per_mille(250);
        let capabilities = Capabilities { exclusive, atomic_puts: exclusive || rng.chance_per_mille(300) };
        let heat = heat(&mut rng);
        Self {
            seed,
            capabilities,
            servers: if exclusive { 1 } else { 2 + usize::from(rng.chance_per_mille(500)) },
            conversations: 1 + usize::from(rng.chance_per_mille(400)),
            writers: 3 + small(&mut rng, 4),
            messages_each: 8 + rng.below(16),
            readers: 2 + small(&mut rng, 3),
            duration: Duration::from_millis(6_000 + rng.below(6_000)),
            store: store_faults(&mut rng),
            registry: registry_faults(&mut rng),
            remembered: if rng.chance_per_mille(200) { 1 } else { 64 },
            limits: rng.chance_per_mille(300).then(|| limits(&mut rng, &heat)),
            heat,
        }
    }
}

fn heat(rng: &mut SplitMix64) -> HeatPolicy {
    HeatPolicy {
        target_wcu_per_s: 3.0 + f64::from(per_mille(rng, 8)),
        growth_slack: 0.025,
        n_min: 1,
        n_max: 7,
        shrink_fill: 0.75,
        shrink_after_ms: 500 + rng.below(1_500),
        widen_from_wcu_per_s: 0.5,
        widen_cooldown_ms: 300,
        widen_max: 4,
        widen_hold_ms: 1_500,
    }
}

/// A quarter above what a salt is planned to carry, as in the product.
fn limits(rng: &mut SplitMix64, heat: &HeatPolicy) -> PartitionLimits {
    PartitionLimits {
        physical_partitions: NonZeroU32::MIN.saturating_add(1 + per_mille(rng, 6)),
        write_units_per_s: 1.25 * heat.target_wcu_per_s,
        read_units_per_s: 60.0,
        burst: Duration::from_millis(rng.below(3_000)),
    }
}

fn small(rng: &mut SplitMix64, below: u64) -> usize {
    usize::try_from(rng.below(below)).unwrap_or(0)
}

fn per_mille(rng: &mut SplitMix64, max: u64) -> u32 {
    u32::try_from(rng.below(max)).unwrap_or(0)
}

fn store_faults(rng: &mut SplitMix64) -> FaultPlan {
    FaultPlan {
        writes: WriteFaults {
            lost: per_mille(rng, 60),
            unknown: per_mille(rng, 60),
            late: per_mille(rng, 60),
            throttled: per_mille(rng, 60),
            unavailable: per_mille(rng, 40),
        },
        reads: ReadFaults {
            throttled: per_mille(rng, 50),
            unavailable: per_mille(rng, 50),
            partial_page: per_mille(rng, 200),
            stale: per_mille(rng, 300),
        },
        slow: 200 + per_mille(rng, 400),
        slow_max: Duration::from_millis(20 + rng.below(400)),
        late_max: Duration::from_millis(200 + rng.below(3_000)),
        stale_max: Duration::from_millis(rng.below(1_000)),
    }
}

fn registry_faults(rng: &mut SplitMix64) -> RegistryFaultPlan {
    RegistryFaultPlan {
        down_per_mille: per_mille(rng, 60),
        unknown_per_mille: per_mille(rng, 60),
        slow_per_mille: per_mille(rng, 400),
        slow_max: Duration::from_millis(20 + rng.below(200)),
    }
}
