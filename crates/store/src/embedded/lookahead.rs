//! Claims and boosts are looked up by their callers, many at once, before the one thread that commits gets to see them. What a caller
//! has found holds unless a later commit has written the same key, and of those the thread keeps a short list.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fjall::Slice;

/// Commits that the list reaches back. A caller rarely waits for more than two.
const COMMITS_MAX: usize = 16;

/// How many commits are visible to readers.
#[derive(Debug, Clone, Default)]
pub(super) struct Commits(Arc<AtomicU64>);

impl Commits {
    /// To be asked before looking anything up: a look-up sees at least the commits counted here.
    pub(super) fn visible(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What a caller found under a key.
pub(super) struct Found {
    pub(super) row: Option<Slice>,
    /// `Commits::visible` before the look.
    pub(super) as_of: u64,
}

/// The keys that the latest commits have written. Kept by the one thread that writes.
#[derive(Default)]
pub(super) struct Latest {
    commits: Commits,
    written_by: HashMap<Slice, u64>,
    batches: VecDeque<Vec<Slice>>,
}

impl Latest {
    pub(super) fn new(commits: Commits) -> Self {
        Self { commits, ..Self::default() }
    }

    /// Whether what was found is still what is there.
    pub(super) fn confirms(&self, key: &Slice, found: &Found) -> bool {
        let reaches_back_to = self.commits.visible() - self.batches.len() as u64;
        found.as_of >= reaches_back_to && self.written_by.get(key).is_none_or(|commit| *commit <= found.as_of)
    }

    /// A commit has become visible.
    pub(super) fn committed(&mut self, keys: Vec<Slice>) {
        let commit = self.commits.visible() + 1;
        for key in &keys {
            self.written_by.insert(key.clone(), commit);
        }
        self.batches.push_back(keys);
        if self.batches.len() > COMMITS_MAX {
            let forgotten = commit - COMMITS_MAX as u64;
            for key in self.batches.pop_front().into_iter().flatten() {
                if self.written_by.get(&key).is_some_and(|written| *written <= forgotten) {
                    self.written_by.remove(&key);
                }
            }
        }
        self.commits.0.store(commit, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(as_of: u64) -> Found {
        Found { row: None, as_of }
    }

    #[test]
    fn a_look_holds_until_its_key_is_written_or_too_long_ago() {
        let commits = Commits::default();
        let mut latest = Latest::new(commits.clone());
        let (a, b) = (Slice::from("a"), Slice::from("b"));
        assert!(latest.confirms(&a, &found(0)));
        latest.committed(vec![a.clone()]);
        assert_eq!(commits.visible(), 1);
        assert!(!latest.confirms(&a, &found(0)) && latest.confirms(&a, &found(1)) && latest.confirms(&b, &found(0)));
        for _ in 1..COMMITS_MAX {
            latest.committed(vec![]);
        }
        assert!(!latest.confirms(&a, &found(0)) && latest.confirms(&b, &found(0)));
        latest.committed(vec![]);
        assert!(!latest.confirms(&a, &found(0)) && !latest.confirms(&b, &found(0)) && latest.confirms(&a, &found(1)));
        assert!(latest.written_by.is_empty());
    }

    #[test]
    fn a_key_written_again_is_remembered_as_long_as_its_last_commit() {
        let mut latest = Latest::new(Commits::default());
        let a = Slice::from("a");
        latest.committed(vec![a.clone()]);
        latest.committed(vec![a.clone()]);
        for _ in 0..COMMITS_MAX - 1 {
            latest.committed(vec![]);
        }
        assert!(!latest.confirms(&a, &found(1)));
    }
}
