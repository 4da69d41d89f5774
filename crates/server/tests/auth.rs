//! Each scope on each route.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod harness;

use harness::{BATCH, BOOSTS, EVENTS, Harness, LETTERS, MESSAGES, REPLAY, event, loopback, message, request};
use http::{Method, StatusCode};
use saltern_server::{ApiKey, Scope, ServerConfig};
use serde_json::json;
use sha2::{Digest, Sha256};

fn key(scope: Scope) -> String {
    format!("secret of {scope}").replace(' ', "-")
}

fn config() -> ServerConfig {
    let api_key = |scope: Scope| ApiKey {
        name: scope.to_string(),
        sha256: Sha256::digest(key(scope)).into(),
        scopes: vec![scope],
    };
    ServerConfig { api_keys: Scope::ALL.map(api_key).to_vec(), ..loopback() }
}

const TENANT: &str = r#"{"model":"wildcard","time_zone":"UTC"}"#;

fn routes() -> Vec<(Method, &'static str, String, Option<Scope>)> {
    let batch = json!({"messages": [message("m")]}).to_string();
    vec![
        (Method::POST, MESSAGES, message("m").to_string(), Some(Scope::MessagesWrite)),
        (Method::POST, BATCH, batch, Some(Scope::MessagesWrite)),
        (Method::GET, MESSAGES, String::new(), Some(Scope::MessagesRead)),
        (Method::GET, "/v1/conversations/c/messages/1", String::new(), Some(Scope::MessagesRead)),
        (Method::GET, "/v1/conversations/c", String::new(), Some(Scope::MessagesRead)),
        (Method::PUT, "/v1/tenants/at", TENANT.into(), Some(Scope::Admin)),
        (Method::GET, "/v1/tenants/at", String::new(), Some(Scope::Admin)),
        (Method::POST, EVENTS, event("at", "p", &["*"]).to_string(), Some(Scope::CampaignsWrite)),
        (Method::POST, BOOSTS, r#"{"tenant":"at","partner_ids":["p"]}"#.into(), Some(Scope::BoostsRead)),
        (Method::GET, LETTERS, String::new(), Some(Scope::Admin)),
        (Method::POST, REPLAY, String::new(), Some(Scope::Admin)),
        (Method::POST, "/v1/archive", r#"{"dry_run":true}"#.into(), Some(Scope::Admin)),
        (Method::POST, "/v1/verify", "{}".into(), Some(Scope::Admin)),
        (Method::DELETE, "/v1/conversations/c/messages/1", String::new(), Some(Scope::Admin)),
        (Method::DELETE, MESSAGES, String::new(), Some(Scope::Admin)),
        (Method::GET, "/v1/hot", String::new(), Some(Scope::Admin)),
        (Method::GET, "/metrics", String::new(), Some(Scope::Admin)),
        (Method::GET, "/healthz", String::new(), None),
        (Method::GET, "/readyz", String::new(), None),
        (Method::GET, "/openapi.json", String::new(), None),
    ]
}

#[tokio::test]
async fn each_scope_opens_its_routes_and_no_others() {
    let server = Harness::start(config(), |_| {}).await;
    for (method, path, body, needed) in routes() {
        for scope in Scope::ALL {
            let mut request = request(method.clone(), path, body.clone());
            request.headers_mut().insert("authorization", format!("Bearer {}", key(scope)).parse().unwrap());
            let reply = server.send(request).await;
            let allowed = needed.is_none_or(|needed| scope == needed || scope == Scope::Admin);
            if allowed {
                assert!(reply.status.is_success(), "{scope} on {method} {path}: {reply:?}");
            } else {
                assert_eq!(reply.problem(), (403, "forbidden".into()), "{scope} on {method} {path}");
                assert!(reply.detail().contains(needed.unwrap().as_str()), "{}", reply.detail());
            }
        }
    }
}

#[tokio::test]
async fn without_a_known_key_nothing_happens() {
    let server = Harness::start(config(), |_| {}).await;
    let write = key(Scope::MessagesWrite);
    let bad = [
        String::new(),
        "Bearer".into(),
        "Bearer ".into(),
        "Bearer wrong".into(),
        format!("Basic {write}"),
        write.clone(),
        format!("Bearer {write}x"),
    ];
    for (method, path, body, needed) in routes() {
        let bare = server.send(request(method.clone(), path, body.clone())).await;
        if needed.is_none() {
            assert_eq!(bare.status, StatusCode::OK);
            continue;
        }
        assert_eq!(bare.problem(), (401, "unauthorized".into()), "{path}");
        assert_eq!(bare.header("www-authenticate"), "Bearer");
        for credentials in &bad {
            let mut request = request(method.clone(), path, body.clone());
            request.headers_mut().insert("authorization", credentials.parse().unwrap());
            let reply = server.send(request).await;
            assert_eq!(reply.problem(), (401, "unauthorized".into()), "{credentials}");
            assert!(!reply.text().contains("wrong") && !reply.text().contains(&write));
        }
    }
    assert!(server.is_untouched());
}

#[tokio::test]
async fn an_open_server_asks_for_no_key() {
    let server = Harness::open().await;
    for (method, path, body, _) in routes() {
        assert!(server.send(request(method, path, body)).await.status.is_success(), "{path}");
    }
}
