//! Every design with the same campaigns, over one store.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use saltern_baseline::campaign_v1::CampaignV1;
use saltern_baseline::expansion::Expansion;
use saltern_core::campaigns::{Boost, DistrictId, Market};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_service::campaigns::{Campaigns, Config};
use saltern_store::{Put, PutOutcome, Store};

use super::designs::{Design, Kind, Map, Stores};
use super::market::{Runs, Town, event};
use super::redis::{RedisRows, RedisServer};
use super::weighed::Weighed;
use crate::service::now_ms;

const EVENTS_PER_CALL: usize = 1_000;
const PUTS_PER_CALL: usize = 500;
const PUTS_AT_ONCE: usize = 32;
/// Each expansion has a tenant of its own, since they share a table.
const EXPANDED: [(Kind, &str); 2] = [(Kind::Expansion, "x15"), (Kind::ExpansionWithWide, "x3000")];

/// The designs, each over a store that counts.
pub(super) struct Filled {
    pub(super) weighed: Weighed,
    pub(super) v1: Arc<Design>,
    pub(super) expansion: Arc<Design>,
    pub(super) with_wide: Arc<Design>,
    pub(super) saltern: Arc<Design>,
    /// The same, over the store itself.
    timed: Vec<(Kind, Arc<Design>)>,
}

impl Filled {
    pub(super) async fn fill(stores: Stores, town: &Town) -> Result<Self> {
        let weighed = Weighed::new(stores.clone());
        let boosts = boosts(town)?;
        let keyed: Vec<_> = boosts.iter().map(|(partner, boost)| (town.key(partner), boost.clone())).collect();
        let v1 = |stores: &Stores| CampaignV1::new(stores.rows.clone(), town.tenant.clone(), town.market.clone());
        // The one that counts also writes, and so knows what is where.
        let counted = weighed.stores();
        let counted_v1 = v1(&counted);
        counted_v1.import(&keyed).await?;
        let mut expansions = Vec::new();
        for (kind, tenant) in EXPANDED {
            let expansion = |stores: &Stores| expansion(stores, tenant, &town.market);
            expand(&expansion(&stores)?, &*stores.rows, kind, town, &boosts).await?;
            expansions.push((kind, expansion(&counted)?, expansion(&stores)?));
        }
        let saltern = |stores: &Stores| {
            let config = Config::new(Arc::new(now_ms), now_ms());
            Design::Saltern(Campaigns::new(stores.campaigns.clone(), config), town.tenant.clone())
        };
        let counted_saltern = saltern(&counted);
        take_up(&counted_saltern, town).await?;
        let mut timed = vec![(Kind::V1, Arc::new(Design::V1(v1(&stores))))];
        let mut counted_expansions = Vec::new();
        for (kind, counted, over_store) in expansions {
            timed.push((kind, Arc::new(Design::Expansion(over_store))));
            counted_expansions.push(Arc::new(Design::Expansion(counted)));
        }
        timed.push((Kind::Saltern, Arc::new(saltern(&stores))));
        let [expansion, with_wide] = &counted_expansions[..] else { anyhow::bail!("two expansions are measured") };
        Ok(Self {
            weighed,
            v1: Arc::new(Design::V1(counted_v1)),
            expansion: Arc::clone(expansion),
            with_wide: Arc::clone(with_wide),
            saltern: Arc::new(counted_saltern),
            timed,
        })
    }

    pub(super) fn designs(&self, peers: &Peers) -> Vec<(Kind, Arc<Design>)> {
        self.timed.iter().chain(&peers.0).map(|(kind, design)| (*kind, Arc::clone(design))).collect()
    }
}

/// What is measured beside the stores.
pub(super) struct Peers(Vec<(Kind, Arc<Design>)>);

impl Peers {
    pub(super) async fn fill(town: &Town, redis: Option<&RedisServer>) -> Result<Self> {
        let boosts = boosts(town)?;
        let mut peers = Vec::new();
        if let Some(redis) = redis {
            redis.fill(&boosts).await?;
            let rows = RedisRows::new(redis.port, town.market.clone());
            peers.push((Kind::Redis, Arc::new(Design::Redis(rows))));
        }
        let map = Map::new(boosts.into_iter(), town.market.clone());
        peers.push((Kind::Map, Arc::new(Design::Map(map))));
        Ok(Self(peers))
    }
}

fn boosts(town: &Town) -> Result<Vec<(PartnerId, Boost)>> {
    town.partners.iter().enumerate().map(|(i, partner)| Ok((partner.clone(), town.boost(i)?))).collect()
}

fn expansion(stores: &Stores, tenant: &str, market: &Market) -> Result<Expansion> {
    Ok(Expansion::new(stores.rows.clone(), TenantId::new(tenant)?, market.clone()))
}

/// The districts that a partner's campaign is expanded to.
fn districts(kind: Kind, town: &Town, partner: usize) -> Vec<DistrictId> {
    if kind == Kind::ExpansionWithWide && partner < town.wide {
        return town.all_districts().to_vec();
    }
    town.served(partner)
}

async fn expand(
    expansion: &Expansion,
    store: &dyn Store,
    kind: Kind,
    town: &Town,
    boosts: &[(PartnerId, Boost)],
) -> Result<()> {
    let mut puts = Vec::new();
    for (i, (partner, boost)) in boosts.iter().enumerate() {
        puts.extend(expansion.puts(partner, boost, &districts(kind, town, i))?);
        if puts.len() >= PUTS_PER_CALL * PUTS_AT_ONCE || i + 1 == boosts.len() {
            let calls = puts.chunks(PUTS_PER_CALL).map(|puts| put_all(store, puts));
            stream::iter(calls).buffer_unordered(PUTS_AT_ONCE).try_collect::<Vec<_>>().await?;
            puts.clear();
        }
    }
    Ok(())
}

async fn put_all(store: &dyn Store, puts: &[Put]) -> Result<()> {
    if store.capabilities().atomic_puts {
        let outcomes = store.put_all(puts).await?;
        ensure!(outcomes.iter().all(|outcome| *outcome == PutOutcome::Applied), "a row was there already");
        return Ok(());
    }
    for put in puts {
        ensure!(store.put(put).await? == PutOutcome::Applied, "a row was there already");
    }
    Ok(())
}

async fn take_up(saltern: &Design, town: &Town) -> Result<()> {
    let Design::Saltern(campaigns, tenant) = saltern else { return Ok(()) };
    campaigns.put_market(tenant, &town.market).await?;
    let events: Vec<_> = (0..town.partners.len()).map(|i| event(i, Runs::of(i)).to_string()).collect();
    for events in events.chunks(EVENTS_PER_CALL) {
        let done = campaigns.apply(events).await?;
        ensure!(done.applied == events.len() as u64, "an event was not applied: {:?}", done.rejected);
    }
    Ok(())
}
