//! Campaigns to compare designs by, and Saltern's answers to compare them with.

use std::sync::Arc;

use saltern_core::campaigns::{DistrictId, Event, Market, MarketModel, Moment, RawEvent, Slot, TimeOfDay};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_service::campaigns::{Campaigns, Config, LookupQuery};
use saltern_store::campaigns::memory::MemoryCampaigns;
use saltern_store::{CampaignStore as _, MarketPut, MarketRecord};

use crate::Boosted;

/// Monday the 16th of November 2026, 00:00 UTC.
pub(crate) const MONDAY_MS: i64 = 1_794_787_200_000;
const HOUR_MS: i64 = 3_600_000;

pub(crate) fn tenant() -> TenantId {
    TenantId::new("de").unwrap()
}

pub(crate) fn market(model: MarketModel) -> Market {
    let time = |text| TimeOfDay::parse(text).unwrap();
    let slot = |(name, from, to)| (name, Slot::new(time(from), time(to)).unwrap());
    let slots = [("lunch", "11:00", "15:00"), ("dinner", "17:00", "22:00"), ("night", "22:00", "02:00")];
    Market::new(model, "Europe/Berlin", slots.map(slot)).unwrap()
}

pub(crate) fn partner(i: u32) -> PartnerId {
    PartnerId::new(&format!("p{i}")).unwrap()
}

pub(crate) fn district(name: &str) -> DistrictId {
    DistrictId::new(name).unwrap()
}

pub(crate) fn at(hours: i64) -> Moment {
    Moment::from_ms(MONDAY_MS + hours * HOUR_MS).unwrap()
}

/// Every two hours of a week and a day.
pub(crate) fn instants() -> impl Iterator<Item = Moment> {
    (0..8 * 12).map(|i| at(i * 2))
}

/// A campaign of a partner for all areas, with these days and slots.
pub(crate) fn event(i: u32, days: &[&str], slots: &[&str]) -> Event {
    let raw = RawEvent { partner_id: format!("p{i}"), ..raw(days, slots) };
    checked(&raw, MarketModel::Wildcard)
}

fn raw(days: &[&str], slots: &[&str]) -> RawEvent {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    RawEvent {
        tenant: "de".into(),
        delivery_areas: vec!["*".into()],
        boost_score: Some(1.5),
        days_of_week: texts(days),
        time_slots: texts(slots),
        last_updated_ms: MONDAY_MS - 1_000,
        ..RawEvent::default()
    }
}

fn checked(raw: &RawEvent, model: MarketModel) -> Event {
    Event::new(raw, &market(model), at(0)).unwrap()
}

/// Partners 0 to 9 with schedules of all kinds, some of which change, end, come late or twice.
pub(crate) fn events() -> Vec<Event> {
    let schedules: [(&[&str], &[&str]); 5] = [
        (&[], &[]),
        (&["monday"], &["lunch"]),
        (&["sunday", "tuesday"], &["night"]),
        (&[], &["lunch", "dinner", "night"]),
        (&["saturday"], &["all-day"]),
    ];
    let mut events = Vec::new();
    for i in 0..10_u32 {
        let (days, slots) = schedules[i as usize % schedules.len()];
        let first = RawEvent { partner_id: format!("p{i}"), boost_score: Some(1.0 + f64::from(i)), ..raw(days, slots) };
        let (days, slots) = schedules[(i as usize + i as usize / 5 + 1) % schedules.len()];
        let later = |ms| RawEvent { last_updated_ms: first.last_updated_ms + ms, ..first.clone() };
        events.push(match i {
            // It changes its mind.
            1 | 3 | 5 => RawEvent { boost_score: Some(9.0), ..raw(days, slots) },
            2 => RawEvent { starts_at_ms: Some(at(30).as_ms()), ends_at_ms: Some(at(100).as_ms()), ..later(0) },
            _ => first.clone(),
        });
        if let Some(last) = events.last_mut() {
            last.partner_id.clone_from(&first.partner_id);
            last.last_updated_ms += i64::from(i % 2);
        }
        events.push(first.clone());
        if i == 4 || i == 7 {
            events.push(RawEvent { delivery_areas: vec![], ended_areas: vec!["*".into()], ..later(5) });
            events.push(later(4));
        }
    }
    events.iter().map(|raw| checked(raw, MarketModel::Wildcard)).collect()
}

/// The same, with some campaigns for districts beside those for all.
pub(crate) fn zoned_events() -> Vec<Event> {
    let own = |i: u32, area: &str, days: &[&str], slots: &[&str]| {
        let areas = vec![area.to_owned()];
        let raw = RawEvent { partner_id: format!("p{i}"), delivery_areas: areas, ..raw(days, slots) };
        checked(&RawEvent { boost_score: Some(0.5), ..raw }, MarketModel::Zoned)
    };
    let own = [
        own(0, "BER-01", &[], &["lunch"]),
        own(1, "BER-01", &["friday"], &[]),
        own(8, "BER-02", &[], &[]),
        own(20, "BER-01", &[], &[]),
    ];
    events().into_iter().chain(own).collect()
}

/// Saltern itself, with these events.
pub(crate) struct Saltern(Campaigns);

impl Saltern {
    pub(crate) async fn with(model: MarketModel, events: &[Event]) -> Self {
        let store = MemoryCampaigns::default();
        let record = MarketRecord { market: market(model), revision: 1 };
        assert_eq!(store.put_market(&tenant(), &record).await.unwrap(), MarketPut::Applied);
        for (key, boost) in events.iter().flat_map(Event::boosts) {
            store.put_boost(&key, &boost).await.unwrap();
        }
        Self(Campaigns::new(Arc::new(store), Config::new(Arc::new(|| 0), 1)))
    }

    pub(crate) async fn search(
        &self,
        district: Option<&DistrictId>,
        partners: &[PartnerId],
        at: Moment,
    ) -> Vec<Boosted> {
        let (tenant, partners) = (tenant(), partners.to_vec());
        let query = LookupQuery { tenant, district: district.cloned(), partners, at: Some(at) };
        let found = self.0.lookup(query).await.unwrap();
        assert_eq!(found.unread().count(), 0);
        let boosted = |found: saltern_service::campaigns::Boosted<'_>| Boosted {
            partner: found.partner.clone(),
            score: found.score,
            area: found.area.clone(),
        };
        found.boosted().map(boosted).collect()
    }
}
