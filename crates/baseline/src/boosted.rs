use saltern_core::campaigns::{Area, Score};
use saltern_core::ids::PartnerId;

/// What a search finds out about one of its partners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boosted {
    pub partner: PartnerId,
    pub score: Score,
    /// Whose boost it is.
    pub area: Area,
}
