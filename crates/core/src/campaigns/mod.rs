//! Campaigns: which partners are boosted, where and when.
//!
//! A *market* says what days and slots mean, an *event* is the whole truth about a partner in the areas that it lists,
//! and each area becomes one *boost*, a row whose place is known beforehand. Boosts are ordered, so that the same events
//! end in the same rows however often and in whatever order they arrive (I8).

mod area;
mod boost;
mod days;
mod dead_letter;
mod event;
mod key;
mod lookup;
mod market;
mod moment;
mod rfc3339;
mod schedule;
mod slot;
mod zones;

#[cfg(test)]
mod order_tests;

pub use area::{Area, AreaError, DistrictId};
pub use boost::{Boost, Rank, Score, ScoreError, State, Terms};
pub use days::{Day, DaySet, UnknownDay};
pub use dead_letter::{DeadLetter, LetterNo};
pub use event::{Event, RawEvent, Rejection};
pub use key::{BoostKey, BoostPartition, DEAD_LETTERS_PARTITION, TENANT_SORT, boost_sort, tenant_partition};
pub use lookup::{Answer, Areas, Look, Standing, Winner, decide};
pub use market::{LocalTime, Market, MarketError, MarketModel};
pub use moment::{Moment, MomentError};
pub use schedule::{Schedule, Window};
pub use slot::{ALL_DAY, Slot, SlotError, SlotName, TimeOfDay};
pub use zones::{ZoneDatabase, ZoneRelease, ZoneSource, use_zones, zones};
