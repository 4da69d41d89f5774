//! Campaigns: events in whatever order they come, and lookups of exactly the partners asked for.

mod api;
mod apply;
mod handle;
mod json;
mod letters;
mod lookup;
mod markets;
mod metrics;
mod settle;

pub use api::{
    Applied, Boosted, Boosts, CampaignError, Config, DeadLetterFilter, DeadLetters, LookupError, LookupQuery,
    MarketQuestion, Rejected, RejectedAgain, Replayed,
};
pub use handle::Campaigns;
pub use metrics::{CampaignMetrics, EventResult, ResultLabel};
