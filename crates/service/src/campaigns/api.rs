//! What callers of the campaign service see.

use std::time::Duration;

use saltern_core::campaigns::{Answer, Area, DeadLetter, DistrictId, LetterNo, Moment, Score, Standing, decide};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_store::StoreError;

use crate::WallClock;

/// The settings of the campaign service.
#[derive(Clone)]
pub struct Config {
    /// How long one put may take, with its retries.
    pub put_deadline: Duration,
    /// How long a lookup may take; what is not read by then is told as unread.
    pub lookup_deadline: Duration,
    /// Puts under way at once, of all requests together; further ones wait for their turn.
    pub puts_max: usize,
    /// Lookups under way at once; beyond it, callers are told to come back.
    pub lookups_max: usize,
    /// For how long a market is taken as it was last read. Within that time after a change, other servers may still
    /// evaluate schedules by the old one. Events are never turned away by it: that is looked up anew.
    pub market_staleness: Duration,
    /// Markets remembered; the idlest are forgotten first.
    pub markets_max: usize,
    /// For what lies ahead or is active now, never for order.
    pub wall_clock: WallClock,
    /// Where the jitter of pauses starts.
    pub jitter_seed: u64,
}

impl Config {
    /// The product's settings.
    pub fn new(wall_clock: WallClock, jitter_seed: u64) -> Self {
        Self {
            put_deadline: Duration::from_secs(10),
            lookup_deadline: Duration::from_secs(1),
            puts_max: 1_024,
            lookups_max: 4_096,
            market_staleness: Duration::from_secs(10),
            markets_max: 10_000,
            wall_clock,
            jitter_seed,
        }
    }
}

/// What became of events, each counted once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// At least one of its areas took the event.
    pub applied: u64,
    /// All of its areas knew as much already, or more.
    pub stale: u64,
    /// In the order of the events.
    pub rejected: Vec<Rejected>,
}

/// An event that is now a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    pub index: usize,
    pub reason: String,
}

/// Which dead letters are meant; without anything, all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadLetterFilter {
    /// A part of the reason.
    pub reason: Option<String>,
    /// The tenant that the event names, whether there is one or not.
    pub tenant: Option<TenantId>,
}

/// Newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeadLetters {
    pub letters: Vec<(LetterNo, DeadLetter)>,
    /// After which letter the next page begins; `None` if there are no more.
    pub next_after: Option<LetterNo>,
}

/// What became of dead letters, each counted once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replayed {
    pub applied: u64,
    pub stale: u64,
    /// These are dead letters still.
    pub rejected: Vec<RejectedAgain>,
    /// Asked for by their numbers, and not there.
    pub missing: Vec<LetterNo>,
    /// After which letter the next call goes on; `None` if there are no more.
    pub next_after: Option<LetterNo>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedAgain {
    pub number: LetterNo,
    pub reason: String,
}

/// Why a call came to no end. It may have had part of its effect, and may be repeated: no event counts twice.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CampaignError {
    #[error("store did not answer in time")]
    Unavailable(#[source] StoreError),
    #[error("store failed")]
    Damaged(#[source] StoreError),
}

impl From<StoreError> for CampaignError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged(_) => Self::Damaged(error),
            StoreError::Throttled | StoreError::Unavailable(_) | StoreError::Unknown(_) => Self::Unavailable(error),
        }
    }
}

/// Who of these is boosted?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupQuery {
    pub tenant: TenantId,
    /// Needed in a zoned market; in a wildcard market it makes no difference.
    pub district: Option<DistrictId>,
    /// Asked about once each, however often they are named.
    pub partners: Vec<PartnerId>,
    /// Now, if it is not said.
    pub at: Option<Moment>,
}

/// A question that the tenant's market has no answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MarketQuestion {
    #[error("district is needed, since the market is zoned")]
    NoDistrict,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum LookupError {
    #[error("tenant {0:?} is not known")]
    UnknownTenant(TenantId),
    #[error(transparent)]
    Question(#[from] MarketQuestion),
    #[error("too many requests under way")]
    Overloaded,
    #[error(transparent)]
    Store(#[from] CampaignError),
}

impl From<StoreError> for LookupError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

/// Who of the partners is boosted: each of them once, in the order of the question.
#[derive(Debug, Clone, PartialEq)]
pub struct Boosts {
    pub(super) partners: Vec<PartnerId>,
    /// Where was looked.
    pub(super) areas: Vec<Area>,
    /// Of each partner in each of the areas.
    pub(super) standings: Vec<Standing>,
}

impl Boosts {
    pub fn boosted(&self) -> impl Iterator<Item = Boosted<'_>> {
        self.answers().filter_map(|(partner, answer)| match answer {
            Answer::Boosted(winner) => {
                Some(Boosted { partner, score: winner.score, area: self.areas.get(winner.place)? })
            }
            Answer::NotBoosted | Answer::Unread => None,
        })
    }

    /// Whether these are boosted is not known (I8).
    pub fn unread(&self) -> impl Iterator<Item = &PartnerId> {
        self.answers().filter(|(_, answer)| *answer == Answer::Unread).map(|(partner, _)| partner)
    }

    fn answers(&self) -> impl Iterator<Item = (&PartnerId, Answer)> {
        let standings = self.standings.chunks(self.areas.len());
        self.partners.iter().zip(standings.map(|standings| decide(standings.iter().copied())))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boosted<'a> {
    pub partner: &'a PartnerId,
    pub score: Score,
    /// Whose boost it is.
    pub area: &'a Area,
}
