//! The contract of the conversation routes: shapes, order of fields, idempotence, cursors, ids.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod harness;

use bytes::Bytes;
use harness::{BATCH, Harness, MESSAGES, loopback, message, request};
use http::{HeaderValue, Method, StatusCode};
use rstest::rstest;
use saltern_store::faulty::{FaultPlan, ReadFaults, WriteFaults};
use serde_json::{Value, json};

#[tokio::test]
async fn an_append_answers_201_and_its_retry_200() {
    let server = Harness::open().await;
    let body = r#"{"message_id":"m1","sender_id":"alice","receiver_id":"bob","content":"hey","timestamp":"2026-11-15T04:20:00Z"}"#;
    let reply = server.post(MESSAGES, body).await;
    assert_eq!(reply.status, StatusCode::CREATED);
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(reply.text(), r#"{"conversation_id":"c","message_id":"m1","seq_no":1,"replayed":false}"#);
    let retry = server.post(MESSAGES, body).await;
    assert_eq!(retry.status, StatusCode::OK);
    assert_eq!(retry.text(), r#"{"conversation_id":"c","message_id":"m1","seq_no":1,"replayed":true}"#);

    let before = server.mark();
    let other = server.post(MESSAGES, message("m1").to_string()).await;
    assert_eq!(other.problem(), (409, "message-id-conflict".into()));
    assert_eq!(other.json()["seq_no"], 1);
    assert_eq!(server.mark(), before);

    let one = server.get("/v1/conversations/c/messages/1").await;
    let expected = r#"{"seq_no":1,"message_id":"m1","sender_id":"alice","receiver_id":"bob","content":"hey","timestamp":"2026-11-15T04:20:00Z","s3_ref":null}"#;
    assert_eq!(one.text(), expected);
}

#[tokio::test]
async fn integers_and_their_digits_are_one_message_id() {
    let server = Harness::open().await;
    let numbered = |id: &str| format!(r#"{{"message_id":{id},"sender_id":"a","content":""}}"#);
    for id in ["7", "0", "-5", "18446744073709551615", "-9223372036854775808"] {
        let number = server.post(MESSAGES, numbered(id)).await;
        assert_eq!((number.status, number.json()["message_id"].as_str()), (StatusCode::CREATED, Some(id)));
        let text = server.post(MESSAGES, numbered(&format!("\"{id}\""))).await;
        assert_eq!((text.status, &text.json()["seq_no"]), (StatusCode::OK, &number.json()["seq_no"]));
    }
}

#[tokio::test]
async fn null_is_absent() {
    let server = Harness::open().await;
    let nulls = r#"{"message_id":"m","sender_id":"a","receiver_id":null,"content":"","timestamp":null}"#;
    assert_eq!(server.post(MESSAGES, nulls).await.status, StatusCode::CREATED);
    let absent = r#"{"content":"","sender_id":"a","message_id":"m"}"#;
    assert_eq!(server.post(MESSAGES, absent).await.status, StatusCode::OK);
    let one = server.get("/v1/conversations/c/messages/1").await.json();
    assert_eq!((&one["receiver_id"], &one["timestamp"], &one["content"]), (&Value::Null, &Value::Null, &json!("")));
}

#[tokio::test]
async fn a_batch_answers_for_each_message_in_order() {
    let server = Harness::open().await;
    server.fill(1).await;
    let taken = json!({"message_id": "m1", "sender_id": "mallory", "content": "other"});
    let batch = json!({"messages": [message("x"), taken, message("x"), message("y")]});
    let reply = server.post(BATCH, batch.to_string()).await;
    assert_eq!(reply.status, StatusCode::OK);
    let results = reply.json()["results"].clone();
    let seq = |i: usize| results[i]["seq_no"].as_u64();
    assert_eq!(results[0], json!({"message_id": "x", "seq_no": seq(0), "replayed": false}));
    assert_eq!(results[1]["message_id"], "m1");
    assert_eq!(results[1]["error"]["type"], "urn:saltern:problem:message-id-conflict");
    assert_eq!(results[1]["error"]["seq_no"], 1);
    assert_eq!(results[2], json!({"message_id": "x", "seq_no": seq(0), "replayed": true}));
    assert!(seq(3) > seq(0));
    assert!(reply.text().starts_with(r#"{"results":[{"message_id":"x","seq_no":"#));
    let retry = server.post(BATCH, json!({"messages": [message("m1")]}).to_string()).await;
    assert_eq!(retry.text(), r#"{"results":[{"message_id":"m1","seq_no":1,"replayed":true}]}"#);
}

#[tokio::test]
async fn pages_in_both_directions() {
    let server = Harness::open().await;
    let empty = server.get(MESSAGES).await;
    assert_eq!(empty.text(), r#"{"messages":[],"next_before_seq":null,"gaps":[],"stable_through":0}"#);
    let empty = server.get(&format!("{MESSAGES}?after_seq=0")).await;
    assert_eq!(empty.text(), r#"{"messages":[],"next_after_seq":0,"at_end":true,"gaps":[],"stable_through":0}"#);

    server.fill(25).await;
    let seqs = |page: &Value| -> Vec<u64> {
        page["messages"].as_array().unwrap().iter().map(|m| m["seq_no"].as_u64().unwrap()).collect()
    };
    let newest = server.get(MESSAGES).await.json();
    assert_eq!(seqs(&newest), (6..=25).rev().collect::<Vec<_>>());
    assert_eq!((&newest["next_before_seq"], &newest["stable_through"]), (&json!(6), &json!(25)));
    let older = server.get(&format!("{MESSAGES}?before_seq=6&limit=200")).await.json();
    assert_eq!((seqs(&older), &older["next_before_seq"]), ((1..=5).rev().collect(), &Value::Null));
    let newer = server.get(&format!("{MESSAGES}?after_seq=3&limit=2")).await.json();
    assert_eq!((seqs(&newer), &newer["next_after_seq"], &newer["at_end"]), (vec![4, 5], &json!(5), &json!(false)));
    let last = server.get(&format!("{MESSAGES}?after_seq=24")).await.json();
    assert_eq!((seqs(&last), &last["next_after_seq"], &last["at_end"]), (vec![25], &json!(25), &json!(true)));
    let beyond = server.get(&format!("{MESSAGES}?before_seq=9007199254740991&limit=1")).await.json();
    assert_eq!(seqs(&beyond), [25]);
    let missing = server.get("/v1/conversations/c/messages/26").await;
    assert_eq!(missing.problem(), (404, "beyond-head".into()));
}

#[tokio::test]
async fn the_operators_views() {
    let server = Harness::open().await;
    let unwritten = server.get("/v1/conversations/never").await;
    let expected = r#"{"conversation_id":"never","head_seq":0,"stable_through":0,"n":1,"max_n":1,"rate_wcu_per_s":0.0,"horizon":1,"epochs":[]}"#;
    assert_eq!(unwritten.text(), expected);
    assert_eq!(server.get("/v1/hot").await.text(), r#"{"conversations":[]}"#);

    server.fill(3).await;
    let view = server.get("/v1/conversations/c").await.json();
    assert_eq!((&view["head_seq"], &view["stable_through"], &view["n"]), (&json!(3), &json!(3), &json!(1)));
    assert_eq!(view["epochs"], json!([{"from_seq": 1, "n": 1}]));
    assert!(view["horizon"].as_u64() > Some(3) && view["rate_wcu_per_s"].is_f64());
    let hot = server.get("/v1/hot?limit=1").await.json()["conversations"][0].clone();
    let keys: Vec<_> = hot.as_object().unwrap().keys().cloned().collect();
    let mut named = ["conversation_id", "rate_wcu_per_s", "n", "max_n", "throttles"];
    named.sort_unstable();
    assert_eq!((&hot["conversation_id"], keys), (&json!("c"), named.map(String::from).to_vec()));

    server.registry.set_down(true);
    assert_eq!(server.get("/v1/conversations/c").await.json()["rate_wcu_per_s"], Value::Null);
    assert_eq!(server.get("/v1/hot").await.problem(), (503, "registry-unavailable".into()));
}

#[tokio::test]
async fn any_id_that_fits_is_legal_and_its_own() {
    let server = Harness::open().await;
    let long = "x".repeat(256);
    let ids = [
        ("plain", "plain"),
        (".", "."),
        ("..", ".."),
        ("%2E%2E%2F", "../"),
        ("a%2Fb", "a/b"),
        ("a%2Fmessages", "a/messages"),
        ("a%231", "a#1"),
        ("a%25", "a%"),
        ("%2525", "%25"),
        ("%00", "\0"),
        ("%20", " "),
        ("+", "+"),
        ("a:b@c;d=e,f", "a:b@c;d=e,f"),
        ("%F0%9F%A7%82", "🧂"),
        ("🧂🧂", "🧂🧂"),
        ("batch", "batch"),
        ("messages", "messages"),
        (&long, &long),
    ];
    for (i, (path, id)) in ids.iter().enumerate() {
        let content = json!({"message_id": "m", "sender_id": "a", "content": i.to_string()});
        let reply = server.post(&format!("/v1/conversations/{path}/messages"), content.to_string()).await;
        assert_eq!((reply.status, &reply.json()["conversation_id"]), (StatusCode::CREATED, &json!(id)), "{path}");
        assert_eq!(reply.json()["seq_no"], 1, "{id} is another's");
    }
    for (i, (path, id)) in ids.iter().enumerate() {
        let one = server.get(&format!("/v1/conversations/{path}/messages/1")).await.json();
        assert_eq!(one["content"], i.to_string());
        let view = server.get(&format!("/v1/conversations/{path}")).await.json();
        assert_eq!((&view["conversation_id"], &view["head_seq"]), (&json!(id), &json!(1)));
    }
}

#[tokio::test]
async fn text_comes_back_as_it_came() {
    let server = Harness::open().await;
    let odd = "\0 # % / . .. 🧂 \u{7f} \u{2028} \" \\ \u{ffff}";
    let body = json!({"message_id": odd, "sender_id": odd, "receiver_id": odd, "content": odd, "timestamp": odd});
    assert_eq!(server.post(MESSAGES, body.to_string()).await.status, StatusCode::CREATED);
    let one = server.get("/v1/conversations/c/messages/1").await.json();
    for field in ["message_id", "sender_id", "receiver_id", "content", "timestamp"] {
        assert_eq!(one[field], odd, "{field}");
    }
}

#[tokio::test]
async fn faults_are_told_apart() {
    let server = Harness::open().await;
    server.fill(1).await;
    let append = |id: &str| (MESSAGES, message(id).to_string());

    server.registry.set_down(true);
    let (path, body) = append("m2");
    assert_eq!(server.post(path, body).await.problem(), (503, "registry-unavailable".into()));
    assert_eq!(server.get(MESSAGES).await.status, StatusCode::OK, "reads never need the registry");
    server.registry.set_down(false);

    let writes = WriteFaults { lost: 1_000, ..WriteFaults::default() };
    server.store.set_plan(FaultPlan { writes, ..FaultPlan::default() });
    let (path, body) = append("m3");
    assert_eq!(server.post(path, body).await.problem(), (503, "outcome-unknown".into()));
    let batch = json!({"messages": [message("m4")]});
    let reply = server.post(BATCH, batch.to_string()).await.json();
    assert_eq!(reply["results"][0]["error"]["type"], "urn:saltern:problem:outcome-unknown");

    let reads = ReadFaults { unavailable: 1_000, ..ReadFaults::default() };
    server.store.set_plan(FaultPlan { reads, ..FaultPlan::default() });
    for path in [MESSAGES, "/v1/conversations/c/messages/1", "/v1/conversations/other"] {
        assert_eq!(server.get(path).await.problem(), (503, "store-unavailable".into()), "{path}");
    }
    server.store.set_plan(FaultPlan::default());
    let (path, body) = append("m3");
    assert!(server.post(path, body).await.status.is_success(), "the same message_id may be sent again");
}

#[tokio::test]
async fn request_ids_are_echoed_if_sound() {
    let server = Harness::open().await;
    let longest = "x".repeat(128);
    let too_long = "x".repeat(129);
    for (sent, echoed) in [("abc-1", true), (&longest, true), (&too_long, false), ("a b", false), ("", false)] {
        for path in ["/healthz", "/nowhere", MESSAGES] {
            let mut request = request(Method::GET, path, "");
            request.headers_mut().insert("x-request-id", sent.parse().unwrap());
            let reply = server.send(request).await;
            assert_eq!(reply.header("x-request-id") == sent, echoed, "{sent:?}");
            assert!(!reply.header("x-request-id").is_empty());
        }
    }
    let (a, b) = (server.get("/healthz").await, server.get("/healthz").await);
    assert_ne!(a.header("x-request-id"), b.header("x-request-id"));
}

#[tokio::test]
async fn probes_and_metrics() {
    let server = Harness::open().await;
    assert_eq!(server.get("/healthz").await.text(), r#"{"status":"ok"}"#);
    assert_eq!(server.get("/readyz").await.text(), r#"{"status":"ready"}"#);
    let head = server.send(request(Method::HEAD, "/healthz", "")).await;
    assert_eq!((head.status, head.body), (StatusCode::OK, Bytes::new()));
    server.fill(2).await;
    server.get("/nowhere").await;
    let metrics = server.get("/metrics").await;
    assert_eq!(metrics.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = metrics.text();
    let route = "/v1/conversations/{conversation_id}/messages";
    let appends = format!(r#"saltern_http_requests_total{{route="{route}",method="POST",status="2xx"}} 2"#);
    assert!(text.contains(&appends), "{text}");
    assert!(text.contains(&format!(r#"saltern_http_request_seconds_count{{route="{route}"}} 2"#)), "{text}");
    assert!(text.contains(r#"saltern_http_requests_total{route="other",method="other",status="4xx"} 1"#), "{text}");
    assert!(text.contains("saltern_append_seconds_count 2") && text.ends_with("# EOF\n"), "{text}");
}

#[tokio::test]
async fn a_server_without_keys_stays_on_loopback() {
    let server = Harness::open().await;
    for (listen, allowed) in [("0.0.0.0:0", false), ("[::]:0", false), ("10.1.2.3:0", false), ("127.0.0.2:0", true)] {
        let config = saltern_server::ServerConfig { listen: listen.parse().unwrap(), ..loopback() };
        let registry = prometheus_client::registry::Registry::default();
        let ready = std::sync::Arc::new(|| Ok(()));
        let bound = saltern_server::Server::bind(config, server.services.clone(), ready, registry).await;
        assert_eq!(bound.is_ok(), allowed, "{listen}");
        assert!(allowed || matches!(bound, Err(saltern_server::BindError::Open(_))));
    }
}

#[tokio::test]
async fn a_browser_gets_a_page_and_everything_else_a_problem() {
    let server = Harness::open().await;
    let asking = |path: &str, accept: &'static str| {
        let mut request = request(Method::GET, path, "");
        request.headers_mut().insert("accept", HeaderValue::from_static(accept));
        request
    };
    let browser = |path: &str| asking(path, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
    let page = server.send(browser("/")).await;
    assert_eq!((page.status, page.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    let links: Vec<_> =
        page.text().split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    assert!(links.iter().any(|link| link == "/openapi.json") && links.iter().any(|link| link == "/docs/guide.md"));
    for link in links {
        assert_ne!(server.get(&link).await.status, StatusCode::NOT_FOUND, "{link}");
    }
    for accept in ["", "*/*", "application/json"] {
        assert_eq!(server.send(asking("/", accept)).await.problem(), (404, "not-found".into()));
    }
    assert_eq!(server.send(browser("/nowhere")).await.problem(), (404, "not-found".into()));
    assert_eq!(server.send(browser("/docs/secrets.md")).await.problem(), (404, "not-found".into()));
    assert_eq!(server.post("/", "{}").await.problem(), (405, "method-not-allowed".into()));
}

/// The errors that a person meets in the first hour.
#[rstest]
#[case::broken_json(
    "POST",
    MESSAGES,
    Some("application/json"),
    r#"{"message_id":"#,
    "body: EOF while parsing a value at line 1 column 14"
)]
#[case::unknown_field(
    "POST",
    MESSAGES,
    Some("application/json"),
    r#"{"text":"x"}"#,
    "body: unknown field `text`, expected one of `message_id`, `sender_id`, `receiver_id`, `content`, `timestamp` at line 1 column 7"
)]
#[case::no_object(
    "POST",
    MESSAGES,
    Some("application/json"),
    "[]",
    "body: invalid type: sequence, expected a JSON object at line 1 column 0"
)]
#[case::other_type(
    "POST",
    MESSAGES,
    Some("text/plain; charset=utf-8"),
    "{}",
    "content-type must be application/json, not \"text/plain\""
)]
#[case::no_type("POST", MESSAGES, None, "{}", "content-type must be application/json, but the request has none")]
#[case::events_type(
    "POST",
    "/v1/campaign-events",
    Some("text/csv"),
    "a,b",
    "content-type must be application/json or application/x-ndjson, not \"text/csv\""
)]
#[case::tenant("GET", "/v1/tenants/de", None, "", "tenant \"de\" is unknown; create it with PUT /v1/tenants/{tenant}")]
#[case::parameter(
    "GET",
    "/v1/conversations/c/messages?offset=1",
    None,
    "",
    "query parameter \"offset\" is unknown; this route takes before_seq, after_seq, limit, archived"
)]
#[case::limit(
    "GET",
    "/v1/conversations/c/messages?limit=1000",
    None,
    "",
    "limit must be a whole number from 1 to 200, in digits, not \"1000\""
)]
#[case::path(
    "GET",
    "/v1/messages",
    None,
    "",
    "no route has this path; /openapi.json lists all routes. Ids in paths must be percent-encoded"
)]
#[case::method("PATCH", MESSAGES, None, "", "PATCH is not allowed here; the allow header lists the methods that are")]
#[tokio::test]
async fn requests_say_what_was_expected(
    #[case] method: &str,
    #[case] path: &str,
    #[case] content_type: Option<&'static str>,
    #[case] body: &'static str,
    #[case] detail: &str,
) {
    let server = Harness::open().await;
    let mut request = request(Method::from_bytes(method.as_bytes()).unwrap(), path, body);
    request.headers_mut().remove("content-type");
    if let Some(content_type) = content_type {
        request.headers_mut().insert("content-type", HeaderValue::from_static(content_type));
    }
    assert_eq!(server.send(request).await.detail(), detail);
}
