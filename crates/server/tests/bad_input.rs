//! Every limit and rule of the contract at its edge: the right problem, and nothing changed.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod harness;

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use harness::{BATCH, Harness, MESSAGES, Reply, message, request};
use http::{Method, Request, StatusCode};
use http_body_util::StreamBody;
use hyper::body::{Body, Frame};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const INVALID: (u16, &str) = (400, "invalid-request");

impl Harness {
    /// The problem that a request meets, after making sure that it changed nothing; and its detail.
    async fn refuse<B>(&self, request: Request<B>) -> (Reply, String)
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let before = self.mark();
        let reply = self.send(request).await;
        assert_eq!(self.mark(), before, "{reply:?}");
        let detail = reply.detail();
        (reply, detail)
    }
}

fn is(expected: (u16, &str)) -> (u16, String) {
    (expected.0, expected.1.into())
}

fn with(field: &str, value: impl Into<Value>) -> Value {
    let mut message = message("m");
    message[field] = value.into();
    message
}

fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// Bodies that are refused, and what the detail must name.
fn bad_messages() -> Vec<(Vec<u8>, &'static str)> {
    let raw = |text: &str| text.as_bytes().to_vec();
    let of = |value: Value| value.to_string().into_bytes();
    let id = |id: &str| format!(r#"{{"message_id":{id},"sender_id":"a","content":""}}"#).into_bytes();
    let mut invalid_utf8 = raw(r#"{"message_id":"m","sender_id":"a","content":""#);
    invalid_utf8.extend(b"\xff\xfe\"}");
    vec![
        (invalid_utf8, "unicode"),
        (raw(" "), "EOF"),
        (raw("{"), "EOF"),
        (raw("null"), "a JSON object"),
        (raw("[]"), "a JSON object"),
        (raw(r#"["m","a",null,"",null]"#), "a JSON object"),
        (raw(r#""m""#), "a JSON object"),
        (raw("\u{feff}{}"), "expected value"),
        (raw(&"[".repeat(200_000)), "a JSON object"),
        (raw(&format!(r#"{{"content":{}"#, "[".repeat(200_000))), "content"),
        (raw(r#"{"message_id":"m","sender_id":"a","content":""} x"#), "trailing"),
        (raw(r#"{"message_id":"m","sender_id":"a","content":""}{}"#), "trailing"),
        (raw(r#"{"message_id":"m","message_id":"m","sender_id":"a","content":""}"#), "message_id"),
        (raw(r#"{"message_id":"m","sender_id":"a","content":"","content":""}"#), "content"),
        (raw(r#"{"message_id":"m","sender_id":"a","content":"\ud800"}"#), "hex escape"),
        (raw(r#"{"message_id":"m","sender_id":"a","content":"","x":1}"#), "`x`"),
        (raw(r#"{"message_id":"m","sender_id":"a","content":"","Content":""}"#), "`Content`"),
        (raw(r#"{"sender_id":"a","content":""}"#), "message_id"),
        (raw(r#"{"message_id":"m","content":""}"#), "sender_id"),
        (raw(r#"{"message_id":"m","sender_id":"a"}"#), "content"),
        (id("7.0"), "as a string"),
        (id("1e3"), "as a string"),
        (id("-0"), "as a string"),
        (id("18446744073709551616"), "as a string"),
        (id("-9223372036854775809"), "as a string"),
        (id("1e400"), "out of range"),
        (id("07"), "number"),
        (id("null"), "message_id"),
        (id("true"), "message_id"),
        (id("[]"), "message_id"),
        (id("\"\""), "message_id must not be empty"),
        (of(with("message_id", text(257))), "message_id is 257 bytes"),
        (of(with("message_id", "🧂".repeat(65))), "message_id is 260 bytes"),
        (of(with("sender_id", "")), "sender_id must not be empty"),
        (of(with("sender_id", text(257))), "sender_id is 257 bytes"),
        (of(with("sender_id", 7)), "sender_id"),
        (of(with("sender_id", Value::Null)), "sender_id"),
        (of(with("receiver_id", "")), "receiver_id must not be empty"),
        (of(with("receiver_id", text(257))), "receiver_id is 257 bytes"),
        (of(with("receiver_id", 7)), "receiver_id"),
        (of(with("content", Value::Null)), "content"),
        (of(with("content", 7)), "content"),
        (of(with("content", text(64 * 1024 + 1))), "content is 65537 bytes"),
        (of(with("timestamp", text(65))), "timestamp is 65 bytes"),
        (of(with("timestamp", 1_763_200_000)), "timestamp"),
    ]
}

#[tokio::test]
async fn bad_messages_are_refused_alone_and_in_a_batch() {
    let server = Harness::open().await;
    server.fill(1).await;
    for (body, named) in bad_messages() {
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let (reply, detail) = server.refuse(request(Method::POST, MESSAGES, body.clone())).await;
        assert_eq!(reply.problem(), is(INVALID), "{shown}");
        assert!(detail.contains(named) && detail.chars().count() < 320, "{shown}: {detail}");
        let batch = [&br#"{"messages":["#[..], message("good").to_string().as_bytes(), b",", &body, b"]}"].concat();
        let (reply, _) = server.refuse(request(Method::POST, BATCH, batch)).await;
        assert_eq!(reply.problem(), is(INVALID), "batch of {shown}");
    }
    let (reply, detail) = server.refuse(request(Method::POST, MESSAGES, "{}")).await;
    assert_eq!((reply.problem(), detail.contains("message_id")), (is(INVALID), true));
}

#[tokio::test]
async fn limits_hold_at_the_byte() {
    let server = Harness::open().await;
    let at_limit = json!({
        "message_id": "🧂".repeat(64), "sender_id": text(256), "receiver_id": text(256),
        "content": text(64 * 1024), "timestamp": text(64),
    });
    assert_eq!(server.post(MESSAGES, at_limit.to_string()).await.status, StatusCode::CREATED);
    let least = json!({"message_id": "m", "sender_id": "a", "receiver_id": "b", "content": "", "timestamp": ""});
    assert_eq!(server.post(MESSAGES, least.to_string()).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn batches_have_1_to_500_messages() {
    let server = Harness::open().await;
    let batch = |count: usize| {
        let messages: Vec<_> = (0..count).map(|i| message(&format!("b{i}"))).collect();
        json!({"messages": messages}).to_string()
    };
    for (body, named) in [
        (batch(0), "at least one message"),
        (batch(501), "500"),
        ("{}".into(), "messages"),
        (r#"{"messages":null}"#.into(), "messages"),
        (r#"{"messages":{}}"#.into(), "messages"),
        (r#"{"messages":[null]}"#.into(), "a JSON object"),
        (batch(1).replace("]}", r#"],"messages":[]}"#), "duplicate field `messages`"),
        (batch(1).replace("]}", r#"],"atomic":true}"#), "`atomic`"),
    ] {
        let (reply, detail) = server.refuse(request(Method::POST, BATCH, body)).await;
        assert_eq!(reply.problem(), is(INVALID));
        assert!(detail.contains(named), "{detail}");
    }
    let third = json!({"messages": [message("a"), message("b"), with("content", text(64 * 1024 + 1)), message("c")]});
    let (reply, detail) = server.refuse(request(Method::POST, BATCH, third.to_string())).await;
    assert_eq!(reply.problem(), is(INVALID));
    assert!(detail.starts_with("messages[2]: content"), "{detail}");

    let most = server.post(BATCH, batch(500)).await;
    assert_eq!(most.status, StatusCode::OK);
    assert_eq!(most.json()["results"].as_array().unwrap().len(), 500);
    assert_eq!(server.post(BATCH, batch(1)).await.json()["results"][0]["replayed"], true);
}

/// A message in a body of exactly so many bytes.
fn padded(bytes: usize, body: &Value) -> Vec<u8> {
    let mut body = body.to_string().into_bytes();
    body.resize(bytes, b' ');
    body
}

fn chunked(path: &str, body: Vec<u8>) -> Request<impl Body<Data = Bytes, Error = Infallible> + use<>> {
    let chunks: Vec<_> = body.chunks(10_000).map(|c| Ok(Frame::data(Bytes::copy_from_slice(c)))).collect();
    let body = StreamBody::new(stream::iter(chunks));
    let request = Request::builder().method(Method::POST).uri(path).header("host", "localhost");
    request.header("content-type", "application/json").body(body).unwrap()
}

#[tokio::test]
async fn bodies_are_bounded_declared_or_chunked() {
    let server = Harness::open().await;
    let single = |id: &str| message(id);
    let batch = |id: &str| json!({"messages": [message(id)]});
    let cases = [(MESSAGES, 256 * 1024, single("a"), single("b")), (BATCH, 4 * 1024 * 1024, batch("c"), batch("d"))];
    for (path, limit, first, second) in cases {
        for excess in [1, 100_000] {
            let (reply, detail) = server.refuse(request(Method::POST, path, padded(limit + excess, &first))).await;
            assert_eq!(reply.problem(), is((413, "payload-too-large")), "{path}");
            assert!(detail.contains(&limit.to_string()), "{detail}");
            let (reply, _) = server.refuse(chunked(path, padded(limit + excess, &first))).await;
            assert_eq!(reply.problem(), is((413, "payload-too-large")), "{path}");
        }
        assert!(server.post(path, padded(limit, &first)).await.status.is_success());
        assert!(server.send(chunked(path, padded(limit, &second))).await.status.is_success());
    }
}

#[tokio::test]
async fn escapes_count_as_what_they_stand_for() {
    let server = Harness::open().await;
    let content =
        |id: &str, content: String| format!(r#"{{"message_id":"{id}","sender_id":"a","content":"{content}"}}"#);
    let most = 64 * 1024;
    for (id, escape) in [("nul", r"\u0000"), ("control", r"\u001f"), ("newline", r"\n"), ("letter", r"\u0061")] {
        let reply = server.post(MESSAGES, content(id, escape.repeat(most))).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{id}: {}", reply.text());
        let (reply, detail) =
            server.refuse(request(Method::POST, MESSAGES, content(id, escape.repeat(most + 1)))).await;
        assert_eq!(reply.problem(), is(INVALID), "{detail}");
        assert!(detail.starts_with("content is 65537 bytes"), "{detail}");
    }
    let one = server.get("/v1/conversations/c/messages/1").await.json();
    assert_eq!(one["content"], "\0".repeat(most));
    let batch = format!(r#"{{"messages":[{}]}}"#, content("b", r"\u0000".repeat(most)));
    assert_eq!(server.post(BATCH, batch).await.status, StatusCode::OK);

    // White space and other fields count as they are.
    let padded = content("p", r"\u0000".repeat(10_000)) + &" ".repeat(256 * 1024);
    let (reply, detail) = server.refuse(request(Method::POST, MESSAGES, padded)).await;
    assert_eq!(reply.problem(), is((413, "payload-too-large")), "{detail}");
}

/// Bytes as they are, and the answers to them until the connection is closed.
async fn exchange(server: &Harness, bytes: Vec<u8>) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let (mut reading, mut writing) = stream.split();
    let mut answer = String::new();
    let (_, read) = tokio::join!(writing.write_all(&bytes), reading.read_to_string(&mut answer));
    read.unwrap();
    answer
}

#[tokio::test]
async fn what_is_no_request_is_refused_with_a_problem() {
    let server = Harness::open().await;
    let get = |rest: &str| format!("GET /healthz HTTP/1.1\r\n{rest}\r\n\r\n").into_bytes();
    let many: String = (0..120).map(|i| format!("\r\nx-{i}: y")).collect();
    let long = text(500_000);
    let (invalid, too_long, too_large) = (INVALID, (414, "uri-too-long"), (431, "head-too-large"));
    let cases = [
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n".to_vec(), invalid),
        (b"hello\r\n\r\n".to_vec(), invalid),
        (b"GET /healthz HTTP/7.0\r\nhost: x\r\n\r\n".to_vec(), invalid),
        (b"GET / healthz HTTP/1.1\r\nhost: x\r\n\r\n".to_vec(), invalid),
        (get("host: x\r\nno colon"), invalid),
        (get("host: x\r\ncontent-length: 1\r\ncontent-length: 2"), invalid),
        (get("accept: */*"), invalid),
        (get("host: x\r\nhost: y"), invalid),
        (get("host: x\r\nhost: x"), invalid),
        (get("host: x y"), invalid),
        (format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", text(70_000)).into_bytes(), too_long),
        (get(&format!("host: x{many}")), too_large),
        (get(&format!("host: x\r\nx-long: {long}")), too_large),
    ];
    for (mut bytes, (status, kind)) in cases {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
        if let Some(end) =
            bytes.strip_suffix(b"\r\n\r\n").map(<[u8]>::len).filter(|_| bytes.starts_with(b"GET /healthz HTTP/1.1"))
        {
            bytes.splice(end..end, *b"\r\nconnection: close");
        }
        let answer = exchange(&server, bytes).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
        let head = head.to_lowercase();
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{shown}: {answer}");
        for field in ["x-request-id: ", "connection: close", "content-type: application/problem+json", "date: "] {
            assert!(head.contains(&format!("\r\n{field}")), "{shown}: {field} in {head}");
        }
        assert!(head.contains(&format!("\r\ncontent-length: {}", body.len())), "{shown}: {answer}");
        let problem: Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["type"], format!("urn:saltern:problem:{kind}"), "{shown}");
        assert_eq!(problem["status"], status, "{shown}");
    }
    assert!(server.is_untouched());
    let old = exchange(&server, b"GET /healthz HTTP/1.0\r\n\r\n".to_vec()).await;
    assert!(old.starts_with("HTTP/1.0 200 "), "{old}");
}

#[tokio::test]
async fn bodies_are_json() {
    let server = Harness::open().await;
    let typed = |content_type: Option<&str>, id: &str| {
        let mut request = request(Method::POST, MESSAGES, message(id).to_string());
        request.headers_mut().remove("content-type");
        if let Some(value) = content_type {
            request.headers_mut().insert("content-type", value.parse().unwrap());
        }
        request
    };
    for bad in [None, Some(""), Some("text/plain"), Some("application/jsonx"), Some("application/x-ndjson")] {
        let (reply, _) = server.refuse(typed(bad, "m")).await;
        assert_eq!(reply.problem(), is((415, "unsupported-media-type")), "{bad:?}");
    }
    let mut packed = typed(Some("application/json"), "m");
    packed.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
    assert_eq!(server.refuse(packed).await.0.problem(), is((415, "unsupported-media-type")));
    for (i, good) in ["application/json", "application/json; charset=utf-8", "Application/JSON ;x=y"].iter().enumerate()
    {
        assert_eq!(server.send(typed(Some(good), &i.to_string())).await.status, StatusCode::CREATED, "{good}");
    }
    let mut empty = typed(Some("application/json"), "m");
    *empty.body_mut() = Bytes::new().into();
    assert_eq!(server.refuse(empty).await.0.problem(), is(INVALID));
}

#[tokio::test]
async fn bad_paths_and_parameters_are_refused() {
    let server = Harness::open().await;
    server.fill(2).await;
    let id = |id: &str| format!("/v1/conversations/{id}/messages");
    let cases = [
        (id(&text(257)), "conversation_id is 257 bytes"),
        (id(""), "conversation_id must not be empty"),
        (id("%ff"), "conversation_id must be UTF-8"),
        (id("%ed%a0%80"), "conversation_id must be UTF-8"),
        (id("%"), "conversation_id"),
        (id("%2"), "conversation_id"),
        (id("%zz"), "conversation_id"),
        (id(&"%F0%9F%A7%82".repeat(65)), "conversation_id is 260 bytes"),
        (format!("{MESSAGES}/0"), "seq_no"),
        (format!("{MESSAGES}/9007199254740992"), "seq_no"),
        (format!("{MESSAGES}/99999999999999999999"), "seq_no"),
        (format!("{MESSAGES}/-1"), "seq_no"),
        (format!("{MESSAGES}/+1"), "seq_no"),
        (format!("{MESSAGES}/1.0"), "seq_no"),
        (format!("{MESSAGES}/%201"), "seq_no"),
        (format!("{MESSAGES}/x"), "seq_no"),
        (format!("{MESSAGES}/1?limit=1"), "limit"),
        (format!("{MESSAGES}?limit=0"), "limit"),
        (format!("{MESSAGES}?limit=201"), "limit"),
        (format!("{MESSAGES}?limit=+1"), "limit"),
        (format!("{MESSAGES}?limit=1&limit=1"), "limit"),
        (format!("{MESSAGES}?before_seq=0"), "before_seq"),
        (format!("{MESSAGES}?before_seq=9007199254740992"), "before_seq"),
        (format!("{MESSAGES}?after_seq=9007199254740992"), "after_seq"),
        (format!("{MESSAGES}?after_seq=-1"), "after_seq"),
        (format!("{MESSAGES}?before_seq=1&after_seq=1"), "exclude"),
        ("/v1/hot?limit=0".into(), "limit"),
        ("/v1/hot?limit=201".into(), "limit"),
        ("/v1/hot?before_seq=1".into(), "before_seq"),
    ];
    for (path, named) in cases {
        let (reply, detail) = server.refuse(request(Method::GET, &path, "")).await;
        assert_eq!(reply.problem(), is(INVALID), "{path}");
        assert!(detail.contains(named), "{path}: {detail}");
    }
    let single_at_end = server.get(&format!("{MESSAGES}/9007199254740991")).await;
    assert_eq!(single_at_end.problem(), is((404, "beyond-head")));
}

#[tokio::test]
async fn no_route_takes_a_parameter_that_it_does_not_know() {
    let server = Harness::open().await;
    let gets = [
        MESSAGES,
        "/v1/conversations/c/messages/1",
        "/v1/conversations/c",
        "/v1/hot",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
    ];
    let requests = gets.map(|path| (Method::GET, path, String::new()));
    let batch = json!({"messages": [message("m")]}).to_string();
    let posts = [(Method::POST, MESSAGES, message("m").to_string()), (Method::POST, BATCH, batch)];
    for (method, path, body) in requests.into_iter().chain(posts) {
        let (reply, detail) = server.refuse(request(method, &format!("{path}?verbose=1"), body)).await;
        assert_eq!(reply.problem(), is(INVALID), "{path}");
        assert!(detail.contains("verbose"), "{detail}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods() {
    let server = Harness::open().await;
    for path in ["/", "/v1", "/v1/conversations", "/v1/conversations/", "/v2/hot"] {
        assert_eq!(server.get(path).await.problem(), is((404, "not-found")), "{path}");
    }
    for path in ["/v1/conversations/c/", "/v1/conversations/c/messages/", "/v1/conversations/c/messages/1/x"] {
        assert_eq!(server.get(path).await.problem(), is((404, "not-found")), "{path}");
    }
    let cases = [
        (Method::PUT, MESSAGES, "DELETE,GET,HEAD,POST"),
        (Method::GET, BATCH, "POST"),
        (Method::POST, "/v1/conversations/c/messages/1", "DELETE,GET,HEAD"),
        (Method::PATCH, "/v1/conversations/c", "GET,HEAD"),
        (Method::OPTIONS, "/v1/hot", "GET,HEAD"),
    ];
    for (method, path, allowed) in cases {
        let (reply, _) = server.refuse(request(method, path, "")).await;
        assert_eq!(reply.problem(), is((405, "method-not-allowed")), "{path}");
        let mut allow: Vec<_> = reply.header("allow").split(',').map(str::trim).collect();
        allow.sort_unstable();
        assert_eq!(allow.join(","), allowed, "{path}");
    }
}
