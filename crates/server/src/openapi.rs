//! The OpenAPI document: what `utoipa` derives from handlers and wire types, and for each endpoint what its gate adds.

use std::collections::BTreeMap;

use bytes::Bytes;
use saltern_core::limits::SEQ_NO_END;
use serde_json::{Map, Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::header::Header;
use utoipa::openapi::link::Link;
use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{AllOfBuilder, ObjectBuilder, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, PathItem, Ref, RefOr, Required};

use crate::auth::Scope;
use crate::problem::{Kind, ProblemBody};
use crate::routes::documented;
use crate::wire::ArchivedParam;

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
    components(schemas(ArchivedParam, ProblemBody)),
    tags((name = "messages"), (name = "campaigns"), (name = "operations"))
)]
struct Document;

const MESSAGES: &str = "/v1/conversations/{conversation_id}/messages";
/// The one route that does without a body; `utoipa` would also have it take `null` for one.
const BODY_MAY_BE_ABSENT: &str = "/v1/dead-letters/replay";

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
            let body = operation.request_body.as_mut().filter(|_| endpoint.route == BODY_MAY_BE_ABSENT);
            if let Some(RefOr::T(body)) = body {
                body.required = Some(Required::False);
            }
        }
    }
    link_messages(&mut document);
    let mut document = serde_json::to_value(&document).unwrap_or_default();
    bound_integers(&mut document);
    serde_json::to_vec(&document).map(Bytes::from).unwrap_or_default()
}

/// From an appended message to what can be done with it.
fn link_messages(document: &mut OpenApi) {
    let append = document.paths.paths.get_mut(MESSAGES).and_then(|item| item.post.as_mut());
    let responses = append.into_iter().flat_map(|append| append.responses.responses.iter_mut());
    for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
        if let RefOr::T(response) = response {
            for operation in ["message", "erase"] {
                let link = Link::builder()
                    .operation_id(operation)
                    .parameter("conversation_id", "$response.body#/conversation_id")
                    .parameter("seq_no", "$response.body#/seq_no");
                response.links.insert(operation.into(), link.build().into());
            }
        }
    }
}

/// Gives each integer its bounds, and the format that holds all between them. `utoipa` goes by the width of Rust's types,
/// and calls `u32` an `int32`.
fn bound_integers(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(bound_integers),
        Value::Object(schema) => {
            schema.values_mut().for_each(bound_integers);
            let is =
                |kind: &Value| kind == "integer" || kind.as_array().is_some_and(|all| all.contains(&json!("integer")));
            if schema.get("type").is_some_and(is) {
                bound_integer(schema);
            }
        }
        _ => {}
    }
}

fn bound_integer(schema: &mut Map<String, Value>) {
    schema.entry("minimum").or_insert(json!(0));
    // Every JSON reader holds these exactly; no count of ours comes near the end.
    schema.entry("maximum").or_insert(json!(SEQ_NO_END - 1));
    let bounds = ["minimum", "maximum"].map(|bound| schema[bound].as_i64());
    let fits =
        |least: i64, greatest: i64| bounds.iter().all(|bound| bound.is_some_and(|b| (least..=greatest).contains(&b)));
    match (fits(i32::MIN.into(), i32::MAX.into()), fits(i64::MIN, i64::MAX)) {
        (true, _) => schema.insert("format".into(), json!("int32")),
        (_, true) => schema.insert("format".into(), json!("int64")),
        _ => schema.remove("format"),
    };
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
