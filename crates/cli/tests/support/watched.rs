//! What clients have seen of one conversation since the beginning, under the eyes of the judge.

use std::sync::{Arc, Mutex};

use saltern_core::history::{History, Violation};
use saltern_core::ids::MessageId;
use saltern_core::page::{GapState, Placed};
use saltern_core::record::MessageRow;
use saltern_core::seq::SeqNo;

use super::Client;
use super::client::Lost;

pub struct Watched {
    pub name: String,
    history: Mutex<History>,
}

/// How far a read got.
#[derive(Debug, Clone, Copy)]
pub struct Reached {
    pub after: u64,
    pub at_end: bool,
    /// Voids on the way.
    pub voids: u64,
}

impl Watched {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), history: Mutex::default() }
    }

    fn judge<T>(&self, check: impl FnOnce(&mut History) -> Result<T, Violation>) -> T {
        let mut history = self.history.lock().unwrap();
        check(&mut history).unwrap_or_else(|violation| panic!("conversation {}: {violation}", self.name))
    }

    pub fn acknowledge(&self, message_id: &str, seq: SeqNo) {
        self.judge(|history| history.acknowledge(seq, &MessageId::new(message_id).unwrap()));
    }

    pub fn acknowledged(&self) -> usize {
        self.judge(|history| Ok(history.acknowledged().len()))
    }

    /// The highest seq_no that was acknowledged.
    pub fn head(&self) -> u64 {
        self.judge(|history| Ok(history.acknowledged().iter().map(|(seq, _)| seq.get()).max().unwrap_or(0)))
    }

    /// Reads the page before a seq_no, or the newest; answers where to go on, or `None` if the server could not say now.
    pub async fn read_older(&self, client: &mut Client, before: Option<SeqNo>) -> Result<Option<Option<SeqNo>>, Lost> {
        let start = self.judge(|history| Ok(history.begin_read()));
        let Some(page) = client.older(&self.name, before).await? else { return Ok(None) };
        contents_are_right(&page.messages);
        self.judge(|history| history.older(start, before, &page));
        Ok(Some(page.next_before))
    }

    /// Reads on behind `after`; nowhere, if the server could not say now.
    pub async fn read_on(&self, client: &mut Client, after: u64) -> Result<Reached, Lost> {
        let start = self.judge(|history| Ok(history.begin_read()));
        let Some(page) = client.newer(&self.name, after).await? else {
            return Ok(Reached { after, at_end: false, voids: 0 });
        };
        contents_are_right(&page.messages);
        self.judge(|history| history.newer(start, after, &page));
        let voids =
            page.gaps.iter().filter(|gap| gap.state == GapState::Void).map(|gap| gap.range.iter().count() as u64).sum();
        Ok(Reached { after: page.next_after, at_end: page.at_end, voids })
    }
}

/// Every test message begins with its own id, and goes on with it.
fn contents_are_right(messages: &[Placed<Arc<MessageRow>>]) {
    for message in messages {
        let (id, content) = (message.value.message_id.as_str(), message.value.text().unwrap());
        assert_eq!(*content, id.repeat((content.len() / id.len()).max(1)), "{id}");
    }
}
