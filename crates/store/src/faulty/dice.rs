//! The seeded decisions, and the count of what they did.

use std::collections::BTreeMap;
use std::time::Duration;

use saltern_core::page::Order;
use tokio::time::Instant;

use super::lag::RecentPuts;
use super::plan::{Fault, FaultPlan};
use crate::port::{Query, QueryPage};
use saltern_core::rng::SplitMix64;

pub(super) struct Dice {
    rng: SplitMix64,
    pub(super) plan: FaultPlan,
    pub(super) recent: RecentPuts,
    pub(super) calls: u64,
    pub(super) faulty_calls: u64,
    pub(super) faults: BTreeMap<Fault, u64>,
}

/// What is to happen to one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fate {
    pub(super) fault: Option<Fault>,
    pub(super) before: Duration,
    pub(super) after: Duration,
    /// How long a late write is on its way.
    pub(super) late: Duration,
    partial: bool,
    /// The past that an eventual read answers from.
    lag: Option<Duration>,
}

impl Dice {
    pub(super) fn new(seed: u64, plan: FaultPlan) -> Self {
        Self {
            rng: SplitMix64::new(seed),
            plan,
            recent: RecentPuts::default(),
            calls: 0,
            faulty_calls: 0,
            faults: BTreeMap::new(),
        }
    }

    pub(super) fn write(&mut self) -> Fate {
        let fault = self.plan.writes.at(self.rng.below(1_000));
        let late = self.up_to(self.plan.late_max);
        self.fate(fault, late)
    }

    pub(super) fn read(&mut self) -> Fate {
        let fault = self.plan.reads.at(self.rng.below(1_000));
        let mut fate = self.fate(fault, Duration::ZERO);
        fate.partial = self.rng.chance_per_mille(self.plan.reads.partial_page);
        let lag = self.up_to(self.plan.stale_max);
        fate.lag = self.rng.chance_per_mille(self.plan.reads.stale).then_some(lag);
        fate
    }

    fn fate(&mut self, fault: Option<Fault>, late: Duration) -> Fate {
        self.calls += 1;
        let mut fate = Fate { fault, before: Duration::ZERO, after: Duration::ZERO, late, partial: false, lag: None };
        let slow = self.rng.chance_per_mille(self.plan.slow);
        if slow {
            let side = self.rng.below(3);
            fate.before = if side == 0 { Duration::ZERO } else { self.up_to(self.plan.slow_max) };
            fate.after = if side == 1 { Duration::ZERO } else { self.up_to(self.plan.slow_max) };
        }
        let struck = [fault, slow.then_some(Fault::Slow)].into_iter().flatten();
        self.count(false, struck);
        fate
    }

    fn up_to(&mut self, max: Duration) -> Duration {
        let nanos = u64::try_from(max.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.rng.below(nanos.saturating_add(1)))
    }

    fn count(&mut self, counted: bool, faults: impl IntoIterator<Item = Fault>) {
        let mut fresh = !counted;
        for fault in faults {
            *self.faults.entry(fault).or_default() += 1;
            self.faulty_calls += u64::from(std::mem::take(&mut fresh));
        }
    }

    /// The moment that a lagging eventual read sees.
    pub(super) fn past(&self, fate: &Fate) -> Option<Instant> {
        fate.lag.and_then(|lag| Instant::now().checked_sub(lag))
    }

    pub(super) fn count_stale(&mut self, fate: &Fate) {
        self.count(fate.is_counted(), [Fault::Stale]);
    }

    /// Ends a page early if fate says so. What is left can always be read on from, and each page leads further (S6).
    pub(super) fn cut(&mut self, fate: &mut Fate, query: &Query, page: QueryPage) -> QueryPage {
        if !fate.partial || query.from >= query.to {
            return page;
        }
        let cut = match self.rng.below(page.rows.len() as u64) {
            0 => self.empty_page(query, &page),
            keep => prefix(&page, usize::try_from(keep).unwrap_or(1)),
        };
        match cut {
            Some(cut) => {
                self.count(fate.is_counted(), [Fault::PartialPage]);
                fate.fault = Some(Fault::PartialPage);
                cut
            }
            None => page,
        }
    }

    /// No row, and a place to go on behind, somewhere before the first row.
    fn empty_page(&mut self, query: &Query, page: &QueryPage) -> Option<QueryPage> {
        let first = page.rows.first().map(|(sort, _)| *sort);
        let resume = match query.order {
            Order::Ascending => {
                let room = first.unwrap_or(query.to) - query.from;
                (room > 0).then(|| query.from + self.rng.below(room))
            }
            Order::Descending => {
                let room = query.to - first.unwrap_or(query.from);
                (room > 0).then(|| query.to - self.rng.below(room))
            }
        };
        match resume {
            Some(_) => Some(QueryPage { rows: Vec::new(), resume }),
            None => prefix(page, 1),
        }
    }
}

impl Fate {
    fn is_counted(&self) -> bool {
        self.fault.is_some() || self.before + self.after > Duration::ZERO
    }
}

fn prefix(page: &QueryPage, keep: usize) -> Option<QueryPage> {
    let rows = page.rows.get(..keep).filter(|rows| rows.len() < page.rows.len())?;
    Some(QueryPage { rows: rows.to_vec(), resume: rows.last().map(|(sort, _)| *sort) })
}
