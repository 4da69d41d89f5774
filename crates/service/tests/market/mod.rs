//! Markets, events and questions, in short forms.

use std::sync::Arc;

use saltern_core::campaigns::{DistrictId, Market, MarketModel, Moment, Slot, TimeOfDay};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_service::campaigns::{Boosts, Campaigns, Config, LookupQuery};
use saltern_store::CampaignStore;
use serde_json::{Value, json};

pub(crate) const NOW_MS: u64 = 1_794_828_600_000;

pub(crate) fn service(store: Arc<dyn CampaignStore>) -> Campaigns {
    service_with(store, |_| {})
}

pub(crate) fn service_with(store: Arc<dyn CampaignStore>, adjust: impl FnOnce(&mut Config)) -> Campaigns {
    let mut config = Config::new(Arc::new(|| NOW_MS), 1);
    adjust(&mut config);
    Campaigns::new(store, config)
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub(crate) fn market(model: MarketModel) -> Market {
    let time = |text| TimeOfDay::parse(text).unwrap();
    let lunch = Slot::new(time("11:00"), time("15:00")).unwrap();
    Market::new(model, "Europe/Berlin", [("lunch", lunch)]).unwrap()
}

/// An active campaign in these areas, as of `NOW_MS` plus this.
pub(crate) fn event(tenant: &str, partner: &str, areas: &[&str], at: i64) -> Value {
    json!({"tenant": tenant, "partner_id": partner, "delivery_areas": areas, "boost_score": 1.5,
           "last_updated": i64::try_from(NOW_MS).unwrap() + at})
}

pub(crate) fn ended(tenant: &str, partner: &str, areas: &[&str], at: i64) -> Value {
    json!({"tenant": tenant, "partner_id": partner, "ended_areas": areas,
           "last_updated": i64::try_from(NOW_MS).unwrap() + at})
}

pub(crate) fn query(tenant_name: &str, district: Option<&str>, partners: &[&str]) -> LookupQuery {
    LookupQuery {
        tenant: tenant(tenant_name),
        district: district.map(|district| DistrictId::new(district).unwrap()),
        partners: partners.iter().map(|partner| PartnerId::new(partner).unwrap()).collect(),
        at: Some(Moment::from_ms(i64::try_from(NOW_MS).unwrap()).unwrap()),
    }
}

/// Applies one event, and says what became of it.
pub(crate) async fn apply(campaigns: &Campaigns, event: &Value) -> &'static str {
    let done = campaigns.apply(&[event.to_string()]).await.unwrap();
    match (done.applied, done.stale, done.rejected.len()) {
        (1, 0, 0) => "applied",
        (0, 1, 0) => "stale",
        (0, 0, 1) => "rejected",
        _ => panic!("{done:?}"),
    }
}

/// Partner, score and area of each boost.
pub(crate) fn shown(boosts: &Boosts) -> Vec<(String, f64, String)> {
    boosts.boosted().map(|b| (b.partner.to_string(), b.score.get(), b.area.to_string())).collect()
}
