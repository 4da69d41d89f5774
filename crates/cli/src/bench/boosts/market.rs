//! A made-up market, in which everyone is boosted everywhere.

use std::sync::Arc;

use anyhow::{Result, ensure};
use saltern_core::campaigns::{
    Area, Boost, BoostKey, DaySet, DistrictId, Market, MarketModel, Moment, Schedule, Score, Slot, SlotName, State,
    Terms, TimeOfDay, Window,
};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_core::rng::SplitMix64;
use serde_json::json;

use crate::args::BoostsArgs;

/// Partners that a search asks about.
pub(super) const SEARCHED: usize = 50;
/// Districts that a partner serves.
pub(super) const SERVED: usize = 15;
/// Together a whole day, so that one of them is always on.
pub(super) const SLOTS: [(&str, &str, &str); 4] = [
    ("breakfast", "05:00", "11:00"),
    ("lunch", "11:00", "15:00"),
    ("dinner", "15:00", "22:00"),
    ("late", "22:00", "05:00"),
];
const TENANT: &str = "de";
const TIME_ZONE: &str = "Europe/Berlin";
const LAST_UPDATED_MS: i64 = 1_763_200_000_000;
/// Searches made beforehand, so that making them is not measured.
const SEARCHES: usize = 1_024;

pub(super) fn tenant() -> Result<TenantId> {
    Ok(TenantId::new(TENANT)?)
}

pub(super) fn market() -> Result<Market> {
    let slot = |(name, from, to)| Ok((name, Slot::new(TimeOfDay::parse(from)?, TimeOfDay::parse(to)?)?));
    let slots = SLOTS.into_iter().map(slot).collect::<Result<Vec<_>>>()?;
    Ok(Market::new(MarketModel::Wildcard, TIME_ZONE, slots)?)
}

/// The tenant as `PUT /v1/tenants/de` takes it.
pub(super) fn tenant_body() -> String {
    let slots: serde_json::Map<_, _> =
        SLOTS.iter().map(|(name, from, to)| ((*name).into(), json!([from, to]))).collect();
    json!({"model": "wildcard", "time_zone": TIME_ZONE, "time_slots": slots}).to_string()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) district: DistrictId,
    pub(super) partners: Vec<PartnerId>,
}

/// When a partner's campaign runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    AllDay,
    /// In each of the market's slots by name.
    InSlots,
}

impl Runs {
    /// Every other campaign runs all day, and those between them in all slots: the same time in other words.
    pub(super) fn of(partner: usize) -> Self {
        if partner.is_multiple_of(2) { Self::AllDay } else { Self::InSlots }
    }
}

pub(super) struct Town {
    pub(super) tenant: TenantId,
    pub(super) market: Market,
    pub(super) partners: Vec<PartnerId>,
    pub(super) districts: Vec<DistrictId>,
    /// The first of the partners, who serve all districts where that is asked for.
    pub(super) wide: usize,
    /// Searches and expanded rows are about the first of the districts alone.
    pub(super) within: usize,
    pub(super) searches: Arc<[Search]>,
}

impl Town {
    pub(super) fn new(args: &BoostsArgs) -> Result<Self> {
        let (partners, districts) = (args.partners as usize, args.districts as usize);
        let partner = |i| PartnerId::new(&partner_id(i));
        let district = |i| DistrictId::new(&format!("D-{i:04}"));
        let mut town = Self {
            tenant: tenant()?,
            market: market()?,
            partners: (0..partners).map(partner).collect::<Result<_, _>>()?,
            districts: (0..districts).map(district).collect::<Result<_, _>>()?,
            wide: (args.wide as usize).min(partners),
            within: districts,
            searches: Arc::default(),
        };
        let least = (0..districts).map(|district| town.serving(district).len()).min().unwrap_or(0);
        ensure!(
            least >= SEARCHED,
            "a district has only {least} partners, of {SEARCHED} that a search asks about: \
                 take more --partners, or fewer --districts in multiples of {SERVED}"
        );
        town.searches = town.make_searches();
        Ok(town)
    }

    /// The same partners, with searches in the first districts alone.
    pub(super) fn within(&self, districts: usize) -> Self {
        let mut town = Self {
            tenant: self.tenant.clone(),
            market: self.market.clone(),
            partners: self.partners.clone(),
            districts: self.districts.clone(),
            within: districts.min(self.within),
            searches: Arc::default(),
            ..*self
        };
        town.searches = town.make_searches();
        town
    }

    fn make_searches(&self) -> Arc<[Search]> {
        let mut rng = SplitMix64::new(5);
        let mut below = |end: usize| usize::try_from(rng.below(end as u64)).unwrap_or(0);
        let mut search = || {
            let district = below(self.within);
            let mut there = self.serving(district);
            for i in 0..SEARCHED {
                let other = i + below(there.len() - i);
                there.swap(i, other);
            }
            let partners = there[..SEARCHED].iter().map(|i| self.partners[*i].clone()).collect();
            Search { district: self.districts[district].clone(), partners }
        };
        (0..SEARCHES).map(|_| search()).collect()
    }

    /// Neighbouring districts, beginning where those of the partner before end.
    pub(super) fn served_anywhere(&self, partner: usize) -> Vec<DistrictId> {
        self.places(partner).map(|i| self.districts[i].clone()).collect()
    }

    /// Those of them that are searched in.
    pub(super) fn served(&self, partner: usize) -> Vec<DistrictId> {
        self.places(partner).filter(|i| *i < self.within).map(|i| self.districts[i].clone()).collect()
    }

    fn places(&self, partner: usize) -> impl Iterator<Item = usize> {
        (0..SERVED).map(move |j| (partner * SERVED + j) % self.districts.len())
    }

    /// As if it delivered everywhere.
    pub(super) fn all_districts(&self) -> &[DistrictId] {
        &self.districts[..self.within]
    }

    fn serving(&self, district: usize) -> Vec<usize> {
        let count = self.districts.len();
        (0..self.partners.len()).filter(|i| (district + count - i * SERVED % count) % count < SERVED).collect()
    }

    pub(super) fn boost(&self, partner: usize) -> Result<Boost> {
        boost(partner, Runs::of(partner))
    }

    pub(super) fn key(&self, partner: &PartnerId) -> BoostKey {
        BoostKey::new(&self.tenant, &Area::Wildcard, partner)
    }
}

/// Eight digits, as the source documents' have.
pub(super) fn partner_id(i: usize) -> String {
    format!("{}", 10_740_000 + i)
}

pub(super) fn boost(partner: usize, runs: Runs) -> Result<Boost> {
    let slots = match runs {
        Runs::AllDay => Vec::new(),
        Runs::InSlots => SLOTS.iter().filter_map(|(name, ..)| SlotName::new(name)).collect(),
    };
    let schedule = Schedule::new(DaySet::EVERY_DAY, slots, Window::default());
    let terms = Terms { score: Score::new(score(partner))?, schedule };
    Ok(Boost { state: State::Active(terms), last_updated: Moment::from_ms(LAST_UPDATED_MS)? })
}

fn score(partner: usize) -> f64 {
    // 1.1 to 3.0
    1.0 + f64::from(u8::try_from(partner % 20).unwrap_or(0) + 1) / 10.0
}

/// The same campaign as an event.
pub(super) fn event(partner: usize, runs: Runs) -> serde_json::Value {
    let slots = match runs {
        Runs::AllDay => Vec::new(),
        Runs::InSlots => SLOTS.map(|(name, ..)| name).to_vec(),
    };
    json!({"tenant": TENANT, "partner_id": partner_id(partner), "delivery_areas": ["*"], "boost_score": score(partner),
           "time_slots": slots, "last_updated": LAST_UPDATED_MS})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn districts_have_the_partners_that_serve_them() {
        let args = BoostsArgs {
            only: None,
            partners: 300,
            districts: 60,
            wide: 3,
            clients: vec![],
            connections: 1,
            runs: 1,
            seconds: 1,
            dynamodb: None,
            data: None,
            json: false,
        };
        let town = Town::new(&args).unwrap();
        for (i, district) in town.districts.iter().enumerate() {
            let serving: Vec<_> = (0..300).filter(|partner| town.served(*partner).contains(district)).collect();
            assert_eq!(town.serving(i), serving);
            assert_eq!(serving.len(), 75);
        }
        for search in town.searches.iter() {
            let mut partners = search.partners.clone();
            partners.sort();
            partners.dedup();
            assert_eq!(partners.len(), SEARCHED);
        }
        assert!(Town::new(&BoostsArgs { partners: 100, ..args }).is_err());
    }
}
