//! From a path and a method to whoever answers.

use std::pin::Pin;

use axum::extract::Request;
use axum::response::Response;
use http::{HeaderValue, Method, header};

pub(crate) type Handler = Box<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Response> + Send>> + Send + Sync>;

/// The whole HTTP interface.
pub struct Interface {
    paths: matchit::Router<Methods>,
    not_found: Handler,
}

/// The handlers of one path.
pub(crate) struct Methods {
    handlers: Vec<(Method, Handler)>,
    other: Handler,
    allow: HeaderValue,
}

impl Interface {
    pub(crate) fn new(not_found: Handler) -> Self {
        Self { paths: matchit::Router::new(), not_found }
    }

    pub(crate) fn add(&mut self, path: &str, methods: Methods) {
        // Paths are ours, and each is there once: every test of a server would fail.
        let added = self.paths.insert(path, methods);
        debug_assert!(added.is_ok(), "{path}");
    }

    pub async fn answer(&self, request: Request) -> Response {
        let methods = self.paths.at(request.uri().path()).map(|found| found.value);
        match methods {
            Ok(methods) => methods.answer(request).await,
            Err(_) => (self.not_found)(request).await,
        }
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
