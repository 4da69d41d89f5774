//! What pages ask of a store, counted and not timed.

use std::sync::Arc;

use anyhow::{Result, bail};
use saltern_baseline::chunks::ChunkKeys;
use saltern_baseline::classic::{ClassicChat, Spread};
use saltern_core::heat::HeatPolicy;
use saltern_core::ids::ConversationId;
use saltern_core::limits::{LEASE_MAX, PAGE_LIMIT_DEFAULT};
use saltern_core::rng::SplitMix64;
use saltern_service::conversations::Conversations;
use saltern_store::counted::Counted;
use serde::Serialize;

use super::super::drafts::Drafts;
use super::super::setup::{self, CHUNK};
use super::fill;
use super::reader::{Design, Reader};
use super::tally::Asked;
use crate::args::PartitionsArgs;
use crate::bench::progress;

const SPREADS: [u16; 4] = [1, 4, 10, 40];
/// Messages appended between two looks at a conversation that cools down.
const COOLING_STEP: u32 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::bench::partitions) enum Page {
    Newest,
    /// By a server that knows no more of the conversation than its control record says.
    NewestWithoutHint,
    Older,
    NewestAfterCoolDown,
}

#[derive(Debug, Serialize)]
pub(in crate::bench::partitions) struct Line {
    pub(in crate::bench::partitions) design: Design,
    /// Chunk keys have none.
    pub(in crate::bench::partitions) n: Option<u16>,
    pub(in crate::bench::partitions) page: Page,
    #[serde(flatten)]
    pub(in crate::bench::partitions) asked: Asked,
}

pub(super) async fn measure(args: &PartitionsArgs) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    chunks(args, &mut lines).await?;
    for n in SPREADS {
        progress(&format!("reads: what pages ask for at N = {n}"));
        classic(args, n, &mut lines).await?;
        saltern(args, n, &mut lines).await?;
    }
    Ok(lines)
}

/// A store that counts, and the pages that are read from it.
struct Counting<'a> {
    store: Counted,
    design: Design,
    n: Option<u16>,
    pages: u32,
    lines: &'a mut Vec<Line>,
}

impl<'a> Counting<'a> {
    fn new(args: &PartitionsArgs, design: Design, n: Option<u16>, lines: &'a mut Vec<Line>) -> Self {
        Self { store: Counted::new(setup::cloud_store()), design, n, pages: args.pages, lines }
    }

    fn store(&self) -> Arc<Counted> {
        Arc::new(self.store.clone())
    }

    async fn newest_and_older(&mut self, reader: &Reader) -> Result<()> {
        self.newest(reader, Page::Newest, self.pages).await?;
        let mut rng = SplitMix64::new(1);
        self.line(Page::Older, self.pages, async || reader.older(&mut rng).await).await
    }

    async fn newest(&mut self, reader: &Reader, page: Page, pages: u32) -> Result<()> {
        self.line(page, pages, async || reader.newest().await).await
    }

    /// Pages one after the other, each counted for itself.
    async fn line(&mut self, page: Page, pages: u32, mut read: impl AsyncFnMut() -> Result<()>) -> Result<()> {
        let mut counts = Vec::new();
        for _ in 0..pages {
            let before = self.store.counts();
            read().await?;
            counts.push(self.store.counts().since(before));
        }
        self.lines.push(Line { design: self.design, n: self.n, page, asked: Asked::of(&counts) });
        Ok(())
    }
}

async fn chunks(args: &PartitionsArgs, lines: &mut Vec<Line>) -> Result<()> {
    let mut counting = Counting::new(args, Design::ChunkKeys, None, lines);
    let (chat, conversation) = (ChunkKeys::new(counting.store(), CHUNK), setup::conversation("chunks")?);
    fill::chunks(&chat, &conversation, args.messages).await?;
    counting.newest_and_older(&Reader::chunks(chat, conversation, args.messages)).await
}

/// N never falls, so a time without traffic changes nothing.
async fn classic(args: &PartitionsArgs, n: u16, lines: &mut Vec<Line>) -> Result<()> {
    let mut counting = Counting::new(args, Design::Classic, Some(n), lines);
    let (chat, conversation) = (ClassicChat::new(counting.store(), Spread::Fixed(n)), setup::conversation("classic")?);
    fill::classic(&chat, &conversation, args.messages).await?;
    let reader = Reader::classic(chat, conversation, args.messages).await?;
    counting.newest_and_older(&reader).await?;
    if n > 1 {
        counting.newest(&reader, Page::NewestAfterCoolDown, args.pages).await?;
    }
    Ok(())
}

async fn saltern(args: &PartitionsArgs, n: u16, lines: &mut Vec<Line>) -> Result<()> {
    let mut counting = Counting::new(args, Design::Saltern, Some(n), lines);
    let (conversation, drafts) = (setup::conversation("saltern")?, Drafts::new()?);
    let reader = |service: &Conversations| Reader::saltern(service.clone(), conversation.clone(), args.messages);
    let writer = setup::uncached_service(counting.store(), setup::fixed(n));
    fill::saltern(&writer, &conversation, &drafts, args.messages).await?;
    // It still reads; but nothing that it does in the background is counted with the pages.
    writer.shut_down().await;
    counting.newest_and_older(&reader(&writer)).await?;

    let fresh = setup::uncached_service(counting.store(), setup::fixed(n));
    counting.newest(&reader(&fresh), Page::NewestWithoutHint, 1).await?;
    fresh.shut_down().await;
    if n > 1 {
        let cooling = setup::uncached_service(counting.store(), cool());
        cool_down(&cooling, &conversation, &drafts).await?;
        cooling.shut_down().await;
        counting.newest(&reader(&cooling), Page::NewestAfterCoolDown, args.pages).await?;
    }
    Ok(())
}

/// Shrinks at once: the filling that follows stands for a time of little traffic, so its own rate must not count.
fn cool() -> HeatPolicy {
    HeatPolicy { target_wcu_per_s: 1e9, shrink_after_ms: 0, widen_hold_ms: 0, ..HeatPolicy::default() }
}

/// Appends until a whole page lies in an epoch with n = 1. Until then the rest of the lease keeps its old place.
async fn cool_down(service: &Conversations, conversation: &ConversationId, drafts: &Drafts) -> Result<()> {
    for _ in 0..4 * LEASE_MAX / u64::from(COOLING_STEP) {
        fill::saltern(service, conversation, drafts, COOLING_STEP).await?;
        let Some(view) = service.view(conversation).await? else { bail!("the conversation has gone") };
        let newest = view.epochs.last().filter(|epoch| epoch.n == 1);
        if newest.is_some_and(|epoch| epoch.from.get() + (PAGE_LIMIT_DEFAULT as u64) < view.head_seq) {
            return Ok(());
        }
    }
    bail!("the conversation does not cool down")
}
