//! Overload, slow clients, and the end of a server.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod harness;

use std::time::Duration;

use harness::{Harness, MESSAGES, loopback, message, request};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use prometheus_client::registry::Registry;
use saltern_server::{ApiKey, ServerConfig};
use saltern_store::faulty::FaultPlan;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The head of an append whose body is still to come.
fn head(length: usize) -> String {
    format!(
        "POST {MESSAGES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    )
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

/// A body may be twice as long as allowed, if it is full of escapes: this one could be, until nothing comes.
#[tokio::test]
async fn a_declared_excess_is_refused_without_its_body() {
    let config = ServerConfig { body_timeout: Duration::from_secs(3_600), ..loopback() };
    let server = Harness::start(config, |_| {}).await;
    for length in [1 << 30, 512 * 1024 + 1, 256 * 1024 + 1] {
        let mut sender = TcpStream::connect(server.address).await.unwrap();
        sender.write_all(head(length).as_bytes()).await.unwrap();
        sender.shutdown().await.unwrap();
        let mut status = [0; 12];
        if length <= 512 * 1024 {
            // Closing breaks the body off, so this one stays open.
            sender = TcpStream::connect(server.address).await.unwrap();
            sender.write_all(head(length).as_bytes()).await.unwrap();
        }
        sender.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 413", "{length}");
    }
}

/// Each writes all it has before it reads, as many clients do.
#[tokio::test]
async fn large_senders_see_why_they_are_refused() {
    let api_keys = vec![ApiKey { name: "k".into(), sha256: [0; 32], scopes: vec![] }];
    let locked = Harness::start(ServerConfig { api_keys, ..loopback() }, |_| {}).await;
    let open = Harness::open().await;
    let typed = |content_type: &str| head(24 << 20).replace("application/json", content_type);
    let cases = [
        (&open, typed("application/json"), 413),
        (&open, typed("text/plain"), 415),
        (&locked, typed("application/json"), 401),
    ];
    for (server, head, status) in cases {
        let mut senders = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (address, head) = (server.address, head.clone());
            senders.spawn(async move {
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(&vec![b' '; 24 << 20]).await.unwrap();
                read_all(&mut stream).await
            });
        }
        for answer in senders.join_all().await {
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
        }
    }
}

/// The body has come with the head: nothing is left on the connection that could be taken for a request.
#[tokio::test]
async fn a_refusal_of_a_short_body_leaves_the_connection_open() {
    let server = Harness::open().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let refused = head(1_000).replace("application/json", "text/plain") + &" ".repeat(1_000);
    let last = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all((refused.repeat(2) + last).as_bytes()).await.unwrap();
    let answers = read_all(&mut stream).await;
    assert_eq!(answers.matches("HTTP/1.1 415 ").count(), 2, "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 200 ").count(), 1, "{answers}");
}

#[tokio::test]
async fn a_client_that_has_closed_its_side_gets_its_answer() {
    let server = Harness::open().await;
    let slow = FaultPlan { slow: 1_000, slow_max: Duration::from_millis(20), ..FaultPlan::default() };
    server.store.set_plan(slow);
    for i in 0..30 {
        let body = message(&format!("m{i}")).to_string();
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all((head(body.len()) + &body).as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = read_all(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 201 "), "{i}: {answer}");
    }
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let config = ServerConfig { idle_timeout: Duration::from_millis(50), ..loopback() };
    let server = Harness::start(config, |_| {}).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
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
