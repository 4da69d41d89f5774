//! Filling conversations.

use anyhow::Result;
use futures_util::future::try_join_all;
use saltern_baseline::chunks::ChunkKeys;
use saltern_baseline::classic::ClassicChat;
use saltern_core::ids::ConversationId;
use saltern_core::message::Draft;
use saltern_service::conversations::Conversations;

use super::super::drafts::Drafts;

/// Written at once.
const BATCH: u32 = 256;

pub(super) async fn classic(chat: &ClassicChat, conversation: &ConversationId, messages: u32) -> Result<()> {
    // A millisecond for each, so that no two meet under one sort key.
    let write = async |i: u32, draft: Draft| Ok(chat.append(conversation, &draft, i.into()).await?);
    fill(messages, &Drafts::new()?, write).await
}

pub(super) async fn chunks(chat: &ChunkKeys, conversation: &ConversationId, messages: u32) -> Result<()> {
    let write = async |i: u32, draft: Draft| {
        chat.append(conversation, &draft, i.into()).await?;
        Ok(())
    };
    fill(messages, &Drafts::new()?, write).await
}

/// `drafts` that go on where an earlier filling ended, if there was one: a message_id is one message.
pub(super) async fn saltern(
    service: &Conversations,
    conversation: &ConversationId,
    drafts: &Drafts,
    messages: u32,
) -> Result<()> {
    let write = async |_: u32, draft: Draft| {
        service.append(conversation, draft).await?;
        Ok(())
    };
    fill(messages, drafts, write).await
}

async fn fill(messages: u32, drafts: &Drafts, write: impl AsyncFn(u32, Draft) -> Result<()>) -> Result<()> {
    for first in (0..messages).step_by(BATCH as usize) {
        let batch = first..messages.min(first.saturating_add(BATCH));
        let write = &write;
        try_join_all(batch.map(|i| async move { write(i, drafts.next()?).await })).await?;
    }
    Ok(())
}
