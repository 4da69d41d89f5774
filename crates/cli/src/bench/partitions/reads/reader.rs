//! The designs, as something that reads pages of one conversation.

use anyhow::{Result, ensure};
use saltern_baseline::chunks::ChunkKeys;
use saltern_baseline::classic::{ClassicChat, Cursor};
use saltern_core::ids::ConversationId;
use saltern_core::limits::PAGE_LIMIT_DEFAULT as LIMIT;
use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use saltern_service::conversations::Conversations;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::bench::partitions) enum Design {
    Classic,
    ChunkKeys,
    Saltern,
}

impl Design {
    pub(in crate::bench::partitions) fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::ChunkKeys => "chunk keys",
            Self::Saltern => "saltern",
        }
    }
}

/// A conversation with so many messages.
pub(super) struct Reader {
    chat: Chat,
    conversation: ConversationId,
    messages: u64,
}

enum Chat {
    /// With every cursor that leaves a full page.
    Classic(ClassicChat, Vec<Cursor>),
    Chunks(ChunkKeys),
    Saltern(Conversations),
}

impl Reader {
    /// Cursors cannot be made up here, so a walk through all pages collects them.
    pub(super) async fn classic(chat: ClassicChat, conversation: ConversationId, messages: u32) -> Result<Self> {
        let (mut cursors, mut next) = (Vec::new(), None);
        loop {
            let page = chat.page(&conversation, next, LIMIT).await?;
            if page.messages.len() < LIMIT {
                break;
            }
            cursors.extend(next);
            next = page.next;
        }
        ensure!(!cursors.is_empty(), "too few messages for an older page");
        Ok(Self { chat: Chat::Classic(chat, cursors), conversation, messages: messages.into() })
    }

    pub(super) fn chunks(chat: ChunkKeys, conversation: ConversationId, messages: u32) -> Self {
        Self { chat: Chat::Chunks(chat), conversation, messages: messages.into() }
    }

    pub(super) fn saltern(service: Conversations, conversation: ConversationId, messages: u32) -> Self {
        Self { chat: Chat::Saltern(service), conversation, messages: messages.into() }
    }

    pub(super) async fn newest(&self) -> Result<()> {
        full(match &self.chat {
            Chat::Classic(chat, _) => chat.page(&self.conversation, None, LIMIT).await?.messages.len(),
            Chat::Chunks(chat) => chat.page(&self.conversation, None, LIMIT).await?.len(),
            Chat::Saltern(service) => service.older(&self.conversation, None, LIMIT).await?.messages.len(),
        })
    }

    /// Anywhere that leaves a full page.
    pub(super) async fn older(&self, rng: &mut SplitMix64) -> Result<()> {
        let before = LIMIT as u64 + 1 + rng.below(self.messages - LIMIT as u64);
        full(match &self.chat {
            Chat::Classic(chat, cursors) => {
                let cursor = usize::try_from(rng.below(cursors.len() as u64)).ok().and_then(|i| cursors.get(i));
                chat.page(&self.conversation, cursor.copied(), LIMIT).await?.messages.len()
            }
            Chat::Chunks(chat) => chat.page(&self.conversation, Some(before), LIMIT).await?.len(),
            Chat::Saltern(service) => {
                service.older(&self.conversation, SeqNo::new(before), LIMIT).await?.messages.len()
            }
        })
    }
}

/// A page that is not full would make a design look cheap.
fn full(messages: usize) -> Result<()> {
    ensure!(messages == LIMIT, "a page of {messages} messages, not of {LIMIT}");
    Ok(())
}
