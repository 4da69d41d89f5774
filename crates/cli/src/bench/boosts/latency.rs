//! How long a search takes, without HTTP: all designs in turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use saltern_core::campaigns::Moment;
use serde::Serialize;
use tokio::task::JoinSet;

use super::designs::{Design, Kind};
use super::market::{SEARCHED, Search, Town};
use crate::args::BoostsArgs;
use crate::bench::measure::{Measured, Side, Spread};
use crate::bench::{PAUSE, WARM_UP, progress};
use crate::service::now_ms;

/// So many clients at once.
#[derive(Debug, Serialize)]
pub(super) struct Latency {
    pub(super) clients: u32,
    pub(super) lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) design: Kind,
    #[serde(flatten)]
    pub(super) side: Side,
    /// Its p99 over Saltern's of the same run.
    pub(super) p99_ratio: Spread,
    /// Saltern's rate over its own of the same run.
    pub(super) rate_ratio: Spread,
}

pub(super) async fn measure(
    store: &str,
    args: &BoostsArgs,
    town: &Town,
    designs: Vec<(Kind, Arc<Design>)>,
) -> Result<Vec<Latency>> {
    let duration = Duration::from_secs(args.seconds.into());
    let mut all = Vec::new();
    for &clients in &args.clients {
        for (_, design) in &designs {
            load(design, &town.searches, clients, WARM_UP).await?;
        }
        let mut runs: Vec<Vec<Measured>> = designs.iter().map(|_| Vec::new()).collect();
        for run in 0..args.runs {
            // Who begins changes from run to run.
            for turn in 0..designs.len() {
                let i = (turn + run as usize) % designs.len();
                let (kind, design) = &designs[i];
                progress(&format!("{store}, {clients} clients, run {} of {}: {}", run + 1, args.runs, kind.name()));
                runs[i].push(load(design, &town.searches, clients, duration).await?);
                tokio::time::sleep(PAUSE).await;
            }
        }
        let lines = lines(&designs, &runs);
        all.push(Latency { clients, lines });
    }
    Ok(all)
}

fn lines(designs: &[(Kind, Arc<Design>)], runs: &[Vec<Measured>]) -> Vec<Line> {
    let saltern = designs.iter().position(|(kind, _)| *kind == Kind::Saltern).map_or(&[][..], |i| &runs[i]);
    let ratio = |runs: &[Measured], ratio: &dyn Fn(&Measured, &Measured) -> f64| {
        Spread::of(runs.iter().zip(saltern).map(|(run, saltern)| ratio(run, saltern)))
    };
    let p99 = |run: &Measured| run.latency.percentile_ms(0.99).max(0.001);
    let line = |((kind, _), runs): (&(Kind, _), &Vec<Measured>)| Line {
        design: *kind,
        side: Side::of(runs.iter()),
        p99_ratio: ratio(runs, &|run, saltern| p99(run) / p99(saltern)),
        rate_ratio: ratio(runs, &|run, saltern| saltern.per_s() / run.per_s().max(f64::MIN_POSITIVE)),
    };
    designs.iter().zip(runs).map(line).collect()
}

/// Clients that each search as soon as they are answered. The time that one waits for its turn counts.
async fn load(design: &Arc<Design>, searches: &Arc<[Search]>, clients: u32, duration: Duration) -> Result<Measured> {
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for client in 0..clients {
        let (design, searches) = (Arc::clone(design), Arc::clone(searches));
        tasks.spawn(async move {
            let mut measured = Measured::default();
            let mut asked = started.elapsed();
            let mine = searches.iter().cycle().skip(client as usize * 16 % searches.len());
            for search in mine {
                if asked >= duration {
                    break;
                }
                // Some designs never wait for anything, and would not let the others in.
                tokio::task::yield_now().await;
                let at = Moment::from_ms(i64::try_from(now_ms()).unwrap_or(0))?;
                let found = design.search(search, at).await;
                let answered = started.elapsed();
                if found.is_ok_and(|found| found == SEARCHED) {
                    measured.done += 1;
                    measured.latency.record(answered.saturating_sub(asked));
                } else {
                    measured.errors += 1;
                }
                asked = answered;
            }
            measured.elapsed = started.elapsed();
            anyhow::Ok(measured)
        });
    }
    let mut total = Measured::default();
    while let Some(task) = tasks.join_next().await {
        total.add(&task??);
    }
    Ok(total)
}
