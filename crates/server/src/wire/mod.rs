//! Requests and responses as they are on the wire.

mod campaigns;
mod incoming;
mod json;
mod outgoing;
mod plain;
mod schema;
mod tenants;
mod upkeep;

pub(crate) use campaigns::{
    BoostAnswer, BoostQuery, CampaignEvents, DeadLetterList, EventsAnswer, RejectedBody, ReplayAnswer, ReplayOrder,
};
pub(crate) use incoming::{Batch, NewMessage, Object};
pub(crate) use json::Json;
pub(crate) use outgoing::{
    Appended, ArchivedParam, BatchAnswer, BatchResult, Conversation, Erased, ErasedAll, Health, HotList, Message,
    Newer, Older, Page, Shelf,
};
pub(crate) use tenants::TenantBody;
pub(crate) use upkeep::{ArchiveAnswer, ArchiveOrder, VerifyAnswer, VerifyOrder};
