//! Reads through to the archive: few requests, bounded in number and in what is kept of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use lru::LruCache;
use saltern_core::archive::{BlockRange, ContentRef, Entry, SegmentError, read_block};
use saltern_core::ids::ConversationId;
use saltern_core::page::Placed;
use saltern_core::record::{Content, MessageRow};
use saltern_core::seq::SeqNo;
use saltern_store::objects::ObjectError;
use saltern_store::{Cause, StoreError};

use super::{Archive, name, single};
use crate::patience::patiently;

/// Requests to object storage under way at once.
pub(super) const FETCHES_MAX: usize = 32;
/// Blocks with at most so many unwanted bytes between them come in one request, up to such a size.
const GAP_BYTES_MAX: u64 = 64 * 1_024;
const REQUEST_BYTES_MAX: u64 = 4 * 1_024 * 1_024;
/// What a message of a block takes beside its text.
const ENTRY_BYTES: usize = 64;

/// Why content that is in the archive cannot be had.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ContentProblem {
    #[error("its object is missing")]
    Missing,
    #[error("its object is damaged")]
    Damaged(#[source] SegmentError),
    /// Not a word on whether it is there.
    #[error("object storage does not answer")]
    Unavailable(#[source] Option<Cause>),
}

impl From<ObjectError> for ContentProblem {
    fn from(error: ObjectError) -> Self {
        match error {
            ObjectError::Missing => Self::Missing,
            ObjectError::TooShort => Self::Damaged(SegmentError::Truncated),
            ObjectError::Unavailable(cause) => Self::Unavailable(Some(cause)),
        }
    }
}

/// A message whose content cannot be had.
#[derive(Debug, Clone)]
pub(in crate::conversations) struct Unread {
    pub(in crate::conversations) seq: SeqNo,
    pub(in crate::conversations) problem: ContentProblem,
}

/// The messages of one block, or the one of an object of its own.
type Texts = Arc<Vec<Entry>>;
type BlockKey = (String, Option<u64>);

/// Blocks as they were read, the least used forgotten first. Objects do not change, so none is out of date.
pub(super) struct BlockCache {
    blocks: Mutex<Blocks>,
    bytes_max: usize,
}

struct Blocks {
    cache: LruCache<BlockKey, Texts>,
    bytes: usize,
    /// How often something was forgotten: what was asked for before that must not be remembered after it.
    forgotten: u64,
}

fn bytes_of(texts: &Texts) -> usize {
    texts.iter().map(|entry| ENTRY_BYTES + entry.text.as_ref().map_or(0, String::len)).sum()
}

impl BlockCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { blocks: Mutex::new(Blocks { cache: LruCache::unbounded(), bytes: 0, forgotten: 0 }), bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, key: &BlockKey) -> Option<Texts> {
        self.lock().cache.get(key).cloned()
    }

    fn forgotten(&self) -> u64 {
        self.lock().forgotten
    }

    /// Keeps what was asked for when so much had been forgotten.
    fn put(&self, key: BlockKey, texts: Texts, forgotten: u64) {
        let mut blocks = self.lock();
        if blocks.forgotten != forgotten {
            return;
        }
        blocks.bytes += bytes_of(&texts);
        if let Some(before) = blocks.cache.put(key, texts) {
            blocks.bytes -= bytes_of(&before);
        }
        while blocks.bytes > self.bytes_max
            && let Some((_, texts)) = blocks.cache.pop_lru()
        {
            blocks.bytes -= bytes_of(&texts);
        }
    }

    /// Forgets what was read from an object.
    pub(super) fn forget(&self, object: &str) {
        let mut blocks = self.lock();
        blocks.forgotten += 1;
        let gone: Vec<_> = blocks.cache.iter().filter(|(key, _)| key.0 == object).map(|(key, _)| key.clone()).collect();
        for key in gone {
            blocks.bytes -= blocks.cache.pop(&key).as_ref().map_or(0, bytes_of);
        }
    }
}

/// Requests that get these blocks, in order: neighbours together.
fn requests(blocks: &BTreeSet<(u64, u64)>) -> Vec<Vec<BlockRange>> {
    let mut requests: Vec<Vec<BlockRange>> = Vec::new();
    for &(offset, bytes) in blocks {
        let block = BlockRange { offset, bytes };
        match requests.last_mut() {
            Some(group)
                if group.last().is_some_and(|last| offset.saturating_sub(last.end()) <= GAP_BYTES_MAX)
                    && block.end().saturating_sub(group[0].offset) <= REQUEST_BYTES_MAX =>
            {
                group.push(block);
            }
            _ => requests.push(vec![block]),
        }
    }
    requests
}

/// What of an object is wanted: all of it, or blocks by offset and length.
#[derive(Default)]
struct Wanted {
    whole: bool,
    blocks: BTreeSet<(u64, u64)>,
}

/// What was found at a place, or why nothing was.
type Found = HashMap<BlockKey, Result<Texts, ContentProblem>>;

impl Archive {
    /// Fetches the contents that are not at hand.
    pub(in crate::conversations) async fn fill(
        &self,
        conversation: &ConversationId,
        rows: &mut [Placed<Arc<MessageRow>>],
    ) -> Result<(), Unread> {
        let wanted = rows.iter().filter(|row| row.value.text().is_none()).filter_map(|row| row.value.archived_at());
        let found = self.find(conversation, wanted).await;
        for row in rows {
            let Content::Archived { at, text: None } = &row.value.content else { continue };
            let text = text_at(&found, conversation, at, row.seq, &row.value);
            let text = Some(text.map_err(|problem| Unread { seq: row.seq, problem })?);
            let content = Content::Archived { at: at.clone(), text };
            row.value = Arc::new(MessageRow { content, ..(*row.value).clone() });
        }
        Ok(())
    }

    /// What is wrong with each of these contents.
    pub(crate) async fn check(
        &self,
        conversation: &ConversationId,
        rows: &[Placed<Arc<MessageRow>>],
    ) -> Result<Vec<Option<ContentProblem>>, StoreError> {
        patiently(self.patience, || async {
            let found = self.find(conversation, rows.iter().filter_map(|row| row.value.archived_at())).await;
            let mut problems = Vec::with_capacity(rows.len());
            for row in rows {
                let text = row.value.archived_at().map(|at| text_at(&found, conversation, at, row.seq, &row.value));
                problems.push(match text.and_then(Result::err) {
                    Some(ContentProblem::Unavailable(cause)) => return Err(ContentProblem::Unavailable(cause).into()),
                    problem => problem,
                });
            }
            Ok(problems)
        })
        .await
    }

    async fn find(&self, conversation: &ConversationId, wanted: impl Iterator<Item = &ContentRef>) -> Found {
        let mut found = Found::new();
        let forgotten = self.blocks.forgotten();
        let mut by_object: BTreeMap<&str, Wanted> = BTreeMap::new();
        for at in wanted {
            let key = key_of(conversation, at);
            if found.contains_key(&key) {
                continue;
            }
            if let Some(texts) = self.blocks.get(&key) {
                found.insert(key, Ok(texts));
                continue;
            }
            let Wanted { whole, blocks } = by_object.entry(&at.leaf).or_default();
            match at.block {
                Some(block) => _ = blocks.insert((block.offset, block.bytes)),
                None => *whole = true,
            }
        }
        let mut asked = Vec::new();
        for (leaf, Wanted { whole, blocks }) in by_object {
            let object = name(conversation, leaf);
            if whole {
                asked.push(vec![(object.clone(), None)]);
            }
            let groups = requests(&blocks);
            asked
                .extend(groups.into_iter().map(|group| group.into_iter().map(|b| (object.clone(), Some(b))).collect()));
        }
        let mut fetching = Vec::with_capacity(asked.len());
        for request in asked {
            fetching.push(self.fetch(request));
        }
        for (key, texts) in join_all(fetching).await.into_iter().flatten() {
            if let Ok(texts) = &texts {
                self.blocks.put(key.clone(), Arc::clone(texts), forgotten);
            }
            found.insert(key, texts);
        }
        found
    }

    /// One request for some blocks of one object; if that cannot be had as a whole, one for each of them.
    async fn fetch(&self, blocks: Vec<(String, Option<BlockRange>)>) -> Vec<(BlockKey, Result<Texts, ContentProblem>)> {
        let range = match (&blocks[0].1, &blocks[blocks.len() - 1].1) {
            (Some(first), Some(last)) => Some(first.offset..last.end()),
            _ => None,
        };
        let start = range.as_ref().map_or(0, |range| range.start);
        match self.get(&blocks[0].0, range).await {
            Ok(bytes) => {
                let part = |block: &Option<BlockRange>| match block {
                    None => Some(&bytes[..]),
                    Some(block) => {
                        let at = usize::try_from(block.offset - start).ok()?;
                        bytes.get(at..at.checked_add(usize::try_from(block.bytes).ok()?)?)
                    }
                };
                let texts = |block| {
                    let part = part(block).ok_or(SegmentError::Truncated);
                    let texts = part.and_then(|part| match block {
                        Some(_) => read_block(part),
                        None => read_single(part),
                    });
                    texts.map(Arc::new).map_err(ContentProblem::Damaged)
                };
                blocks.iter().map(|(object, block)| ((object.clone(), offset(*block)), texts(block))).collect()
            }
            Err(ContentProblem::Damaged(_)) if blocks.len() > 1 => {
                let mut all = Vec::with_capacity(blocks.len());
                for block in blocks {
                    all.extend(Box::pin(self.fetch(vec![block])).await);
                }
                all
            }
            Err(problem) => {
                blocks.into_iter().map(|(object, block)| ((object, offset(block)), Err(problem.clone()))).collect()
            }
        }
    }

    async fn get(&self, object: &str, range: Option<Range<u64>>) -> Result<bytes::Bytes, ContentProblem> {
        let _permit = self.fetches.acquire().await.map_err(|_| ContentProblem::Unavailable(None))?;
        Ok(self.objects.get(object, range).await?)
    }
}

fn offset(block: Option<BlockRange>) -> Option<u64> {
    block.map(|block| block.offset)
}

fn key_of(conversation: &ConversationId, at: &ContentRef) -> BlockKey {
    (name(conversation, &at.leaf), offset(at.block))
}

fn read_single(bytes: &[u8]) -> Result<Vec<Entry>, SegmentError> {
    let single = single::decode(bytes)?;
    let seq = SeqNo::new(single.seq_no).ok_or(SegmentError::Damaged)?;
    Ok(vec![Entry { seq, text: single.text_of(seq) }])
}

/// The content of a message among what was found, if it is what was sent.
fn text_at(
    found: &Found,
    conversation: &ConversationId,
    at: &ContentRef,
    seq: SeqNo,
    row: &MessageRow,
) -> Result<String, ContentProblem> {
    let texts = match found.get(&key_of(conversation, at)) {
        Some(Ok(texts)) => texts,
        Some(Err(problem)) => return Err(problem.clone()),
        None => return Err(ContentProblem::Missing),
    };
    let entry = texts.iter().find(|entry| entry.seq == seq).ok_or(SegmentError::Damaged);
    let text = entry.and_then(|entry| entry.text.clone()).map_err(ContentProblem::Damaged)?;
    if row.was_sent_with(&text) { Ok(text) } else { Err(ContentProblem::Damaged(SegmentError::Damaged)) }
}

impl From<ContentProblem> for StoreError {
    fn from(problem: ContentProblem) -> Self {
        Self::Unavailable(Arc::new(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_come_in_one_request() {
        let blocks = BTreeSet::from([(100, 50), (150, 50), (300, 10), (300 + 10 + GAP_BYTES_MAX + 1, 5)]);
        let asked: Vec<_> = requests(&blocks).iter().map(Vec::len).collect();
        assert_eq!(asked, [3, 1]);
        let large: BTreeSet<_> = (0..10).map(|i| (i * 1_000_000, 1_000_000)).collect();
        assert_eq!(requests(&large).iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
    }

    #[test]
    fn the_cache_is_bounded_and_counted_right() {
        let cache = BlockCache::new(10_000);
        let texts = |n: usize| Arc::new(vec![Entry { seq: SeqNo::FIRST, text: Ok("x".repeat(n)) }]);
        for i in 0..100_u64 {
            cache.put((format!("a/{i}"), Some(i)), texts(900), 0);
            cache.put((format!("a/{i}"), Some(i)), texts(1_000), 0);
        }
        let last = || ("a/99".to_owned(), Some(99));
        cache.put(("b/1".into(), None), texts(10), 0);
        assert!(cache.get(&("a/0".into(), Some(0))).is_none() && cache.get(&last()).is_some());
        cache.forget("a/99");
        cache.put(last(), texts(1), 0);
        assert!(cache.get(&last()).is_none());
        let blocks = cache.lock();
        assert_eq!(blocks.bytes, blocks.cache.iter().map(|(_, texts)| bytes_of(texts)).sum::<usize>());
        assert!(blocks.bytes > 1_000 && blocks.bytes <= 10_000);
    }
}
