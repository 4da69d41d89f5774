//! `bench tickets`: what meter, horizon and expiry cost beside a script that only counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::future::try_join_all;
use saltern_core::ids::ConversationId;
use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use saltern_registry::redis::{BareCounter, RedisOptions, RedisRegistry};
use saltern_registry::{Registry as _, TicketRequest, Tickets};

use super::backends::Backend;
use crate::args::TicketsArgs;
use crate::bench::measure::{Comparison, Measured};
use crate::bench::report::Report;
use crate::bench::without_http::writers;
use crate::bench::{WARM_UP, take_turns};

/// Further than any run gets, and no longer to write than those of conversations that people have.
const HORIZON: u64 = 1 << 32;
const ONE: TicketRequest = TicketRequest { count: 1, wcu: 1 };
/// Patience that no healthy call needs: a busy machine is not an error here.
const CALL_MAX: Duration = Duration::from_secs(30);

pub(in crate::bench) async fn tickets(args: &TicketsArgs) -> Result<()> {
    let (server, url) = match &args.redis {
        Some(url) => (None, url.clone()),
        None => {
            let server = Backend::redis().await?;
            let url = server.url("redis");
            (Some(server), url)
        }
    };
    // As many servers would ask, and as one does.
    let mut comparisons = Vec::new();
    for connections in [args.clients, 1] {
        comparisons.push(compare(args, &url, connections).await?);
    }
    drop(server);
    let report = Report {
        bench: "tickets",
        runs: args.runs,
        seconds: args.seconds,
        content_bytes: None,
        debug_build: cfg!(debug_assertions),
        comparisons,
        how: format!(
            "Medians of {} interleaved runs of {} s per side; {} clients take one ticket at a time for one of {} \
             conversations. The peer is a script of one HINCRBY, called by its digest over as many connections of the same \
             kind, on the same server.",
            args.runs, args.seconds, args.clients, args.conversations
        ),
    };
    report.print(args.json)
}

async fn compare(args: &TicketsArgs, url: &str, connections: u32) -> Result<Comparison> {
    let options = RedisOptions { urls: vec![url.to_owned()], timeout: CALL_MAX, ..RedisOptions::default() };
    let registries = try_join_all((0..connections).map(|_| RedisRegistry::connect(options.clone()))).await?;
    let counters = try_join_all((0..connections).map(|_| BareCounter::connect(url))).await?;
    let conversations = Conversations::new(args.conversations)?;
    try_join_all(conversations.ids.iter().map(|id| registries[0].install(id, SeqNo::FIRST, SeqNo::clamped(HORIZON))))
        .await?;
    let (registries, counters) = (InTurn::new(registries), InTurn::new(counters));
    let ours = |duration| {
        let (registries, conversations) = (registries.clone(), conversations.clone());
        writers(args.clients, duration, move || take(registries.next(), conversations.clone()))
    };
    let peer = |duration| {
        let (counters, conversations) = (counters.clone(), conversations.clone());
        writers(args.clients, duration, move || count(counters.next(), conversations.clone()))
    };
    let what = format!("tickets, {} clients, {connections} connections", args.clients);
    let duration = Duration::from_secs(args.seconds.into());
    ours(WARM_UP).await?;
    peer(WARM_UP).await?;
    let runs = take_turns(args.runs, &what, async || ours(duration).await, async || peer(duration).await).await?;
    if runs.iter().any(|(ours, peer)| failed(ours) || failed(peer)) {
        bail!("calls failed, so the rates say nothing");
    }
    Ok(Comparison::of(what, "bare HINCRBY script", &runs))
}

/// Connections, each as busy as the others.
#[derive(Clone)]
struct InTurn<T> {
    all: Arc<[T]>,
    turn: Arc<AtomicU64>,
}

impl<T: Clone> InTurn<T> {
    fn new(all: Vec<T>) -> Self {
        Self { all: all.into(), turn: Arc::default() }
    }

    fn next(&self) -> T {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.all.len() as u64;
        self.all[usize::try_from(turn).unwrap_or(0)].clone()
    }
}

fn failed(run: &Measured) -> bool {
    run.errors > 0 || run.done == 0
}

async fn take(registry: RedisRegistry, conversations: Conversations) -> Result<()> {
    match registry.tickets(conversations.any(), ONE).await? {
        Tickets::Issued { .. } => Ok(()),
        other => bail!("{other:?}"),
    }
}

async fn count(bare: BareCounter, conversations: Conversations) -> Result<()> {
    bare.next(conversations.any()).await?;
    Ok(())
}

/// The same for both sides.
#[derive(Clone)]
struct Conversations {
    ids: Arc<[ConversationId]>,
    chosen: Arc<AtomicU64>,
}

impl Conversations {
    fn new(count: u32) -> Result<Self> {
        let ids = (0..count).map(|i| ConversationId::new(&format!("bench-{i}"))).collect::<Result<_, _>>()?;
        Ok(Self { ids, chosen: Arc::default() })
    }

    fn any(&self) -> &ConversationId {
        let chosen = SplitMix64::new(self.chosen.fetch_add(1, Ordering::Relaxed)).below(self.ids.len() as u64);
        &self.ids[usize::try_from(chosen).unwrap_or(0)]
    }
}
