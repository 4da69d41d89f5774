//! What a search reads and an event writes: figures that no machine can change.

use anyhow::{Result, ensure};
use saltern_core::campaigns::Moment;
use saltern_core::ids::PartnerId;
use serde::Serialize;

use super::designs::{Design, Kind};
use super::fill::Filled;
use super::market::{Runs, SEARCHED, Town, boost, event, partner_id};
use super::weighed::Weight;
use crate::service::now_ms;

/// Searches of which the mean is taken.
const COUNTED: usize = 100;

/// Per search, means; and per event.
#[derive(Debug, Serialize)]
pub(super) struct Count {
    pub(super) design: Kind,
    /// Queries or batches.
    pub(super) operations: f64,
    pub(super) items: f64,
    pub(super) partners: f64,
    pub(super) bytes: f64,
    pub(super) item_bytes: f64,
    /// Of a campaign on seven days, all day.
    pub(super) writes_all_day: u64,
    /// On seven days in four slots.
    pub(super) writes_in_slots: u64,
    /// Of a partner that delivers everywhere.
    pub(super) writes_wide: u64,
}

pub(super) async fn count(filled: &Filled, town: &Town) -> Result<Vec<Count>> {
    let designs = [
        (Kind::V1, &filled.v1),
        (Kind::Expansion, &filled.expansion),
        (Kind::ExpansionWithWide, &filled.with_wide),
        (Kind::Saltern, &filled.saltern),
    ];
    let mut counts = Vec::new();
    // Behind those that are searched for.
    let mut fresh = town.partners.len();
    for (kind, design) in designs {
        // Whatever is read once is remembered by now.
        search(design, town, 1).await?;
        filled.weighed.take();
        search(design, town, COUNTED).await?;
        let read = filled.weighed.take();
        let mut writes = [0; 3];
        for (writes, (runs, wide)) in
            writes.iter_mut().zip([(Runs::AllDay, false), (Runs::InSlots, false), (Runs::AllDay, true)])
        {
            apply(kind, design, town, fresh, runs, wide).await?;
            fresh += 1;
            *writes = filled.weighed.take().writes;
        }
        counts.push(line(kind, read, writes));
    }
    Ok(counts)
}

fn line(design: Kind, read: Weight, [writes_all_day, writes_in_slots, writes_wide]: [u64; 3]) -> Count {
    let mean = |sum: u64| sum as f64 / COUNTED as f64;
    Count {
        design,
        operations: mean(read.reads),
        items: mean(read.items),
        partners: mean(read.partners),
        bytes: mean(read.bytes),
        item_bytes: mean(read.item_bytes),
        writes_all_day,
        writes_in_slots,
        writes_wide,
    }
}

async fn search(design: &Design, town: &Town, searches: usize) -> Result<()> {
    for search in town.searches.iter().take(searches) {
        let found = design.search(search, Moment::from_ms(i64::try_from(now_ms())?)?).await?;
        ensure!(found == SEARCHED, "{found} of {SEARCHED} partners were found");
    }
    Ok(())
}

/// A campaign of a partner that had none.
async fn apply(kind: Kind, design: &Design, town: &Town, partner: usize, runs: Runs, wide: bool) -> Result<()> {
    let id = PartnerId::new(&partner_id(partner))?;
    match design {
        Design::V1(v1) => drop(v1.apply(&town.key(&id), &boost(partner, runs)?).await?),
        Design::Expansion(expansion) => {
            let served = if wide { town.districts.clone() } else { town.served_anywhere(partner) };
            expansion.apply(&id, &boost(partner, runs)?, &served).await?;
        }
        Design::Saltern(campaigns, _) => {
            let done = campaigns.apply(&[event(partner, runs).to_string()]).await?;
            ensure!(done.applied == 1, "{kind:?}: the event was not applied");
        }
        Design::Redis(_) | Design::Map(_) => {}
    }
    Ok(())
}
