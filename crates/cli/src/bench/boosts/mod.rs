//! `bench boosts`: who of these 50 is boosted? Saltern beside the designs before it, Redis, and a map in memory.

mod counts;
mod designs;
mod dynamodb;
mod fill;
mod latency;
mod market;
mod over_http;
mod redis;
mod report;
mod resp;
mod serve_redis;
mod weighed;

use std::sync::Arc;

use anyhow::Result;
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore};
pub(crate) use serve_redis::serve_redis_boosts;

use self::designs::Stores;
use self::fill::{Filled, Peers};
use self::market::Town;
use self::redis::RedisServer;
use self::report::{Report, StoreReport};
use super::progress;
use crate::args::{BoostsArgs, BoostsPart};
use crate::scratch::Scratch;

pub(super) async fn boosts(args: &BoostsArgs) -> Result<()> {
    let wanted = |part| args.only.is_none_or(|only| only == part);
    let scratch = Scratch::create(args.data.as_deref())?;
    let town = Arc::new(Town::new(args)?);
    let redis = RedisServer::start(scratch.path()).await?;
    let peers = Peers::fill(&town, redis.as_ref()).await?;
    let mut report = Report::new(args, &town, redis.is_some());
    if wanted(BoostsPart::Counts) || wanted(BoostsPart::Latency) {
        let store = Arc::new(EmbeddedStore::open(&scratch.path().join("store"), EmbeddedOptions::default())?);
        let stores = Stores { rows: store.clone(), campaigns: store.clone() };
        report.stores.push(measure("embedded", stores, args, &town, &peers).await?);
        store.close().await?;
        if let Some(stores) = dynamodb::open(args.dynamodb.as_deref()).await? {
            let town = Arc::new(town.within(dynamodb::DISTRICTS_FILLED));
            report.stores.push(measure("dynamodb", stores, args, &town, &peers).await?);
        }
    }
    if wanted(BoostsPart::Http) {
        report.http = over_http::measure(args, &scratch, &town, redis.as_ref()).await?;
    }
    progress("");
    report.print(args.json)
}

async fn measure(
    name: &'static str,
    stores: Stores,
    args: &BoostsArgs,
    town: &Arc<Town>,
    peers: &Peers,
) -> Result<StoreReport> {
    progress(&format!("{name}: filling the tables"));
    let filled = Filled::fill(stores, town).await?;
    let mut report = StoreReport { store: name, counts: counts::count(&filled, town).await?, latency: Vec::new() };
    if args.only != Some(BoostsPart::Counts) {
        report.latency = latency::measure(name, args, town, filled.designs(peers)).await?;
    }
    Ok(report)
}
