//! The outcome, for people and for programs.

use anyhow::Result;
use serde::Serialize;

use super::counts::Count;
use super::designs::Kind;
use super::latency::{Latency, Line};
use super::market::{SEARCHED, SERVED, Town};
use crate::args::BoostsArgs;
use crate::bench::measure::Comparison;
use crate::out;
use crate::table::{table, thousands};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    bench: &'static str,
    debug_build: bool,
    partners: u32,
    districts: u32,
    wide: usize,
    searched: usize,
    runs: u32,
    seconds: u32,
    redis: bool,
    pub(super) stores: Vec<StoreReport>,
    pub(super) http: Vec<Comparison>,
}

#[derive(Debug, Serialize)]
pub(super) struct StoreReport {
    pub(super) store: &'static str,
    pub(super) counts: Vec<Count>,
    pub(super) latency: Vec<Latency>,
}

impl Report {
    pub(super) fn new(args: &BoostsArgs, town: &Town, redis: bool) -> Self {
        Self {
            bench: "boosts",
            debug_build: cfg!(debug_assertions),
            partners: args.partners,
            districts: args.districts,
            wide: town.wide,
            searched: SEARCHED,
            runs: args.runs,
            seconds: args.seconds,
            redis,
            stores: Vec::new(),
            http: Vec::new(),
        }
    }

    pub(super) fn print(&self, json: bool) -> Result<()> {
        if json {
            out::line(serde_json::to_string(self)?)?;
            return Ok(());
        }
        for store in &self.stores {
            out::line(counts(store))?;
            for latency in &store.latency {
                out::line(times(store.store, latency))?;
            }
        }
        if !self.http.is_empty() {
            out::line(http(&self.http))?;
        }
        out::line(self.how())?;
        Ok(())
    }

    fn how(&self) -> String {
        let mut how = format!(
            "{} partners, each boosted in all areas at any time, every other one all day and those between in four slots; {} \
             districts, of which a partner serves {SERVED}. A search names {SEARCHED} partners that serve its district. \
             Operations: queries and batch reads. Partners: those that the rows read tell about. Bytes: keys and rows as the \
             embedded store keeps them, before compression; as items: by DynamoDB's rule. Writes of one event on seven days, \
             all day and in four slots, and of a partner that serves all districts. Some everywhere: {} partners \
             serve all districts. Medians of {} interleaved runs of {} s; without HTTP, each client searches as soon as it \
             is answered, in this process; the ratios are taken run by run.",
            thousands(self.partners.into()),
            thousands(self.districts.into()),
            self.wide,
            self.runs,
            self.seconds
        );
        if !self.http.is_empty() {
            how.push_str(
                " Over HTTP: load and server are two processes on loopback; the trivial endpoint reads the same request and \
                 answers with as many bytes; the peer with Redis is that endpoint with a lookup in it, and so does less \
                 than a server (no keys, limits, metrics).",
            );
        }
        if !self.redis {
            how.push_str(" No redis-server on this machine: its rows are left out.");
        }
        how
    }
}

fn counts(store: &StoreReport) -> String {
    let header =
        [store.store, "operations", "items", "partners", "bytes", "as items", "writes", "in slots", "everywhere"];
    let row = |count: &Count| {
        [
            count.design.name().to_owned(),
            format!("{:.2}", count.operations),
            thousands(count.items),
            thousands(count.partners),
            thousands(count.bytes),
            thousands(count.item_bytes),
            count.writes_all_day.to_string(),
            count.writes_in_slots.to_string(),
            thousands(count.writes_wide as f64),
        ]
    };
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned)).chain(store.counts.iter().map(row)).collect();
    let of = |kind| store.counts.iter().find(|count| count.design == kind);
    let ratio = of(Kind::V1).zip(of(Kind::Saltern)).map(|(v1, saltern)| {
        let ratio = |v1: f64, saltern: f64| v1 / saltern.max(f64::MIN_POSITIVE);
        format!(
            "V1 / saltern: partners {:.0}, bytes {:.0}, as items {:.0}\n",
            ratio(v1.partners, saltern.partners),
            ratio(v1.bytes, saltern.bytes),
            ratio(v1.item_bytes, saltern.item_bytes)
        )
    });
    format!("{}{}", table(&rows), ratio.unwrap_or_default())
}

fn times(store: &str, latency: &Latency) -> String {
    let clients = format!("{store}, {} clients", latency.clients);
    let header =
        [clients.as_str(), "per s", "p50 ms", "p99 ms", "p99 / saltern", "min..max", "saltern's rate", "errors"];
    let row = |line: &Line| {
        [
            line.design.name().to_owned(),
            thousands(line.side.per_s),
            format!("{:.3}", line.side.p50_ms),
            format!("{:.3}", line.side.p99_ms),
            format!("{:.2}", line.p99_ratio.median),
            format!("{:.2}..{:.2}", line.p99_ratio.min, line.p99_ratio.max),
            format!("{:.2}", line.rate_ratio.median),
            line.side.errors.to_string(),
        ]
    };
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned)).chain(latency.lines.iter().map(row)).collect();
    table(&rows)
}

fn http(comparisons: &[Comparison]) -> String {
    let header =
        ["over HTTP", "ratio", "min..max", "saltern/s", "p50 ms", "p99 ms", "peer/s", "p50 ms", "p99 ms", "errors"];
    let row = |comparison: &Comparison| {
        let (ratio, ours, peer) = (comparison.ratio, &comparison.saltern, &comparison.peer);
        let ms = |ms: f64| format!("{ms:.2}");
        [
            format!("{} / {}", comparison.what, comparison.peer_is),
            format!("{:.2}", ratio.median),
            format!("{:.2}..{:.2}", ratio.min, ratio.max),
            thousands(ours.per_s),
            ms(ours.p50_ms),
            ms(ours.p99_ms),
            thousands(peer.per_s),
            ms(peer.p50_ms),
            ms(peer.p99_ms),
            (ours.errors + peer.errors).to_string(),
        ]
    };
    let rows: Vec<_> = std::iter::once(header.map(str::to_owned)).chain(comparisons.iter().map(row)).collect();
    table(&rows)
}
