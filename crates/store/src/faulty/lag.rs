//! What eventual reads may still miss.

use std::collections::VecDeque;
use std::time::Duration;

use saltern_core::key::Key;
use saltern_core::record::Record;
use tokio::time::Instant;

/// Puts remembered at the most; older ones count as seen by everyone.
const RECENT_MAX: usize = 4_096;

struct RecentPut {
    at: Instant,
    key: Key,
    before: Option<Record>,
}

/// The latest puts with the rows that they replaced, oldest first.
#[derive(Default)]
pub(super) struct RecentPuts(VecDeque<RecentPut>);

impl RecentPuts {
    pub(super) fn add(&mut self, key: Key, before: Option<Record>, keep: Duration) {
        let at = Instant::now();
        while self.0.front().is_some_and(|put| at - put.at > keep) || self.0.len() >= RECENT_MAX {
            self.0.pop_front();
        }
        self.0.push_back(RecentPut { at, key, before });
    }

    /// The row under a key as it was at an earlier time; `None` if nothing has changed since.
    pub(super) fn as_of(&self, then: Instant, key: &Key) -> Option<&Option<Record>> {
        self.0.iter().find(|put| put.at > then && put.key == *key).map(|put| &put.before)
    }
}
