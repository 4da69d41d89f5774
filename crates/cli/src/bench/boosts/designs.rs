//! What is measured: each answers the same searches.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;
use saltern_baseline::campaign_v1::CampaignV1;
use saltern_baseline::expansion::Expansion;
use saltern_core::campaigns::{Boost, Market, Moment, Standing};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_service::campaigns::{Campaigns, LookupQuery};
use saltern_store::{CampaignStore, Store};
use serde::Serialize;

use super::market::Search;
use super::redis::RedisRows;

/// Both ports of one store.
#[derive(Clone)]
pub(super) struct Stores {
    pub(super) rows: Arc<dyn Store>,
    pub(super) campaigns: Arc<dyn CampaignStore>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    V1,
    Expansion,
    ExpansionWithWide,
    Saltern,
    Redis,
    Map,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1 => "V1",
            Self::Expansion => "expansion manifest",
            Self::ExpansionWithWide => "expansion, some everywhere",
            Self::Saltern => "saltern",
            Self::Redis => "Redis, one HMGET",
            Self::Map => "map in memory",
        }
    }
}

pub(super) enum Design {
    V1(CampaignV1),
    Expansion(Expansion),
    Saltern(Campaigns, TenantId),
    Redis(RedisRows),
    Map(Map),
}

impl Design {
    /// How many of the partners are boosted.
    pub(super) async fn search(&self, search: &Search, at: Moment) -> Result<usize> {
        Ok(match self {
            Self::V1(v1) => v1.search(Some(&search.district), &search.partners, at).await?.len(),
            Self::Expansion(expansion) => expansion.search(&search.district, &search.partners, at).await?.len(),
            Self::Saltern(campaigns, tenant) => {
                let query = LookupQuery {
                    tenant: tenant.clone(),
                    district: Some(search.district.clone()),
                    partners: search.partners.clone(),
                    at: Some(at),
                };
                campaigns.lookup(query).await?.boosted().count()
            }
            Self::Redis(rows) => rows.search(&search.partners, at).await?.len(),
            Self::Map(map) => map.search(&search.partners, at),
        })
    }
}

/// The least that a lookup can be: the rows as they are, by the partner's id.
pub(super) struct Map {
    pub(super) rows: HashMap<PartnerId, Boost>,
    pub(super) market: Market,
}

impl Map {
    pub(super) fn new(rows: impl Iterator<Item = (PartnerId, Boost)>, market: Market) -> Self {
        Self { rows: rows.collect(), market }
    }

    fn search(&self, partners: &[PartnerId], at: Moment) -> usize {
        let now = self.market.local_time(at);
        let standings = partners.iter().filter_map(|partner| Some(self.rows.get(partner)?.standing(&now)));
        standings.filter(|standing| matches!(standing, Standing::Active(_))).count()
    }
}
