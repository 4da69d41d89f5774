//! Dead letters: listed, and sent again.

use std::collections::VecDeque;

use saltern_core::campaigns::{DeadLetter, LetterNo};
use saltern_core::limits::{DEAD_LETTERS_PAGE_BYTES, DEAD_LETTERS_SEARCHED_BYTES, PAGE_LIMIT_MAX};

use super::api::{CampaignError, DeadLetterFilter, DeadLetters, RejectedAgain, Replayed};
use super::apply::Outcome;
use super::handle::Inner;
use super::json;

impl DeadLetterFilter {
    fn holds(&self, letter: &DeadLetter) -> bool {
        let reason = self.reason.as_ref().is_none_or(|part| letter.reason.contains(part));
        reason && self.tenant.as_ref().is_none_or(|tenant| json::tenant(&letter.event).as_ref() == Some(tenant))
    }

    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A walk from newer to older letters, a page of the store at a time.
struct Walk<'a> {
    inner: &'a Inner,
    filter: &'a DeadLetterFilter,
    page: VecDeque<(LetterNo, DeadLetter)>,
    /// Up to which letters have been read, and up to which they have been walked past.
    read: Option<LetterNo>,
    passed: Option<LetterNo>,
    searched_bytes: usize,
}

impl<'a> Walk<'a> {
    fn new(inner: &'a Inner, filter: &'a DeadLetterFilter, after: Option<LetterNo>) -> Self {
        Self { inner, filter, page: VecDeque::new(), read: after, passed: after, searched_bytes: 0 }
    }

    /// Whether there is another letter, of any kind. One that was read already is no call.
    async fn has_more(&mut self, wanted: usize) -> Result<bool, CampaignError> {
        if self.page.is_empty() {
            let limit = if self.filter.is_empty() { wanted } else { PAGE_LIMIT_MAX };
            let before = self.read;
            let read = || self.inner.store.dead_letters(before, limit);
            self.page = self.inner.settle(self.inner.put_deadline(), read).await?.into();
            self.read = self.page.back().map(|(number, _)| *number).or(self.read);
        }
        Ok(!self.page.is_empty())
    }

    /// The next letter that the filter holds for; `None` if there is none, or enough has been looked through.
    async fn next(&mut self, wanted: usize) -> Result<Option<(LetterNo, DeadLetter)>, CampaignError> {
        while self.searched_bytes < DEAD_LETTERS_SEARCHED_BYTES && self.has_more(wanted).await? {
            let Some((number, letter)) = self.page.pop_front() else { break };
            self.passed = Some(number);
            self.searched_bytes += letter.event.len() + letter.reason.len();
            if self.filter.holds(&letter) {
                return Ok(Some((number, letter)));
            }
        }
        Ok(None)
    }

    /// Where the next call goes on; `None` if nothing is left.
    async fn end(mut self) -> Result<Option<LetterNo>, CampaignError> {
        Ok(if self.has_more(1).await? { self.passed } else { None })
    }
}

impl Inner {
    pub(super) async fn dead_letters(
        &self,
        filter: &DeadLetterFilter,
        after: Option<LetterNo>,
        limit: usize,
    ) -> Result<DeadLetters, CampaignError> {
        let mut walk = Walk::new(self, filter, after);
        let (mut letters, mut bytes) = (Vec::new(), 0);
        // One more than is asked for tells whether that was all.
        while letters.len() < limit && bytes < DEAD_LETTERS_PAGE_BYTES {
            let Some((number, letter)) = walk.next(limit - letters.len() + 1).await? else { break };
            bytes += letter.event.len() + letter.reason.len();
            letters.push((number, letter));
        }
        Ok(DeadLetters { letters, next_after: walk.end().await? })
    }

    /// Up to so many of the letters. What is rejected again stays where it is, and the next call goes on after it.
    pub(super) async fn replay(
        &self,
        filter: &DeadLetterFilter,
        after: Option<LetterNo>,
        limit: usize,
    ) -> Result<Replayed, CampaignError> {
        let mut walk = Walk::new(self, filter, after);
        let mut done = Replayed::default();
        for left in (1..=limit).rev() {
            let Some((number, letter)) = walk.next(left + 1).await? else { break };
            self.replay_one(number, &letter, &mut done).await?;
        }
        done.next_after = walk.end().await?;
        Ok(done)
    }

    pub(super) async fn replay_these(&self, numbers: &[LetterNo]) -> Result<Replayed, CampaignError> {
        let mut done = Replayed::default();
        for number in numbers {
            match self.settle(self.put_deadline(), || self.store.dead_letter(*number)).await? {
                Some(letter) => self.replay_one(*number, &letter, &mut done).await?,
                None => done.missing.push(*number),
            }
        }
        Ok(done)
    }

    /// A letter is removed after its event has been taken, so one that is cut off in between is only taken twice.
    async fn replay_one(
        &self,
        number: LetterNo,
        letter: &DeadLetter,
        done: &mut Replayed,
    ) -> Result<(), CampaignError> {
        let outcome = if letter.cut {
            Outcome::Rejected("the event was too long to be kept whole; send it again from where it came".into())
        } else {
            self.apply_one(letter.event.as_bytes()).await?
        };
        if !matches!(outcome, Outcome::Rejected(_)) {
            self.settle(self.put_deadline(), || self.store.remove_dead_letter(number)).await?;
        }
        match outcome {
            Outcome::Applied => done.applied += 1,
            Outcome::Stale => done.stale += 1,
            Outcome::Rejected(reason) => done.rejected.push(RejectedAgain { number, reason }),
        }
        Ok(())
    }
}
