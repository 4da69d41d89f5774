//! The OpenAPI document: what `utoipa` derives from handlers and wire types, and for each endpoint what its gate adds.

use std::collections::BTreeMap;

use bytes::Bytes;
use utoipa::OpenApi as _;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, PathItem, Ref, RefOr};

use crate::auth::Scope;
use crate::problem::{Kind, ProblemBody};
use crate::routes::documented;

/// One method of one route.
pub(crate) struct Endpoint {
    pub(crate) route: String,
    pub(crate) method: HttpMethod,
    pub(crate) scope: Option<Scope>,
    /// What the handler answers when it fails.
    pub(crate) problems: &'static [Kind],
}

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Saltern",
        description = "Conversations as append logs: dense order, idempotent appends, stable pages. Campaigns as exact \
            lookups: which of these partners are boosted, here and now. Every failure is a \
            problem (RFC 9457) with a stable type; every response carries x-request-id, the client's own if it sent \
            one of 1 to 128 visible ASCII characters. Unknown fields and query parameters are refused. Unknown paths \
            answer 404 `not-found`, known ones with another method 405 `method-not-allowed`."
    ),
    paths(
        documented::append,
        documented::append_batch,
        documented::page,
        documented::message,
        documented::erase,
        documented::erase_all,
        documented::view,
        documented::hot,
        documented::query,
        documented::events,
        documented::put_tenant,
        documented::tenant,
        documented::list,
        documented::replay,
        documented::archive,
        documented::verify,
        documented::healthz,
        documented::readyz,
        documented::metrics,
        documented::openapi,
    ),
    components(schemas(ProblemBody)),
    tags((name = "messages"), (name = "campaigns"), (name = "operations"))
)]
struct Document;

pub(crate) fn document(endpoints: &[Endpoint]) -> Bytes {
    let mut document = Document::openapi();
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key with the scope that the operation names. Not needed if none is configured."))
        .build();
    let components = document.components.get_or_insert_with(Components::new);
    components.add_security_scheme("api_key", SecurityScheme::Http(bearer));
    for endpoint in endpoints {
        if let Some(operation) = operation(&mut document, endpoint) {
            endpoint.complete(operation);
        }
    }
    serde_json::to_vec(&document).map(Bytes::from).unwrap_or_default()
}

fn operation<'a>(document: &'a mut OpenApi, endpoint: &Endpoint) -> Option<&'a mut Operation> {
    let item: &mut PathItem = document.paths.paths.get_mut(&endpoint.route)?;
    match endpoint.method {
        HttpMethod::Post => item.post.as_mut(),
        HttpMethod::Put => item.put.as_mut(),
        HttpMethod::Delete => item.delete.as_mut(),
        _ => item.get.as_mut(),
    }
}

impl Endpoint {
    fn complete(&self, operation: &mut Operation) {
        let mut kinds = self.problems.to_vec();
        if let Some(scope) = self.scope {
            kinds.extend([Kind::Unauthorized, Kind::Forbidden, Kind::Overloaded]);
            let key = SecurityRequirement::new("api_key", [scope.as_str()]);
            operation.security = Some(vec![key, SecurityRequirement::default()]);
        }
        for response in operation.responses.responses.values_mut() {
            if let RefOr::T(response) = response {
                response.headers.insert("x-request-id".into(), text().into());
            }
        }
        let mut by_status = BTreeMap::<u16, Vec<Kind>>::new();
        for kind in kinds {
            by_status.entry(kind.status().as_u16()).or_default().push(kind);
        }
        for (status, kinds) in by_status {
            operation.responses.responses.insert(status.to_string(), problem(&kinds).into());
        }
    }
}

fn text() -> Header {
    Header::new(ObjectBuilder::new().schema_type(SchemaType::new(Type::String)))
}

/// A response that is one of these problems.
fn problem(kinds: &[Kind]) -> Response {
    let urns = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .enum_values(Some(kinds.iter().map(|kind| kind.urn())));
    let schema =
        AllOfBuilder::new().item(Ref::from_schema_name("Problem")).item(ObjectBuilder::new().property("type", urns));
    let titles: Vec<_> = kinds.iter().map(|kind| kind.title()).collect();
    let response = ResponseBuilder::new()
        .description(titles.join("; "))
        .content("application/problem+json", ContentBuilder::new().schema(Some(schema)).build())
        .header("x-request-id", text());
    match kinds.first().map(|kind| kind.status().as_u16()) {
        Some(401) => response.header("www-authenticate", text()).build(),
        Some(503) => response.header("retry-after", text()).build(),
        _ => response.build(),
    }
}
