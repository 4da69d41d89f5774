//! Clients that take up connections, memory and places, and never let go: everyone else is served meanwhile.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod harness;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use harness::{BATCH, EVENTS, Harness, MESSAGES, loopback, message, request};
use http::{Method, StatusCode};
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::message::{Body, Draft};
use saltern_server::{ApiKey, Scope, ServerConfig};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Longer than any test takes.
const FOREVER: Duration = Duration::from_secs(3_600);
/// The longest answer of the contract.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Appends messages of the longest content there is once it is escaped.
async fn fill_with_nuls(server: &Harness, count: u64) {
    for i in 1..=count {
        let body = Body {
            sender_id: ParticipantId::new("alice").unwrap(),
            receiver_id: None,
            content: "\0".repeat(64 * 1024),
            timestamp: None,
        };
        let draft = Draft::new(MessageId::new(&format!("m{i}")).unwrap(), body).unwrap();
        server.services.conversations.append(&ConversationId::new("c").unwrap(), draft).await.unwrap();
    }
}

async fn send(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Asks for a page of 4 MiB, takes the first bytes of it, and no more.
async fn reader_that_stops(address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    send(&mut stream, &format!("GET {MESSAGES}?limit=200 HTTP/1.1\r\nhost: localhost\r\n\r\n")).await;
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    stream
}

/// Reads until the server has closed the connection.
async fn until_closed(stream: &mut TcpStream) -> usize {
    let (mut bytes, mut part) = (0, vec![0; 1024 * 1024]);
    while let Ok(read @ 1..) = stream.read(&mut part).await {
        bytes += read;
    }
    bytes
}

#[tokio::test]
async fn pages_of_long_messages_are_cut_short_and_lead_on() {
    const COUNT: u64 = 40;
    let server = Harness::open().await;
    fill_with_nuls(&server, COUNT).await;
    for (first, direction, next) in
        [(String::new(), "before_seq", "next_before_seq"), ("&after_seq=0".to_owned(), "after_seq", "next_after_seq")]
    {
        let (mut seen, mut cursor) = (BTreeSet::new(), first);
        loop {
            let reply = server.get(&format!("{MESSAGES}?limit=200{cursor}")).await;
            assert_eq!(reply.status, StatusCode::OK);
            assert!(reply.body.len() <= ANSWER_BYTES_MAX, "{} bytes", reply.body.len());
            let page = reply.json();
            let seqs: Vec<_> =
                page["messages"].as_array().unwrap().iter().map(|m| m["seq_no"].as_u64().unwrap()).collect();
            assert!(seqs.iter().all(|seq| seen.insert(*seq)), "{direction}: {seqs:?} again");
            assert_eq!((&page["gaps"], &page["stable_through"]), (&Value::Array(vec![]), &Value::from(COUNT)));
            if page["at_end"] == true || page[next].is_null() {
                break;
            }
            assert!(!seqs.is_empty());
            cursor = format!("&{direction}={}", page[next]);
        }
        assert_eq!(seen, (1..=COUNT).collect());
    }
}

#[tokio::test]
async fn an_answer_keeps_its_place_among_the_reads_until_it_is_written() {
    let config = ServerConfig { write_timeout: FOREVER, ..loopback() };
    let server = Harness::start(config, |service| service.reads_max = 2).await;
    fill_with_nuls(&server, 12).await;
    let mut readers = [reader_that_stops(server.address).await, reader_that_stops(server.address).await];
    // The answers are in memory, so nobody else may read as much.
    assert!(server.services.conversations.admit_read().is_err());
    for reader in &mut readers {
        // It goes on reading, and so gets the whole of its answer.
        let mut answer = vec![0; 3 * 1024 * 1024];
        reader.read_exact(&mut answer).await.unwrap();
    }
    let [first, second] = readers;
    drop(first);
    while server.services.conversations.admit_read().is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(second);
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_given_up() {
    let config = ServerConfig { write_timeout: Duration::from_millis(100), ..loopback() };
    let server = Harness::start(config, |service| service.reads_max = 1).await;
    fill_with_nuls(&server, 12).await;
    let mut reader = reader_that_stops(server.address).await;
    while server.services.conversations.admit_read().is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(until_closed(&mut reader).await < 3 * 1024 * 1024);
}

#[tokio::test]
async fn who_is_turned_away_takes_the_place_of_an_answer_that_nobody_takes() {
    let config = ServerConfig { write_timeout: FOREVER, ..loopback() };
    let server = Harness::start(config, |service| service.reads_max = 1).await;
    fill_with_nuls(&server, 12).await;
    let mut reader = reader_that_stops(server.address).await;
    while server.get(&format!("{MESSAGES}?limit=1")).await.status != StatusCode::OK {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(until_closed(&mut reader).await < 3 * 1024 * 1024);
}

fn head(path: &str, content_type: &str, length: &str, key: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\ncontent-type: {content_type}\r\n{length}\r\n\r\n"
    )
}

#[tokio::test]
async fn slow_senders_take_up_no_more_than_they_have_sent() {
    let config = ServerConfig { body_timeout: FOREVER, ..loopback() };
    let server = Harness::start(config, |_| {}).await;
    server.markets().await;
    let mut slow = Vec::new();
    let lines = head(EVENTS, "application/x-ndjson", "transfer-encoding: chunked", "-") + "1\r\n{\r\n";
    let batch = head(BATCH, "application/json", "content-length: 4194304", "-") + "{";
    for text in [lines, batch].iter().flat_map(|text| std::iter::repeat_n(text, 70)) {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        send(&mut stream, text).await;
        slow.push(stream);
    }
    // `/metrics` itself is one of them.
    let in_flight = format!("saltern_http_requests_in_flight {}\n", slow.len() + 1);
    while !server.get("/metrics").await.text().contains(&in_flight) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let appended = server.post(MESSAGES, message("m").to_string()).await;
    assert_eq!(appended.status, StatusCode::CREATED, "{}", appended.text());
    let batch = serde_json::json!({"messages": [message("n")]}).to_string();
    assert_eq!(server.post(BATCH, batch).await.status, StatusCode::OK);
    let events = server.post(EVENTS, harness::event("de", "p", &["*"]).to_string()).await;
    assert_eq!(events.json()["applied"], 1, "{}", events.text());
}

#[tokio::test]
async fn an_api_key_takes_up_no_more_than_its_share() {
    let api_key = |name: &str| ApiKey {
        name: name.into(),
        sha256: Sha256::digest(name).into(),
        scopes: vec![Scope::MessagesWrite],
    };
    let config =
        ServerConfig { body_timeout: FOREVER, api_keys: vec![api_key("greedy"), api_key("other")], ..loopback() };
    let server = Harness::start(config, |_| {}).await;
    // All but the last byte of each, on and on.
    let body = " ".repeat(4 * 1024 * 1024 - 1);
    let mut held = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (address, body) = (server.address, body.clone());
        held.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let _ =
                stream.write_all(head(BATCH, "application/json", "content-length: 4194304", "greedy").as_bytes()).await;
            let _ = stream.write_all(body.as_bytes()).await;
            until_closed(&mut stream).await
        });
    }
    let append = async |key: &str, id: String| {
        let mut request = request(Method::POST, MESSAGES, message(&id).to_string());
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        let reply = server.send(request).await;
        reply.status
    };
    // A batch of the same key that is as long as the others is turned away, and no other key.
    let refused = held.join_next().await.unwrap().unwrap();
    assert!(refused > 0, "an answer");
    for i in 0..20 {
        assert_eq!(append("other", i.to_string()).await, StatusCode::CREATED);
    }
}

/// A connection that has been served, and may be used again.
async fn served(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    ping(&mut stream).await.unwrap();
    stream
}

/// `None` if the connection was closed.
async fn ping(stream: &mut TcpStream) -> Option<()> {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.ok()?;
    let mut answer = String::new();
    while !answer.ends_with(r#"{"status":"ok"}"#) {
        let mut part = [0; 1_024];
        let read = stream.read(&mut part).await.ok().filter(|read| *read > 0)?;
        answer.push_str(std::str::from_utf8(&part[..read]).unwrap());
    }
    Some(())
}

#[tokio::test]
async fn the_longest_idle_connection_makes_room_for_a_new_one() {
    let server = Harness::start(ServerConfig { connections_max: 3, ..loopback() }, |_| {}).await;
    let mut connections = Vec::new();
    for _ in 0..3 {
        connections.push(served(server.address).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The first is used once more, so that the second has been idle for longest.
    ping(&mut connections[0]).await.unwrap();
    let mut new = served(server.address).await;
    assert_eq!(until_closed(&mut connections[1]).await, 0);
    for stay in [0, 2] {
        assert!(ping(&mut connections[stay]).await.is_some(), "{stay}");
    }
    assert!(ping(&mut new).await.is_some());
}

#[tokio::test]
async fn hundreds_of_idle_connections_keep_nobody_out() {
    let server = Harness::start(ServerConfig { connections_max: 20, ..loopback() }, |_| {}).await;
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(server.address).await.unwrap());
    }
    server.fill(20).await;
}

#[tokio::test]
async fn a_connection_with_a_request_is_not_closed_for_a_new_one() {
    let server = Harness::start(ServerConfig { connections_max: 1, ..loopback() }, |_| {}).await;
    let body = message("m").to_string();
    let mut busy = TcpStream::connect(server.address).await.unwrap();
    send(&mut busy, &head(MESSAGES, "application/json", &format!("content-length: {}", body.len()), "-")).await;
    // It was served before: this one is accepted after it.
    let mut waiting = TcpStream::connect(server.address).await.unwrap();
    send(&mut waiting, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert!(until_closed(&mut waiting).await > 0);
    let mut third = TcpStream::connect(server.address).await.unwrap();
    send(&mut third, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    send(&mut busy, &body).await;
    let mut answer = [0; 12];
    busy.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201");
    drop(busy);
    assert!(until_closed(&mut third).await > 0);
}
