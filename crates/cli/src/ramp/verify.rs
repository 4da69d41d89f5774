//! Reads the whole conversation back, as a server that has never seen it would.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use saltern_core::limits::PAGE_LIMIT_MAX;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{Config, Conversations};

use tokio::time::sleep;

use super::load::Acked;
use super::stage::Outcome;
use crate::service::now_ms;

/// Holes are sealed after five seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Verified {
    /// Acknowledged messages that were found where they were said to be.
    pub(super) read_back: u64,
    pub(super) lost: u64,
    /// Messages that were found in more than one place.
    pub(super) doubled: u64,
}

pub(super) async fn verify(outcome: &Outcome) -> Result<Verified> {
    let config = Config::new(Arc::new(now_ms), now_ms());
    let service = Conversations::new(outcome.store.clone(), Arc::new(LocalRegistry::new(1)), config);
    let mut found = Vec::new();
    let mut after = 0;
    let mut moved = Instant::now();
    loop {
        let page = service.newer(&outcome.conversation, after, PAGE_LIMIT_MAX).await?;
        for message in &page.messages {
            found.push((message.value.message_id.as_str().to_owned(), message.seq.get()));
        }
        if page.at_end {
            break;
        }
        if page.next_after == after {
            // A hole whose writer has given up. It is sealed when it has been seen for a while.
            anyhow::ensure!(moved.elapsed() < PATIENCE, "the hole behind seq_no {after} was not sealed in time");
            sleep(PAUSE).await;
        } else {
            (after, moved) = (page.next_after, Instant::now());
        }
    }
    service.shut_down().await;
    Ok(judge(&outcome.tally.acked, &found))
}

/// `found` in the order of its pages, which is that of the seq_nos.
fn judge(acked: &[Acked], found: &[(String, u64)]) -> Verified {
    let mut places: HashMap<&str, Vec<u64>> = HashMap::with_capacity(found.len());
    for (message, seq) in found {
        places.entry(message).or_default().push(*seq);
    }
    let in_place = |acked: &&Acked| {
        places.get(acked.message.to_string().as_str()).is_some_and(|places| places.contains(&acked.seq))
    };
    let read_back = acked.iter().filter(in_place).count() as u64;
    let doubled = places.values().filter(|places| places.len() > 1).count() as u64;
    Verified { read_back, lost: acked.len() as u64 - read_back, doubled }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_misplaced_or_twice_is_told() {
        let acked = [(1, 1), (2, 2), (3, 3), (4, 4)].map(|(message, seq)| Acked { message, seq });
        let found = [("1", 1), ("2", 5), ("4", 4), ("4", 6), ("9", 7)].map(|(m, seq)| (m.to_owned(), seq));
        assert_eq!(judge(&acked, &found), Verified { read_back: 2, lost: 2, doubled: 1 });
    }
}
