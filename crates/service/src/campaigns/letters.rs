//! Dead letters: listed, and sent again.

use saltern_core::campaigns::{DeadLetter, LetterNo};

use super::api::{Applied, CampaignError};
use super::apply::Outcome;
use super::handle::Inner;

impl Inner {
    pub(super) async fn dead_letters(&self, limit: usize) -> Result<Vec<(LetterNo, DeadLetter)>, CampaignError> {
        Ok(self.settle(self.put_deadline(), || self.store.dead_letters(limit)).await?)
    }

    /// A letter is removed after its event has been taken, so one that is cut off in between is only taken twice.
    pub(super) async fn replay(&self, limit: usize) -> Result<Applied, CampaignError> {
        let mut done = Applied::default();
        for (index, (number, letter)) in self.dead_letters(limit).await?.into_iter().enumerate() {
            let outcome = if letter.cut {
                Outcome::Rejected("the event was too long to be kept whole; send it again from where it came".into())
            } else {
                self.apply_one(letter.event.as_bytes()).await?
            };
            if !matches!(outcome, Outcome::Rejected(_)) {
                self.settle(self.put_deadline(), || self.store.remove_dead_letter(number)).await?;
            }
            done.count(index, outcome);
        }
        Ok(done)
    }
}
