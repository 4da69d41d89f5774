//! The routes, each with its gate.

mod boosts;
mod campaign_events;
mod conversations;
mod dead_letters;
mod home;
mod messages;
mod ops;
mod tenants;
mod upkeep;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, header};
use prometheus_client::registry::Registry;
use serde::Serialize;
use utoipa::openapi::path::HttpMethod;

use crate::answers::Answers;
use crate::app::{App, Readiness, Services};
use crate::auth::{Keys, Scope};
use crate::budget::{BODIES_BYTES_MAX, Budget};
use crate::gate::{Admission, Answer, Gate};
use crate::interface::{Handler, Interface, Methods, Unreadable};
use crate::metrics::HttpMetrics;
use crate::openapi::{self, Endpoint};
use crate::problem::{Kind, Problem};
use crate::request_id::RequestIds;
use crate::server::ServerConfig;
use crate::wire::Json;

pub(crate) mod documented {
    //! What `utoipa` made of the handlers.
    pub(crate) use super::boosts::__path_query;
    pub(crate) use super::campaign_events::__path_events;
    pub(crate) use super::conversations::{__path_hot, __path_view};
    pub(crate) use super::dead_letters::{__path_list, __path_replay};
    pub(crate) use super::messages::{
        __path_append, __path_append_batch, __path_erase, __path_erase_all, __path_message, __path_page,
    };
    pub(crate) use super::ops::{__path_healthz, __path_metrics, __path_openapi, __path_readyz};
    pub(crate) use super::tenants::{__path_put_tenant, __path_tenant};
    pub(crate) use super::upkeep::{__path_archive, __path_verify};
}

/// The whole HTTP interface. HTTP metrics are registered with `registry`, which is what `/metrics` shows.
pub fn interface(config: &ServerConfig, services: Services, ready: Readiness, mut registry: Registry) -> Interface {
    let metrics = HttpMetrics::register(&mut registry);
    let bodies = Budget::new(BODIES_BYTES_MAX);
    let app = Arc::new(App {
        conversations: services.conversations,
        campaigns: services.campaigns,
        upkeep: services.upkeep,
        ready,
        registry,
        keys: Keys::new(&config.api_keys, &bodies),
        admission: Admission::new(config.requests_max, metrics.in_flight.clone()),
        request_ids: RequestIds::new(),
        body_timeout: config.body_timeout,
        bodies,
        answers: Answers::default(),
        document: OnceLock::new(),
    });
    let mut routes = Routes { app, metrics, paths: BTreeMap::new(), endpoints: Vec::new() };
    let (read, write, admin) = (Some(Scope::MessagesRead), Some(Scope::MessagesWrite), Some(Scope::Admin));
    routes.add::<documented::__path_append, _, _>(write, messages::APPEND_PROBLEMS, messages::append);
    routes.add::<documented::__path_append_batch, _, _>(write, messages::BATCH_PROBLEMS, messages::append_batch);
    routes.add::<documented::__path_page, _, _>(read, messages::PAGE_PROBLEMS, messages::page);
    routes.add::<documented::__path_message, _, _>(read, messages::MESSAGE_PROBLEMS, messages::message);
    routes.add::<documented::__path_erase, _, _>(admin, messages::ERASE_PROBLEMS, messages::erase);
    routes.add::<documented::__path_erase_all, _, _>(admin, messages::ERASE_ALL_PROBLEMS, messages::erase_all);
    routes.add::<documented::__path_view, _, _>(read, conversations::VIEW_PROBLEMS, conversations::view);
    routes.add::<documented::__path_hot, _, _>(admin, conversations::HOT_PROBLEMS, conversations::hot);
    let (lookups, feeds) = (Some(Scope::BoostsRead), Some(Scope::CampaignsWrite));
    routes.add::<documented::__path_query, _, _>(lookups, boosts::QUERY_PROBLEMS, boosts::query);
    routes.add::<documented::__path_events, _, _>(feeds, campaign_events::PROBLEMS, campaign_events::events);
    routes.add::<documented::__path_put_tenant, _, _>(admin, tenants::PUT_PROBLEMS, tenants::put_tenant);
    routes.add::<documented::__path_tenant, _, _>(admin, tenants::GET_PROBLEMS, tenants::tenant);
    routes.add::<documented::__path_list, _, _>(admin, dead_letters::LIST_PROBLEMS, dead_letters::list);
    routes.add::<documented::__path_replay, _, _>(admin, dead_letters::REPLAY_PROBLEMS, dead_letters::replay);
    routes.add::<documented::__path_archive, _, _>(admin, upkeep::ARCHIVE_PROBLEMS, upkeep::archive);
    routes.add::<documented::__path_verify, _, _>(admin, upkeep::VERIFY_PROBLEMS, upkeep::verify);
    routes.add::<documented::__path_metrics, _, _>(admin, ops::METRICS_PROBLEMS, ops::metrics);
    routes.add::<documented::__path_healthz, _, _>(None, ops::PROBLEMS, ops::healthz);
    routes.add::<documented::__path_readyz, _, _>(None, ops::READYZ_PROBLEMS, ops::readyz);
    routes.add::<documented::__path_openapi, _, _>(None, ops::OPENAPI_PROBLEMS, ops::openapi);
    routes.finish()
}

struct Routes {
    app: Arc<App>,
    metrics: HttpMetrics,
    paths: BTreeMap<String, Vec<(Method, Handler)>>,
    endpoints: Vec<Endpoint>,
}

impl Routes {
    /// Adds a handler at the path and method of its documentation.
    fn add<P, H, F>(&mut self, scope: Option<Scope>, problems: &'static [Kind], handler: H)
    where
        P: utoipa::Path,
        H: Fn(Arc<App>, Request) -> F + Copy + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        for method in P::methods() {
            let name = match method {
                HttpMethod::Post => Method::POST,
                HttpMethod::Put => Method::PUT,
                HttpMethod::Delete => Method::DELETE,
                _ => Method::GET,
            };
            let gate = self.gate(P::path(), name.as_str(), scope);
            self.paths.entry(P::path()).or_default().push((name, gate.opened_to(handler)));
            self.endpoints.push(Endpoint { route: P::path(), method, scope, problems });
        }
    }

    fn gate(&self, route: String, method: &str, scope: Option<Scope>) -> Arc<Gate> {
        let metrics = self.metrics.of(&route, method);
        Arc::new(Gate { app: self.app.clone(), route, scope, metrics })
    }

    fn finish(mut self) -> Interface {
        let document = openapi::document(&self.endpoints);
        // Only this function sets it, once.
        let _ = self.app.document.set(document);
        let other = || self.gate("other".into(), "other", None);
        let (not_found, malformed) = (other().opened_to(not_found), other().opened_to(malformed));
        let mut interface = Interface::new(not_found, malformed, Arc::clone(&self.app.answers.wait));
        for (path, handlers) in std::mem::take(&mut self.paths) {
            let other = self.gate(path.clone(), "other", None).opened_to(method_not_allowed);
            interface.add(&path, Methods::new(handlers, other));
        }
        self.add_pages(&mut interface);
        interface
    }

    /// For people with a browser; not part of the documented API.
    fn add_pages(&self, interface: &mut Interface) {
        let gate = || self.gate("other".into(), "other", None);
        let home = vec![(Method::GET, gate().opened_to(home::home))];
        interface.add("/", Methods::new(home, gate().opened_to(method_not_allowed)));
        let docs = vec![(Method::GET, gate().opened_to(home::docs))];
        interface.add(home::DOCS_PATH, Methods::new(docs, gate().opened_to(method_not_allowed)));
    }
}

async fn not_found(_: Arc<App>, _: Request) -> Answer {
    Err(Problem::new(
        Kind::NotFound,
        "no route has this path; /openapi.json lists all routes. Ids in paths must be percent-encoded",
    ))
}

/// What is no request at all, as far as HTTP goes.
async fn malformed(_: Arc<App>, request: Request) -> Answer {
    Err(match request.extensions().get().map(|Unreadable(status)| *status) {
        Some(StatusCode::URI_TOO_LONG) => {
            Problem::new(Kind::UriTooLong, "a path and query of at most 65,534 bytes is expected")
        }
        Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE) => {
            Problem::new(Kind::HeadTooLarge, "at most 100 header fields are expected, and a head of at most 128 KiB")
        }
        Some(_) => {
            Problem::invalid("a request of HTTP/1.1 is expected: the request line or a header field cannot be read")
        }
        None => Problem::invalid("one Host header is expected, with a host name or address"),
    })
}

async fn method_not_allowed(_: Arc<App>, request: Request) -> Answer {
    Err(Problem::new(
        Kind::MethodNotAllowed,
        format!("{} is not allowed here; the allow header lists the methods that are", request.method()),
    ))
}

fn json<T: Serialize>(status: StatusCode, body: &T, capacity: usize) -> Answer {
    written(status, capacity, |json| json.value(body))
}

fn written(status: StatusCode, capacity: usize, write: impl FnOnce(&mut Json) -> serde_json::Result<()>) -> Answer {
    let mut body = Json::with_capacity(capacity);
    write(&mut body).map_err(|_| Problem::new(Kind::Internal, "the response could not be encoded"))?;
    let mut response = Response::new(Body::from(body.into_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
