//! The designs, as something that writes one message.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use saltern_baseline::chunks::ChunkKeys;
use saltern_baseline::classic::{ClassicChat, Spread};
use saltern_core::heat::HeatPolicy;
use saltern_core::ids::ConversationId;
use saltern_core::message::Draft;
use saltern_core::rng::SplitMix64;
use saltern_service::conversations::{AppendError, Conversations};
use saltern_store::throttled::Throttled;
use serde::Serialize;
use tokio::sync::Semaphore;

use super::super::setup::{self, CHUNK};
use super::attempts::until_admitted;
use crate::service::now_ms;

/// Messages under way at once: as many as Saltern admits by default, so that the others may not queue up more.
const UNDER_WAY_MAX: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::bench::partitions) enum Design {
    Unsalted,
    FixedN,
    ClassicDynamic,
    ChunkKeys,
    Saltern,
}

impl Design {
    pub(super) const ALL: [Self; 5] =
        [Self::Unsalted, Self::FixedN, Self::ClassicDynamic, Self::ChunkKeys, Self::Saltern];

    pub(in crate::bench::partitions) fn name(self) -> &'static str {
        match self {
            Self::Unsalted => "unsalted",
            Self::FixedN => "fixed N",
            Self::ClassicDynamic => "classic dynamic",
            Self::ChunkKeys => "chunk keys",
            Self::Saltern => "saltern",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Acked,
    Refused,
    Failed,
}

/// Writes to one conversation. Clones are one writer.
#[derive(Clone)]
pub(super) struct Writer {
    chat: Chat,
    conversation: ConversationId,
    room: Arc<Semaphore>,
    seeds: Arc<AtomicU64>,
}

#[derive(Clone)]
enum Chat {
    Classic(Arc<ClassicChat>),
    Chunks(Arc<ChunkKeys>),
    Saltern(Conversations),
}

impl Writer {
    pub(super) fn new(design: Design, store: Throttled, rate_wcu_per_s: u32, conversation: ConversationId) -> Self {
        let store = Arc::new(store);
        let classic = |spread| Chat::Classic(Arc::new(ClassicChat::new(store.clone(), spread)));
        let chat = match design {
            Design::Unsalted => classic(Spread::Fixed(1)),
            Design::FixedN => classic(Spread::Fixed(setup::salts_for(rate_wcu_per_s))),
            Design::ClassicDynamic => classic(Spread::Dynamic),
            Design::ChunkKeys => Chat::Chunks(Arc::new(ChunkKeys::new(store, CHUNK))),
            Design::Saltern => Chat::Saltern(setup::service(store, HeatPolicy::default())),
        };
        Self { chat, conversation, room: Arc::new(Semaphore::new(UNDER_WAY_MAX)), seeds: Arc::default() }
    }

    pub(super) async fn write(&self, draft: Result<Draft>) -> Outcome {
        let Ok(draft) = draft else { return Outcome::Failed };
        let Ok(_room) = self.room.try_acquire() else { return Outcome::Refused };
        let rng = SplitMix64::new(self.seeds.fetch_add(1, Ordering::Relaxed));
        let (conversation, sent_ms) = (&self.conversation, now_ms());
        match &self.chat {
            // The place is chosen once: every attempt goes to the same key.
            Chat::Classic(chat) => {
                let key = chat.place(conversation, &draft, sent_ms);
                until_admitted(rng, || chat.put(key.clone(), &draft, sent_ms)).await
            }
            Chat::Chunks(chat) => {
                let seq = chat.ticket(conversation);
                until_admitted(rng, || chat.put(conversation, seq, &draft, sent_ms)).await
            }
            Chat::Saltern(service) => match service.append(conversation, draft).await {
                Ok(_) => Outcome::Acked,
                Err(AppendError::Overloaded) => Outcome::Refused,
                Err(_) => Outcome::Failed,
            },
        }
    }

    /// How many salts the conversation spreads over now.
    pub(super) async fn n(&self) -> Result<Option<u16>> {
        Ok(match &self.chat {
            Chat::Classic(chat) => Some(chat.n(&self.conversation)),
            Chat::Chunks(_) => None,
            Chat::Saltern(service) => service.hot(1).await?.first().map(|hot| hot.n),
        })
    }

    /// Nothing goes on in the background after this.
    pub(super) fn abort(&self) {
        if let Chat::Saltern(service) = &self.chat {
            service.abort();
        }
    }
}
