//! Overload, slow clients, and the end of a server.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod harness;

use std::time::Duration;

use harness::{Harness, MESSAGES, loopback, message, request};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use saltern_server::ServerConfig;
use saltern_store::faulty::FaultPlan;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The head of an append whose body is still to come.
fn head(length: usize) -> String {
    format!("POST {MESSAGES} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n")
}

async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset after the answer ends the reading as well as an end of file does.
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8(bytes).unwrap()
}

/// Waits until the server has this many requests under way.
async fn until_in_flight(server: &Harness, count: usize) {
    let line = format!("saltern_http_requests_in_flight {count}\n");
    while !server.get("/metrics").await.text().contains(&line) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn beyond_the_bound_requests_are_turned_away_at_once() {
    let server = Harness::start(ServerConfig { requests_max: 2, ..loopback() }, |_| {}).await;
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    waiting.write_all(head(1_000).as_bytes()).await.unwrap();
    // `/metrics` itself is the second.
    until_in_flight(&server, 2).await;
    let mut second = TcpStream::connect(server.address).await.unwrap();
    second.write_all(head(1_000).as_bytes()).await.unwrap();
    loop {
        let reply = server.get(MESSAGES).await;
        if reply.status == StatusCode::SERVICE_UNAVAILABLE {
            assert_eq!(reply.problem(), (503, "overloaded".into()));
            break;
        }
    }
    for probe in ["/healthz", "/readyz", "/openapi.json"] {
        assert_eq!(server.get(probe).await.status, StatusCode::OK);
    }
    drop((waiting, second));
    while server.get(MESSAGES).await.status != StatusCode::OK {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_awaited_for_ever() {
    let config = ServerConfig { body_timeout: Duration::from_millis(50), ..loopback() };
    let server = Harness::start(config, |_| {}).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(head(1_000).as_bytes()).await.unwrap();
    let answer = read_all(&mut slow).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("urn:saltern:problem:request-timeout"), "{answer}");
    assert!(server.is_untouched());
}

#[tokio::test]
async fn a_declared_excess_is_refused_before_the_go_ahead() {
    let server = Harness::open().await;
    let mut polite = TcpStream::connect(server.address).await.unwrap();
    let head = head(1 << 30).replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n");
    polite.write_all(head.as_bytes()).await.unwrap();
    let answer = read_all(&mut polite).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let config = ServerConfig { idle_timeout: Duration::from_millis(50), ..loopback() };
    let server = Harness::start(config, |_| {}).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(read_all(&mut idle).await.starts_with("HTTP/1.1 200 "));
    let mut half = TcpStream::connect(server.address).await.unwrap();
    half.write_all(b"GET /healthz HTT").await.unwrap();
    let _ = read_all(&mut half).await;
}

#[tokio::test]
async fn a_shutdown_lets_requests_end() {
    let server = Harness::open().await;
    let body = message("m").to_string();
    let mut under_way = TcpStream::connect(server.address).await.unwrap();
    under_way.write_all(head(body.len()).as_bytes()).await.unwrap();
    until_in_flight(&server, 2).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    server.stop.cancel();
    assert_eq!(read_all(&mut idle).await, "");
    assert!(!server.running.is_finished());
    under_way.write_all(body.as_bytes()).await.unwrap();
    let answer = read_all(&mut under_way).await;
    assert!(answer.starts_with("HTTP/1.1 201 ") && answer.contains("connection: close"), "{answer}");
    server.running.await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_shutdown_does_not_wait_beyond_its_grace() {
    let config = ServerConfig { shutdown_grace: Duration::from_millis(50), ..loopback() };
    let server = Harness::start(config, |service| service.append_deadline = Duration::from_secs(3_600)).await;
    server.store.set_plan(FaultPlan { slow: 1_000, slow_max: Duration::from_secs(3_600), ..FaultPlan::default() });
    let body = message("m").to_string();
    let mut stuck = TcpStream::connect(server.address).await.unwrap();
    stuck.write_all((head(body.len()) + &body).as_bytes()).await.unwrap();
    until_in_flight(&server, 2).await;
    server.stop.cancel();
    tokio::time::timeout(Duration::from_secs(10), server.running).await.unwrap().unwrap();
    assert_eq!(read_all(&mut stuck).await, "");
}

#[tokio::test]
async fn an_unready_server_says_why() {
    let server = Harness::open().await;
    let ready = std::sync::Arc::new(|| Err("the store is still opening".to_owned()));
    let interface = saltern_server::interface(&loopback(), server.services.clone(), ready, Registry::default());
    let answer = interface.answer(request(Method::GET, "/readyz", "").map(axum::body::Body::new)).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let body = std::str::from_utf8(&body).unwrap();
    assert!(body.contains("urn:saltern:problem:not-ready") && body.contains("still opening"), "{body}");
}
