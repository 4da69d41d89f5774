//! The messages: who sent what, where it is said to be, and how long that took.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Result;
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::message::{Body, Draft};
use saltern_service::conversations::Conversations;
use tokio::task::JoinSet;

use crate::histogram::Histogram;

/// With everything else in a row, still one write unit.
const CONTENT_BYTES: usize = 100;

/// An acknowledgement: this message is at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acked {
    pub(super) message: u64,
    pub(super) seq: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) acked: Vec<Acked>,
    pub(super) refused: u64,
    /// Since it was last taken.
    pub(super) latency: Histogram,
}

pub(super) struct Load {
    service: Conversations,
    conversation: ConversationId,
    body: Body,
    sent: Cell<u64>,
    under_way: RefCell<JoinSet<()>>,
    tally: Arc<Mutex<Tally>>,
}

impl Load {
    pub(super) fn new(service: Conversations, conversation: ConversationId) -> Result<Self> {
        let body = Body {
            sender_id: ParticipantId::new("alice")?,
            receiver_id: None,
            content: "x".repeat(CONTENT_BYTES),
            timestamp: None,
        };
        Ok(Self {
            service,
            conversation,
            body,
            sent: Cell::new(0),
            under_way: RefCell::default(),
            tally: Arc::default(),
        })
    }

    /// Sends a message and does not wait for it.
    pub(super) fn send(&self) {
        let mut under_way = self.under_way.borrow_mut();
        while under_way.try_join_next().is_some() {}
        let message = self.sent.get() + 1;
        self.sent.set(message);
        let draft = MessageId::new(&message.to_string()).map(|id| Draft::new(id, self.body.clone()));
        let Ok(Ok(draft)) = draft else { return };
        let (service, conversation) = (self.service.clone(), self.conversation.clone());
        let tally = Arc::clone(&self.tally);
        under_way.spawn(async move {
            let began = Instant::now();
            let appended = service.append(&conversation, draft).await;
            let mut tally = lock(&tally);
            match appended {
                Ok(appended) => {
                    tally.acked.push(Acked { message, seq: appended.seq.get() });
                    tally.latency.record(began.elapsed());
                }
                Err(_) => tally.refused += 1,
            }
        });
    }

    pub(super) fn tally(&self) -> MutexGuard<'_, Tally> {
        lock(&self.tally)
    }

    /// Waits for every answer.
    pub(super) async fn settle(self) -> Tally {
        let mut under_way = self.under_way.into_inner();
        while under_way.join_next().await.is_some() {}
        std::mem::take(&mut *lock(&self.tally))
    }
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
