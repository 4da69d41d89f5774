//! The server, against a trivial endpoint and against the same lookup through Redis.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, StatusCode, Uri};
use saltern_core::ids::PartnerId;
use serde_json::{Value, json};

use super::market::{Runs, SEARCHED, Search, Town, event, tenant_body};
use super::redis::RedisServer;
use crate::args::BoostsArgs;
use crate::bench::child::Server;
use crate::bench::load::Load;
use crate::bench::measure::Comparison;
use crate::bench::{WARM_UP, progress, take_turns};
use crate::http;
use crate::scratch::Scratch;

const EVENTS_PER_REQUEST: usize = 1_000;

pub(super) async fn measure(
    args: &BoostsArgs,
    scratch: &Scratch,
    town: &Town,
    redis: Option<&RedisServer>,
) -> Result<Vec<Comparison>> {
    progress("over HTTP: filling the server");
    let saltern = Server::saltern(scratch.path())?;
    fill(&saltern, town).await?;
    let questions = Questions::new(town);
    let response_bytes = questions.probe(&saltern).await?;
    let trivial = Server::trivial(scratch.path(), StatusCode::OK.as_u16(), response_bytes)?;
    let mut peers = vec![("trivial endpoint", trivial)];
    if let Some(redis) = redis {
        let through_redis = Server::redis_boosts(scratch.path(), redis.port)?;
        ensure!(questions.probe(&through_redis).await? == response_bytes, "Redis answers otherwise than Saltern");
        peers.push(("same lookup through Redis", through_redis));
    }
    let mut comparisons = Vec::new();
    for (peer_is, peer) in &peers {
        let load = |server: &Server, duration| {
            let load = Load { addr: server.addr, connections: args.connections, duration, expect: StatusCode::OK };
            load.run(|connection| questions.requests(connection))
        };
        let what = format!("{SEARCHED} partners over HTTP, {} connections", args.connections);
        let duration = Duration::from_secs(args.seconds.into());
        load(&saltern, WARM_UP).await?;
        load(peer, WARM_UP).await?;
        let runs =
            take_turns(args.runs, &what, async || load(&saltern, duration).await, async || load(peer, duration).await);
        comparisons.push(Comparison::of(what.clone(), peer_is, &runs.await?));
    }
    Ok(comparisons)
}

async fn fill(server: &Server, town: &Town) -> Result<()> {
    let tenant = format!("/v1/tenants/{}", town.tenant);
    let mut requests = vec![http::post(tenant.parse()?, tenant_body().into())];
    *requests[0].method_mut() = Method::PUT;
    let partners: Vec<_> = (0..town.partners.len()).collect();
    for partners in partners.chunks(EVENTS_PER_REQUEST) {
        let events: Vec<_> = partners.iter().map(|i| event(*i, Runs::of(*i))).collect();
        requests.push(http::post(Uri::from_static("/v1/campaign-events"), Value::from(events).to_string().into()));
    }
    let answers = http::over(http::connect(server.addr).await?, async |mut sender| {
        let mut answers = Vec::new();
        for request in requests {
            answers.push(http::send(&mut sender, request).await?);
        }
        Ok(answers)
    });
    for (status, body) in answers.await? {
        let body = String::from_utf8_lossy(&body);
        ensure!(status.is_success() && !body.contains("reason"), "the server answered {status}: {body}");
    }
    Ok(())
}

/// The searches as bodies of requests.
struct Questions(Arc<[Bytes]>);

impl Questions {
    fn new(town: &Town) -> Self {
        let question = |search: &Search| {
            let partners: Vec<_> = search.partners.iter().map(PartnerId::as_str).collect();
            let question = json!({
                "tenant": town.tenant.as_str(), "district": search.district.as_str(), "partner_ids": partners
            });
            Bytes::from(question.to_string())
        };
        Self(town.searches.iter().map(question).collect())
    }

    fn requests(&self, connection: u32) -> impl FnMut() -> Request<Full<Bytes>> + use<> {
        let (bodies, mut next) = (Arc::clone(&self.0), connection as usize * 16);
        move || {
            next += 1;
            request(bodies[next % bodies.len()].clone())
        }
    }

    /// How long is the answer, in which everyone is boosted?
    async fn probe(&self, server: &Server) -> Result<usize> {
        let request = request(self.0[0].clone());
        let answer =
            http::over(http::connect(server.addr).await?, async |mut sender| http::send(&mut sender, request).await);
        let (status, body) = answer.await?;
        let found: Value = serde_json::from_slice(&body)?;
        let found = found["boosts"].as_array().map_or(0, Vec::len);
        ensure!(found == SEARCHED, "the server answered {status} with {found} of {SEARCHED} boosts");
        Ok(body.len())
    }
}

fn request(body: Bytes) -> Request<Full<Bytes>> {
    http::post(Uri::from_static("/v1/boosts/query"), body)
}
