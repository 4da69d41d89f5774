//! From a path and a method to whoever answers.

use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use http_body_util::{BodyExt as _, Collected};
use tokio::sync::Notify;

pub(crate) type Handler = Box<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// The whole HTTP interface.
pub struct Interface {
    paths: matchit::Router<Methods>,
    not_found: Handler,
    malformed: Handler,
    /// Notified when reads are turned away because answers wait for their clients to take them.
    pub(crate) answers_wait: Arc<Notify>,
}

/// The handlers of one path.
pub(crate) struct Methods {
    handlers: Vec<(Method, Handler)>,
    other: Handler,
    allow: HeaderValue,
}

impl Interface {
    pub(crate) fn new(not_found: Handler, malformed: Handler, answers_wait: Arc<Notify>) -> Self {
        Self { paths: matchit::Router::new(), not_found, malformed, answers_wait }
    }

    pub(crate) fn add(&mut self, path: &str, methods: Methods) {
        // Paths are ours, and each is there once: every test of a server would fail.
        let added = self.paths.insert(path, methods);
        debug_assert!(added.is_ok(), "{path}");
    }

    pub async fn answer(&self, request: Request) -> Response {
        if !names_its_host(request.version(), request.headers()) {
            return (self.malformed)(request).await;
        }
        let methods = self.paths.at(request.uri().path()).map(|found| found.value);
        match methods {
            Ok(methods) => methods.answer(request).await,
            Err(_) => (self.not_found)(request).await,
        }
    }
}

impl Interface {
    /// An answer to what could not be read as a request: its header fields and its body.
    pub(crate) fn refusal(&self, status: StatusCode) -> (HeaderMap, Bytes) {
        let mut request = Request::new(Body::empty());
        request.extensions_mut().insert(Unreadable(status));
        // The handler and its answer need nothing that they would have to wait for.
        let Some((head, body)) = (self.malformed)(request).now_or_never().map(Response::into_parts) else {
            return (HeaderMap::new(), Bytes::new());
        };
        let body = body.collect().now_or_never().and_then(Result::ok).map(Collected::to_bytes).unwrap_or_default();
        (head.headers, body)
    }
}

/// Why a request that could not be read was refused.
#[derive(Clone, Copy)]
pub(crate) struct Unreadable(pub(crate) StatusCode);

/// RFC 9112, section 3.2: one sound Host header, which HTTP/1.0 may leave out.
fn names_its_host(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter().map(HeaderValue::as_bytes);
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.is_empty() || (!host.contains(&b'@') && Authority::try_from(host).is_ok()),
        (None, _) => version < Version::HTTP_11,
        (Some(_), Some(_)) => false,
    }
}

impl Methods {
    pub(crate) fn new(handlers: Vec<(Method, Handler)>, other: Handler) -> Self {
        let mut allowed: Vec<_> = handlers.iter().map(|(method, _)| method.as_str()).collect();
        if allowed.contains(&Method::GET.as_str()) {
            allowed.push(Method::HEAD.as_str());
        }
        let allow = HeaderValue::try_from(allowed.join(",")).unwrap_or(HeaderValue::from_static(""));
        Self { handlers, other, allow }
    }

    async fn answer(&self, request: Request) -> Response {
        // What answers GET answers HEAD, and hyper leaves the body out.
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        if let Some((_, handler)) = self.handlers.iter().find(|(handled, _)| handled == method) {
            return handler(request).await;
        }
        let mut response = (self.other)(request).await;
        response.headers_mut().insert(header::ALLOW, self.allow.clone());
        response
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["saltern"], true)]
    #[case(&["127.0.0.1:8080"], true)]
    #[case(&["[::1]:8080"], true)]
    #[case(&[""], true)]
    #[case(&[], false)]
    #[case(&["a", "a"], false)]
    #[case(&["a b"], false)]
    #[case(&["a/b"], false)]
    #[case(&["user@a"], false)]
    fn requests_name_one_host(#[case] hosts: &[&str], #[case] sound: bool) {
        let hosts = hosts.iter().map(|host| (header::HOST, host.parse().unwrap()));
        assert_eq!(names_its_host(Version::HTTP_11, &hosts.collect()), sound);
    }

    #[test]
    fn only_old_requests_leave_the_host_out() {
        assert!(names_its_host(Version::HTTP_10, &HeaderMap::new()));
    }
}
