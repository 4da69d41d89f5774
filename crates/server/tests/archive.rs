//! The archive and erasure over HTTP; with the feature `cloud-tests` on DynamoDB Local.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod harness;

use harness::{Harness, MESSAGES, loopback};
use http::StatusCode;
use serde_json::{Value, json};

async fn archive(server: &Harness, order: Value) -> Value {
    let reply = server.post("/v1/archive", order.to_string()).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

async fn page(server: &Harness, query: &str) -> Value {
    let reply = server.get(&format!("{MESSAGES}?{query}")).await;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    reply.json()
}

#[tokio::test]
async fn archived_messages_read_as_before() {
    let server = Harness::open().await;
    server.fill(30).await;
    let before = page(&server, "limit=30").await;
    let planned = archive(&server, json!({"dry_run": true})).await;
    assert_eq!((&planned["messages"], &planned["objects"], &planned["done"]), (&json!(30), &json!(1), &json!(true)));
    assert!(planned["dollars_once"].as_f64().unwrap() > 0.0);
    assert_eq!(page(&server, "limit=30").await, before);
    let done = archive(&server, json!({})).await;
    assert_eq!((&done["messages"], &done["due"], &done["failed"]), (&json!(30), &json!(1), &json!([])));
    let mut after = page(&server, "limit=30").await;
    for message in after["messages"].as_array_mut().unwrap() {
        let at = message["s3_ref"].take();
        let at = at.as_str().unwrap();
        assert!(at.starts_with("memory:/c/seg-0000000000000001-") && at.contains('#') && at.contains('+'), "{at}");
        assert!(message.get("erased").is_none());
    }
    assert_eq!(after, before);
    let refs = page(&server, "limit=3&archived=refs").await;
    assert!(refs["messages"].as_array().unwrap().iter().all(|m| m["content"].is_null() && m["s3_ref"].is_string()));
    let one = server.get(&format!("{MESSAGES}/7?archived=refs")).await.json();
    assert_eq!((&one["content"], &one["message_id"]), (&Value::Null, &json!("m7")));
    assert_eq!(server.get(&format!("{MESSAGES}/7")).await.json()["content"], "hey");
    assert_eq!(archive(&server, json!({})).await["messages"], 0);
}

#[tokio::test]
async fn erased_messages_keep_their_places() {
    let server = Harness::open().await;
    server.fill(10).await;
    archive(&server, json!({})).await;
    for n in [11, 12] {
        server.post(MESSAGES, harness::message(&format!("m{n}")).to_string()).await;
    }
    for seq in [3, 3, 12] {
        let reply = server.delete(&format!("{MESSAGES}/{seq}")).await;
        assert_eq!(reply.json(), json!({"conversation_id": "c", "seq_no": seq, "erased": true}));
    }
    let messages = page(&server, "after_seq=0&limit=20").await["messages"].take();
    assert_eq!(messages.as_array().unwrap().len(), 12);
    for message in messages.as_array().unwrap() {
        let gone = [3, 12].contains(&message["seq_no"].as_u64().unwrap());
        assert_eq!(message["content"], if gone { Value::Null } else { json!("hey") });
        assert_eq!(message.get("erased"), gone.then_some(&json!(true)));
        assert_eq!(message["sender_id"], "alice");
    }
    let one = server.get(&format!("{MESSAGES}/3")).await;
    assert_eq!((one.status, &one.json()["erased"]), (StatusCode::OK, &json!(true)));
    assert_eq!(server.delete(&format!("{MESSAGES}/13")).await.problem(), (404, "beyond-head".into()));
    assert_eq!(server.delete("/v1/conversations/other/messages/1").await.problem(), (404, "beyond-head".into()));
    let all = server.delete(MESSAGES).await.json();
    assert_eq!(all, json!({"conversation_id": "c", "messages": 10}));
    assert_eq!(server.delete(MESSAGES).await.json()["messages"], 0);
    assert_eq!(server.delete("/v1/conversations/other/messages").await.json()["messages"], 0);
    let again = server.post(MESSAGES, harness::message("m3").to_string()).await;
    assert_eq!((again.status, again.json()["seq_no"].as_u64()), (StatusCode::OK, Some(3)));
}

#[tokio::test]
async fn what_is_kept_can_be_checked() {
    let server = Harness::open().await;
    server.fill(20).await;
    archive(&server, json!({})).await;
    let answer = server.post("/v1/verify", "{}").await.json();
    let expected = json!({"conversations": 1, "rows": 20, "claims": 20, "archived": 20, "faults": [], "resume": null});
    assert_eq!(answer, expected);
    let end = json!({"resume": {"partition": "zzz", "sort": 0}});
    assert_eq!(server.post("/v1/verify", end.to_string()).await.status, StatusCode::OK);
}

#[tokio::test]
async fn bad_orders_change_nothing() {
    let server = Harness::open().await;
    server.fill(3).await;
    let before = server.mark();
    for (path, order) in [
        ("/v1/archive", "[]"),
        ("/v1/archive", r#"{"older_than_s":-1}"#),
        ("/v1/archive", r#"{"messages_per_s":0}"#),
        ("/v1/archive", r#"{"dry":true}"#),
        ("/v1/verify", r#"{"resume":7}"#),
        ("/v1/verify", r#"{"from":null}"#),
    ] {
        let reply = server.post(path, order).await;
        assert_eq!(reply.problem(), (400, "invalid-request".into()), "{order}");
    }
    assert_eq!(server.get(&format!("{MESSAGES}?archived=all")).await.problem(), (400, "invalid-request".into()));
    assert_eq!(server.delete(&format!("{MESSAGES}/0")).await.problem(), (400, "invalid-request".into()));
    assert_eq!(server.delete(&format!("{MESSAGES}?limit=1")).await.problem(), (400, "invalid-request".into()));
    assert_eq!(server.mark(), before);
}

/// Without an archive contents stay where they are, and can still be erased.
#[tokio::test]
async fn without_an_archive_nothing_moves() {
    let server = Harness::start(loopback(), |config| config.objects = None).await;
    server.fill(3).await;
    assert_eq!(server.post("/v1/archive", "{}").await.problem(), (501, "no-archive".into()));
    assert_eq!(server.delete(&format!("{MESSAGES}/2")).await.status, StatusCode::OK);
    assert_eq!(server.get(&format!("{MESSAGES}/2")).await.json()["content"], Value::Null);
}
