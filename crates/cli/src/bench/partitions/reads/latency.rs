//! How long older pages take on the embedded store, without HTTP and without a cache of history.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use saltern_baseline::chunks::ChunkKeys;
use saltern_baseline::classic::{ClassicChat, Spread};
use saltern_core::heat::HeatPolicy;
use saltern_core::rng::SplitMix64;
use saltern_service::conversations::Conversations;
use saltern_store::embedded::EmbeddedStore;
use serde::Serialize;

use super::super::drafts::Drafts;
use super::super::setup::{self, CHUNK};
use super::fill;
use super::reader::Reader;
use crate::args::PartitionsArgs;
use crate::bench::measure::{Measured, Spread as Runs};
use crate::bench::{progress, take_turns};
use crate::scratch::Scratch;

/// How far the conversation spreads whose pages are timed.
pub(super) const N: u16 = 10;

/// The latency of one side over the other's, run by run.
#[derive(Debug, Serialize)]
pub(in crate::bench::partitions) struct Ratio {
    pub(in crate::bench::partitions) what: String,
    pub(in crate::bench::partitions) of_means: Runs,
    pub(in crate::bench::partitions) of_medians: Runs,
    pub(in crate::bench::partitions) above: Side,
    pub(in crate::bench::partitions) below: Side,
}

/// Medians over the runs.
#[derive(Debug, Serialize)]
pub(in crate::bench::partitions) struct Side {
    pub(in crate::bench::partitions) mean_ms: f64,
    pub(in crate::bench::partitions) p50_ms: f64,
}

impl Ratio {
    fn of(what: String, runs: &[(Measured, Measured)]) -> Self {
        let ratio = |figure: fn(&Measured) -> f64| {
            Runs::of(runs.iter().map(|(above, below)| figure(above) / figure(below).max(f64::MIN_POSITIVE)))
        };
        Self {
            what,
            of_means: ratio(mean_ms),
            of_medians: ratio(p50_ms),
            above: Side::of(runs.iter().map(|(above, _)| above)),
            below: Side::of(runs.iter().map(|(_, below)| below)),
        }
    }
}

impl Side {
    fn of<'a>(runs: impl Iterator<Item = &'a Measured> + Clone) -> Self {
        Self { mean_ms: Runs::of(runs.clone().map(mean_ms)).median, p50_ms: Runs::of(runs.map(p50_ms)).median }
    }
}

fn mean_ms(run: &Measured) -> f64 {
    run.elapsed.as_secs_f64() * 1_000.0 / run.done.max(1) as f64
}

fn p50_ms(run: &Measured) -> f64 {
    run.latency.percentile_ms(0.5)
}

pub(super) async fn measure(args: &PartitionsArgs, scratch: &Scratch) -> Result<Vec<Ratio>> {
    progress("reads: filling the conversations");
    let store = setup::embedded_store(&scratch.path().join("reads"))?;
    fill_saltern(args, &store, "unsalted", 1).await?;
    fill_saltern(args, &store, "salted", N).await?;
    let classic = classic(args, &store).await?;
    let chunks = chunks(args, &store).await?;
    // One service at a time may have the store; it reads what the two before it wrote.
    let service = setup::uncached_service(store.clone(), HeatPolicy::default());
    let unsalted = saltern(args, &service, "unsalted")?;
    let salted = saltern(args, &service, "salted")?;
    for reader in [&unsalted, &salted, &classic, &chunks] {
        warm_up(reader, args.pages).await?;
    }
    let ratios = vec![
        ratio(args, format!("saltern, N = {N} over N = 1"), &salted, &unsalted).await?,
        ratio(args, format!("classic over saltern, N = {N}"), &classic, &salted).await?,
        ratio(args, format!("chunk keys over saltern, N = {N}"), &chunks, &salted).await?,
    ];
    service.shut_down().await;
    drop((classic, chunks));
    store.close().await?;
    Ok(ratios)
}

async fn fill_saltern(args: &PartitionsArgs, store: &Arc<EmbeddedStore>, name: &str, n: u16) -> Result<()> {
    let service = setup::uncached_service(store.clone(), setup::fixed(n));
    fill::saltern(&service, &setup::conversation(name)?, &Drafts::new()?, args.messages).await?;
    service.shut_down().await;
    Ok(())
}

fn saltern(args: &PartitionsArgs, service: &Conversations, name: &str) -> Result<Reader> {
    Ok(Reader::saltern(service.clone(), setup::conversation(name)?, args.messages))
}

async fn classic(args: &PartitionsArgs, store: &Arc<EmbeddedStore>) -> Result<Reader> {
    let (chat, conversation) = (ClassicChat::new(store.clone(), Spread::Fixed(N)), setup::conversation("classic")?);
    fill::classic(&chat, &conversation, args.messages).await?;
    Reader::classic(chat, conversation, args.messages).await
}

async fn chunks(args: &PartitionsArgs, store: &Arc<EmbeddedStore>) -> Result<Reader> {
    let (chat, conversation) = (ChunkKeys::new(store.clone(), CHUNK), setup::conversation("chunks")?);
    fill::chunks(&chat, &conversation, args.messages).await?;
    Ok(Reader::chunks(chat, conversation, args.messages))
}

/// Layouts and heads are known by then, and blocks are in the engine's cache.
async fn warm_up(reader: &Reader, pages: u32) -> Result<()> {
    reader.newest().await?;
    older_pages(reader, pages, 0).await?;
    Ok(())
}

async fn ratio(args: &PartitionsArgs, what: String, above: &Reader, below: &Reader) -> Result<Ratio> {
    let (mut seed_above, mut seed_below) = (0, 0);
    let runs = take_turns(
        args.runs,
        &what,
        async || {
            seed_above += 1;
            older_pages(above, args.pages, seed_above).await
        },
        async || {
            seed_below += 1;
            older_pages(below, args.pages, seed_below).await
        },
    );
    let runs = runs.await?;
    Ok(Ratio::of(what, &runs))
}

/// One after the other: what is measured is how long a page takes, not how many fit into a second.
async fn older_pages(reader: &Reader, pages: u32, seed: u64) -> Result<Measured> {
    let (mut rng, mut measured, started) = (SplitMix64::new(seed), Measured::default(), Instant::now());
    for _ in 0..pages {
        let asked = Instant::now();
        reader.older(&mut rng).await?;
        measured.latency.record(asked.elapsed());
        measured.done += 1;
    }
    measured.elapsed = started.elapsed();
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_ratio_of_latencies_is_taken_run_by_run() {
        let run = |ms| {
            let mut run = Measured { done: 1, elapsed: Duration::from_millis(ms), ..Measured::default() };
            run.latency.record(run.elapsed);
            run
        };
        let ratio = Ratio::of("x".into(), &[(run(10), run(5)), (run(30), run(10)), (run(40), run(10))]);
        assert_eq!(ratio.of_means, Runs { median: 3.0, min: 2.0, max: 4.0 });
        assert_eq!((ratio.above.mean_ms, ratio.below.mean_ms), (30.0, 10.0));
        assert!((2.9..3.1).contains(&ratio.of_medians.median));
    }
}
