//! The campaigns port: what every adapter can do natively, and nothing else.
//!
//! # Contract
//! - **C1 Ordered puts.** A boost is applied exactly if there is none under its key, or one of lower rank; judged in the
//!   same atomic step as the write. So a put may be repeated, and puts may overtake one another: the highest rank stays.
//! - **C2 Durable before answered.** `Applied` means that the row survives a crash of this process; so does `Stale`, for
//!   the row that was in the way.
//! - **C3 Honest outcomes.** As S4 of the messages port: `Throttled` and `Unavailable` on a write mean that certainly
//!   nothing happened, `Unknown` that it may have happened, or may yet.
//! - **C4 Key by key.** A read answers for each key, in order: the row, that there certainly is none, or that it could
//!   not be read now. With `Consistency::Strong` it sees every put that was answered before it began.
//! - **C5 Guarded markets.** A market replaces the one of the revision that its writer has seen, or nothing.
//! - **C6 A bounded shelf of dead letters.** Numbers rise. At most so many are kept as the adapter is told, and the
//!   oldest go first. To remove one that is not there changes nothing, and its number is not given to another.

use async_trait::async_trait;
use saltern_core::campaigns::{
    Boost, BoostKey, BoostPartition, DeadLetter, LetterNo, LocalTime, Look, Market, Standing,
};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_core::limits::DEAD_LETTERS_PAGE_BYTES;

use crate::port::{Consistency, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoostPut {
    Applied,
    /// A boost of the same or a higher rank is there.
    Stale,
}

/// A tenant's market as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct MarketRecord {
    pub market: Market,
    /// 1 for the first, and one more with every change.
    pub revision: u64,
}

/// A page of dead letters as the port has it, for adapters.
pub(crate) struct DeadLetterPage {
    letters: Vec<(LetterNo, DeadLetter)>,
    limit: usize,
    bytes: usize,
}

impl DeadLetterPage {
    pub(crate) fn new(limit: usize) -> Self {
        Self { letters: Vec::new(), limit, bytes: 0 }
    }

    /// How many more it may hold.
    pub(crate) fn room(&self) -> usize {
        if self.bytes < DEAD_LETTERS_PAGE_BYTES { self.limit.saturating_sub(self.letters.len()) } else { 0 }
    }

    pub(crate) fn push(&mut self, number: LetterNo, letter: DeadLetter) {
        self.bytes += letter.event.len() + letter.reason.len();
        self.letters.push((number, letter));
    }

    /// Newest first.
    pub(crate) fn finish(mut self) -> Vec<(LetterNo, DeadLetter)> {
        self.letters.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        self.letters
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarketPut {
    Applied,
    /// Another has been written in the meantime.
    Conflict,
}

/// The campaigns table.
#[async_trait]
pub trait CampaignStore: Send + Sync + 'static {
    /// Writes one boost if it outranks the one that is there (C1–C3).
    async fn put_boost(&self, key: &BoostKey, boost: &Boost) -> Result<BoostPut, StoreError>;

    /// Reads boosts by exact key (C4). At most `BOOST_BATCH_MAX` keys, which differ.
    async fn boosts(&self, keys: &[BoostKey], consistency: Consistency) -> Result<Vec<Look>, StoreError>;

    /// What the boosts of partners come to at some time, partner by partner and for each in the order of the partitions:
    /// a read as `boosts` does it, for adapters that need not make keys and hand out rows for it.
    async fn standings(
        &self,
        partitions: &[BoostPartition],
        partners: &[PartnerId],
        now: &LocalTime<'_>,
        consistency: Consistency,
    ) -> Result<Vec<Standing>, StoreError> {
        let keys_of = |partner| partitions.iter().map(move |partition| partition.key(partner));
        let looks = self.boosts(&partners.iter().flat_map(keys_of).collect::<Vec<_>>(), consistency).await?;
        Ok(looks.iter().map(|look| look.standing(now)).collect())
    }

    /// Writes a tenant's market if the one before it has the revision before it (C5).
    async fn put_market(&self, tenant: &TenantId, record: &MarketRecord) -> Result<MarketPut, StoreError>;

    /// Reads a tenant's market, strongly.
    async fn market(&self, tenant: &TenantId) -> Result<Option<MarketRecord>, StoreError>;

    /// Puts a rejected event on the shelf (C6).
    async fn add_dead_letter(&self, letter: &DeadLetter) -> Result<(), StoreError>;

    /// The newest dead letters, or the newest of those with lower numbers than this one; newest first (C6). They are fewer
    /// than the limit if there are no more, or if their text has come to `DEAD_LETTERS_PAGE_BYTES`.
    async fn dead_letters(
        &self,
        before: Option<LetterNo>,
        limit: usize,
    ) -> Result<Vec<(LetterNo, DeadLetter)>, StoreError>;

    /// One of them (C6).
    async fn dead_letter(&self, number: LetterNo) -> Result<Option<DeadLetter>, StoreError>;

    /// Takes one off the shelf (C6).
    async fn remove_dead_letter(&self, number: LetterNo) -> Result<(), StoreError>;
}
