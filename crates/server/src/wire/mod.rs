//! Requests and responses as they are on the wire.

mod campaigns;
mod incoming;
mod outgoing;
mod tenants;

pub(crate) use campaigns::{BoostAnswer, BoostQuery, CampaignEvents, DeadLetterList, EventsAnswer, RejectedBody};
pub(crate) use incoming::{Batch, NewMessage, Object};
pub(crate) use outgoing::{
    Appended, BatchAnswer, BatchResult, Conversation, Health, HotList, Message, Newer, Older, Page,
};
pub(crate) use tenants::TenantBody;
