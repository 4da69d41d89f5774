//! Without limits: what does it cost that all writes go to one conversation?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use saltern_core::heat::HeatPolicy;
use saltern_core::ids::ConversationId;
use saltern_service::conversations::Conversations;
use saltern_store::embedded::EmbeddedStore;
use serde::Serialize;

use super::drafts::Drafts;
use super::setup;
use crate::args::PartitionsArgs;
use crate::bench::measure::{Comparison, Measured};
use crate::bench::without_http::writers;
use crate::bench::{WARM_UP, take_turns};
use crate::scratch::Scratch;

const N: u16 = 5;
const CONVERSATIONS: u32 = 1_000;

#[derive(Debug, Serialize)]
pub(super) struct Hot {
    pub(super) runs: u32,
    pub(super) seconds: u32,
    pub(super) writers: u32,
    pub(super) comparison: Comparison,
}

pub(super) async fn measure(args: &PartitionsArgs, scratch: &Scratch) -> Result<Hot> {
    let one = Side::open(scratch, "one", 1, setup::fixed(N))?;
    let many = Side::open(scratch, "many", CONVERSATIONS, HeatPolicy::default())?;
    one.write(args.writers, WARM_UP).await?;
    many.write(args.writers, WARM_UP).await?;
    let duration = Duration::from_secs(args.hot_seconds.into());
    let what = format!("one conversation over {N} salts, {} writers", args.writers);
    let runs = take_turns(
        args.runs,
        &what,
        async || one.write(args.writers, duration).await,
        async || many.write(args.writers, duration).await,
    );
    let comparison = Comparison::of(what.clone(), "the same writes over 1,000", &runs.await?);
    one.close().await?;
    many.close().await?;
    Ok(Hot { runs: args.runs, seconds: args.hot_seconds, writers: args.writers, comparison })
}

/// A folder of its own: only one service at a time may have one.
struct Side {
    store: Arc<EmbeddedStore>,
    service: Conversations,
    conversations: Arc<[ConversationId]>,
    drafts: Drafts,
    turn: Arc<AtomicU64>,
}

impl Side {
    fn open(scratch: &Scratch, name: &str, conversations: u32, heat: HeatPolicy) -> Result<Self> {
        let store = setup::embedded_store(&scratch.path().join(name))?;
        let named = |i| setup::conversation(&format!("{name}-{i}"));
        Ok(Self {
            service: setup::service(store.clone(), heat),
            store,
            conversations: (0..conversations).map(named).collect::<Result<_>>()?,
            drafts: Drafts::new()?,
            turn: Arc::default(),
        })
    }

    async fn write(&self, count: u32, duration: Duration) -> Result<Measured> {
        let (service, conversations) = (self.service.clone(), Arc::clone(&self.conversations));
        let (drafts, turn) = (self.drafts.clone(), Arc::clone(&self.turn));
        let write = move || {
            let (service, draft) = (service.clone(), drafts.next());
            let turn = turn.fetch_add(1, Ordering::Relaxed) % conversations.len() as u64;
            let conversation = conversations[usize::try_from(turn).unwrap_or(0)].clone();
            async move {
                service.append(&conversation, draft?).await?;
                anyhow::Ok(())
            }
        };
        writers(count, duration, write).await
    }

    async fn close(self) -> Result<()> {
        self.service.shut_down().await;
        Ok(self.store.close().await?)
    }
}
