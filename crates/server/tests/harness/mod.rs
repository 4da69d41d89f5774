//! A real server on loopback over stores that faults can be injected into, and a client that sends paths and bodies as they are.
#![allow(dead_code, reason = "each test binary uses its part")]

mod beneath;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use beneath::{Beneath, beneath};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prometheus_client::registry::Registry;
use saltern_registry::faulty::{FaultyRegistry, RegistryFaultPlan};
use saltern_server::{Server, ServerConfig, Services};
use saltern_service::campaigns::{self, Campaigns};
use saltern_service::conversations::{Config, Conversations};
use saltern_service::upkeep::Upkeep;
use saltern_service::verify::Verifier;
use saltern_store::campaigns::faulty::{CampaignFaultPlan, FaultyCampaigns};
use saltern_store::faulty::{FaultPlan, Faulty};
use saltern_store::objects::{ObjectRoot, Objects};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

pub(crate) const MESSAGES: &str = "/v1/conversations/c/messages";
pub(crate) const BATCH: &str = "/v1/conversations/c/messages/batch";
pub(crate) const EVENTS: &str = "/v1/campaign-events";
pub(crate) const BOOSTS: &str = "/v1/boosts/query";
pub(crate) const LETTERS: &str = "/v1/dead-letters";
pub(crate) const REPLAY: &str = "/v1/dead-letters/replay";

/// The servers' clock.
pub(crate) const NOW_MS: u64 = 1_763_200_000_000;

/// What a request may take. Servers of their own need more than memory does.
const DEADLINE: Duration = Duration::from_millis(if cfg!(feature = "cloud-tests") { 5_000 } else { 300 });

pub(crate) struct Harness {
    pub(crate) address: SocketAddr,
    beneath: Beneath,
    fresh: String,
    pub(crate) store: Faulty,
    pub(crate) registry: Arc<FaultyRegistry>,
    pub(crate) services: Services,
    pub(crate) campaign_store: FaultyCampaigns,
    pub(crate) stop: CancellationToken,
    pub(crate) running: tokio::task::JoinHandle<()>,
}

pub(crate) fn loopback() -> ServerConfig {
    ServerConfig::new("127.0.0.1:0".parse().unwrap())
}

fn campaign_config() -> campaigns::Config {
    campaigns::Config {
        put_deadline: DEADLINE,
        lookup_deadline: DEADLINE,
        market_staleness: Duration::from_millis(50),
        ..campaigns::Config::new(Arc::new(|| NOW_MS), 1)
    }
}

impl Harness {
    pub(crate) async fn open() -> Self {
        Self::start(loopback(), |_| {}).await
    }

    pub(crate) async fn start(config: ServerConfig, adjust: impl FnOnce(&mut Config)) -> Self {
        let beneath = beneath().await;
        let fresh = (beneath.mark)();
        let store = Faulty::new(Arc::clone(&beneath.store), 1, FaultPlan::default());
        let registry = FaultyRegistry::new(Arc::clone(&beneath.registry), 1, RegistryFaultPlan::default());
        let registry = Arc::new(registry);
        let mut service = Config::new(Arc::new(|| NOW_MS), 1);
        service.append_deadline = DEADLINE;
        service.read_deadline = DEADLINE;
        let objects: Arc<dyn Objects> = Arc::new(ObjectRoot::in_memory());
        service.objects = Some(Arc::clone(&objects));
        service.patience = saltern_service::Patience { attempts: 2 };
        adjust(&mut service);
        let conversations = Conversations::new(Arc::new(store.clone()), registry.clone(), service);
        let mut metrics = Registry::with_prefix("saltern");
        conversations.metrics().register(&mut metrics);
        let campaign_store = FaultyCampaigns::new(Arc::clone(&beneath.campaigns), 1, CampaignFaultPlan::default());
        let campaigns = Campaigns::new(Arc::new(campaign_store.clone()), campaign_config());
        campaigns.metrics().register(&mut metrics);
        let upkeep = Upkeep {
            conversations: conversations.clone(),
            due: Arc::clone(&beneath.due),
            verifier: Verifier {
                store: Arc::new(store.clone()),
                scan: Arc::clone(&beneath.scan),
                objects: Some(objects),
                claims_kept_ms: None,
                wall_clock: Arc::new(|| NOW_MS),
                patience: saltern_service::Patience { attempts: 2 },
            },
            older_than: Duration::ZERO,
            orphans_after: Duration::from_secs(86_400),
        };
        let services = Services { conversations, campaigns, upkeep: Arc::new(upkeep) };
        let ready = Arc::new(|| Ok(()));
        let server = Server::bind(config, services.clone(), ready, metrics).await.unwrap();
        let (address, stop) = (server.local_addr(), CancellationToken::new());
        let running = tokio::spawn(server.run(stop.clone().cancelled_owned()));
        Self { address, beneath, fresh, store, registry, services, campaign_store, stop, running }
    }

    /// Tells two moments apart between which anything was written.
    pub(crate) fn mark(&self) -> String {
        (self.beneath.mark)()
    }

    /// Rows of boosts that have been written, each counted once for all its writes; `None` where nobody counts them.
    pub(crate) fn boosts(&self) -> Option<usize> {
        (self.beneath.boosts)()
    }

    /// Whether nothing has been written yet.
    pub(crate) fn is_untouched(&self) -> bool {
        self.mark() == self.fresh
    }

    pub(crate) async fn send<B>(&self, request: Request<B>) -> Reply
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let reply = Reply { status: head.status, headers: head.headers, body };
        reply.check();
        reply
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(request(Method::GET, path, "")).await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(request(Method::POST, path, body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Reply {
        self.send(request(Method::DELETE, path, "")).await
    }

    pub(crate) async fn put(&self, path: &str, body: impl Into<Bytes>) -> Reply {
        self.send(request(Method::PUT, path, body)).await
    }

    /// A zoned market `de` and a wildcard market `at`, both in Berlin's time, with `lunch`.
    pub(crate) async fn markets(&self) {
        for (tenant, model) in [("de", "zoned"), ("at", "wildcard")] {
            let body =
                json!({"model": model, "time_zone": "Europe/Berlin", "time_slots": {"lunch": ["11:00", "15:00"]}});
            let reply = self.put(&format!("/v1/tenants/{tenant}"), body.to_string()).await;
            assert_eq!(reply.status, StatusCode::OK);
        }
    }

    /// Appends `m1` … `m<count>` to `c`.
    pub(crate) async fn fill(&self, count: usize) {
        for i in 1..=count {
            let reply = self.post(MESSAGES, message(&format!("m{i}")).to_string()).await;
            assert_eq!(reply.status, StatusCode::CREATED);
        }
    }
}

pub(crate) fn request(method: Method, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let body = body.into();
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    if !body.is_empty() {
        request = request.header("content-type", "application/json");
    }
    request.body(Full::new(body)).unwrap()
}

/// An active campaign of a partner in these areas.
pub(crate) fn event(tenant: &str, partner: &str, areas: &[&str]) -> Value {
    json!({"tenant": tenant, "partner_id": partner, "delivery_areas": areas, "boost_score": 1.5, "last_updated": NOW_MS})
}

pub(crate) fn message(message_id: &str) -> Value {
    json!({"message_id": message_id, "sender_id": "alice", "content": "hey"})
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    /// What holds for every response.
    fn check(&self) {
        assert!(self.headers.contains_key("x-request-id"), "{self:?}");
        if self.status.is_client_error() || self.status.is_server_error() {
            assert_eq!(self.header("content-type"), "application/problem+json");
            assert_eq!(self.json()["status"], self.status.as_u16(), "{self:?}");
        }
        let retry_after = (self.status == StatusCode::SERVICE_UNAVAILABLE).then_some("1");
        assert_eq!(self.headers.get("retry-after").map(|v| v.to_str().unwrap()), retry_after, "{self:?}");
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn detail(&self) -> String {
        self.json()["detail"].as_str().unwrap_or_default().to_owned()
    }

    /// Status and kind of problem.
    pub(crate) fn problem(&self) -> (u16, String) {
        let kind = self.json()["type"].as_str().unwrap_or_default().replace("urn:saltern:problem:", "");
        (self.status.as_u16(), kind)
    }
}
