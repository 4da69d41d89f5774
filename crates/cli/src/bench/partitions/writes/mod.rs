//! Writes: one conversation at a steady rate, over partitions that each take 1,000 WCU/s.

mod attempts;
mod load;
mod tally;
mod writer;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use anyhow::Result;
use saltern_core::ids::ConversationId;
use saltern_core::key::PartitionKey;
use saltern_core::layout::Salt;
use saltern_store::throttled::{PartitionLimits, Throttled};
use serde::Serialize;
use tokio::task::JoinSet;

use self::load::Load;
use self::tally::Tally;
use self::writer::{Design, Writer};
use super::drafts::Drafts;
use super::setup::{self, cloud_store};
use crate::args::PartitionsArgs;
use crate::bench::progress;
use crate::offer::offer;

#[derive(Debug, Serialize)]
pub(super) struct Writes {
    pub(super) conversation: String,
    pub(super) offered_wcu_per_s: u32,
    pub(super) settle_s: u32,
    pub(super) seconds: u32,
    pub(super) lines: Vec<Line>,
}

/// One design over so many physical partitions.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) design: Design,
    pub(super) physical_partitions: NonZeroU32,
    /// At the end; chunk keys have none.
    pub(super) n: Option<u16>,
    /// Salts of that n on the physical partition that has most of them.
    pub(super) salts_on_one: Option<usize>,
    pub(super) acked_per_s: f64,
    /// Too many were under way: nothing was tried.
    pub(super) refused_per_s: f64,
    /// Given up on, after all their attempts.
    pub(super) failed_per_s: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    #[serde(flatten)]
    pub(super) load: Load,
}

pub(super) async fn measure(args: &PartitionsArgs) -> Result<Writes> {
    let mut lines = Vec::new();
    for &partitions in &args.physical_partitions {
        for design in Design::ALL {
            progress(&format!("writes: {partitions} physical partitions, {}", design.name()));
            lines.push(line(args, design, partitions).await?);
        }
    }
    progress("");
    Ok(Writes {
        conversation: args.conversation.clone(),
        offered_wcu_per_s: args.rate,
        settle_s: args.settle,
        seconds: args.seconds,
        lines,
    })
}

/// The conversation has the same name in each store, so that the salts of all designs meet on the same partitions.
async fn line(args: &PartitionsArgs, design: Design, physical_partitions: NonZeroU32) -> Result<Line> {
    let store = Throttled::new(cloud_store(), PartitionLimits::without_burst(physical_partitions));
    let conversation = setup::conversation(&args.conversation)?;
    let writer = Writer::new(design, store.clone(), args.rate, conversation.clone());
    let traffic = Traffic { writer, tally: Tally::default(), drafts: Drafts::new()?, per_s: args.rate.into() };
    let mut under_way = JoinSet::new();
    traffic.flow(args.settle, &mut under_way).await;
    traffic.tally.take();
    let (before, started) = (store.loads(), Instant::now());
    traffic.flow(args.seconds, &mut under_way).await;
    let (seen, after, seconds) = (traffic.tally.take(), store.loads(), started.elapsed().as_secs_f64());
    let n = traffic.writer.n().await?;
    traffic.writer.abort();
    under_way.shutdown().await;
    Ok(Line {
        design,
        physical_partitions,
        n,
        salts_on_one: n.map(|n| salts_on_one(&store, &conversation, n)),
        acked_per_s: seen.acked as f64 / seconds,
        refused_per_s: seen.refused as f64 / seconds,
        failed_per_s: seen.failed as f64 / seconds,
        p50_ms: seen.latency.percentile_ms(0.5),
        p99_ms: seen.latency.percentile_ms(0.99),
        load: Load::between(&before, &after, seconds),
    })
}

/// How many salts of a spread the fullest physical partition holds.
fn salts_on_one(store: &Throttled, conversation: &ConversationId, n: u16) -> usize {
    let salts = (0..n).map(|salt| if n == 1 { Salt::Unsalted } else { Salt::Of(salt) });
    let mut held = BTreeMap::new();
    for salt in salts {
        *held.entry(store.physical(&PartitionKey::messages(conversation, salt))).or_insert(0) += 1;
    }
    held.into_values().max().unwrap_or(0)
}

struct Traffic {
    writer: Writer,
    tally: Tally,
    drafts: Drafts,
    per_s: f64,
}

impl Traffic {
    /// Each message is a task of its own, whatever becomes of those before it.
    async fn flow(&self, seconds: u32, under_way: &mut JoinSet<()>) {
        let send = || {
            while under_way.try_join_next().is_some() {}
            let (writer, tally, draft) = (self.writer.clone(), self.tally.clone(), self.drafts.next());
            under_way.spawn(async move {
                let sent = Instant::now();
                let outcome = writer.write(draft).await;
                tally.record(outcome, sent.elapsed());
            });
        };
        offer(self.per_s, Duration::from_secs(seconds.into()), send).await;
    }
}
