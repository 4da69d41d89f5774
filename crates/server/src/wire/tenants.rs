//! Markets on the wire.

use std::collections::BTreeMap;
use std::fmt;

use saltern_core::campaigns::{Market, MarketModel, Slot, TimeOfDay};
use serde::Serialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use utoipa::ToSchema;

use super::schema;

/// From one time up to another.
type Times = [String; 2];

/// A tenant's market.
#[derive(Serialize, serde::Deserialize, ToSchema)]
#[schema(as = Tenant)]
#[serde(deny_unknown_fields)]
pub(crate) struct TenantBody {
    model: ModelBody,
    /// A name of the IANA database.
    #[schema(examples("Europe/Berlin"))]
    time_zone: String,
    /// From the first time up to the second, by the market's clocks; over midnight if the second is not the later one.
    /// `all-day` is built in.
    #[serde(default, deserialize_with = "time_slots")]
    #[schema(schema_with = schema::time_slots)]
    time_slots: BTreeMap<String, Times>,
}

#[derive(Clone, Copy, Serialize, serde::Deserialize, ToSchema)]
#[schema(as = MarketModel)]
#[serde(rename_all = "lowercase")]
enum ModelBody {
    /// Campaigns count everywhere.
    Wildcard,
    /// Campaigns name districts, or `*` for all of them.
    Zoned,
}

impl TenantBody {
    pub(crate) fn new(market: &Market) -> Self {
        let times = |slot: Slot| [slot.start().to_string(), slot.end().to_string()];
        Self {
            model: match market.model() {
                MarketModel::Wildcard => ModelBody::Wildcard,
                MarketModel::Zoned => ModelBody::Zoned,
            },
            time_zone: market.time_zone().to_owned(),
            time_slots: market.slots().map(|(name, slot)| (name.as_str().to_owned(), times(slot))).collect(),
        }
    }

    /// The market, or what is wrong with it, for people.
    pub(crate) fn market(&self) -> Result<Market, String> {
        let model = match self.model {
            ModelBody::Wildcard => MarketModel::Wildcard,
            ModelBody::Zoned => MarketModel::Zoned,
        };
        let mut slots = Vec::with_capacity(self.time_slots.len());
        for (name, [start, end]) in &self.time_slots {
            let slot = TimeOfDay::parse(start).and_then(|start| Slot::new(start, TimeOfDay::parse(end)?));
            slots.push((name.as_str(), slot.map_err(|error| format!("time_slots: {name:.40}: {error}"))?));
        }
        Market::new(model, &self.time_zone, slots).map_err(|error| error.to_string())
    }
}

/// Refuses a name that is given twice.
fn time_slots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Times>, D::Error> {
    struct Slots;

    impl<'de> Visitor<'de> for Slots {
        type Value = BTreeMap<String, Times>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("time_slots as an object of pairs of times")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut slots = BTreeMap::new();
            while let Some((name, times)) = map.next_entry::<String, Vec<String>>()? {
                let Ok(times) = Times::try_from(times) else {
                    return Err(A::Error::custom(format!("time_slots: {name:?} is not a pair of times")));
                };
                if slots.contains_key(&name) {
                    return Err(A::Error::custom(format!("time_slots names {name:?} twice")));
                }
                slots.insert(name, times);
            }
            Ok(slots)
        }
    }

    deserializer.deserialize_map(Slots)
}
