//! Two servers of the real binary on DynamoDB Local and a real Redis.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod deployment;
mod support;

use std::time::{Duration, Instant};

use deployment::{Deployment, until_ready};
use saltern_backends::{DynamoLocal, Redis};
use saltern_core::seq::SeqNo;
use serde_json::json;
use support::{Client, PATIENCE, append_body};

const CONVERSATION: &str = "tea #1";

/// Appends until it works; answers with the place.
async fn append(client: &mut Client, message: &str) -> SeqNo {
    let began = Instant::now();
    loop {
        let answer = client.append(CONVERSATION, &append_body(message, "hey")).await.unwrap();
        match answer.status {
            200 | 201 => return answer.seq(),
            503 => assert!(began.elapsed() < PATIENCE, "appends do not work again: {}", answer.json),
            status => panic!("{status}: {}", answer.json),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The whole conversation as (seq_no, message_id), in order.
async fn history(client: &mut Client) -> Vec<(SeqNo, String)> {
    let page = client.newer(CONVERSATION, 0).await.unwrap().expect("reads work");
    assert!(page.at_end, "{page:?}");
    page.messages.iter().map(|message| (message.seq, message.value.message_id.to_string())).collect()
}

#[tokio::test]
async fn two_servers_are_one_service_whatever_redis_forgets() {
    let (dynamodb, mut redis) = (DynamoLocal::start(), Redis::start());
    let cloud = Deployment::on(dynamodb.endpoint(), redis.url());
    let early = cloud.serve();
    let missing = Client::connect(early.addr).await.unwrap().get("/readyz").await.unwrap();
    assert_eq!(missing.status, 503, "{}", missing.json);
    // Again, as in every deployment.
    cloud.init(&["--warm-writes", "6000"]);
    cloud.init(&[]);
    let servers = [early, cloud.serve()];
    for server in &servers {
        until_ready(server).await;
    }
    let [mut a, mut b] =
        [Client::connect(servers[0].addr).await.unwrap(), Client::connect(servers[1].addr).await.unwrap()];

    let mut acknowledged = Vec::new();
    for i in 0..40 {
        let (first, second) = if i % 2 == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
        let message = format!("m{i}");
        let seq = append(first, &message).await;
        assert_eq!(append(second, &message).await, seq, "a retry on the other server is the same message");
        acknowledged.push((seq, message));
    }
    assert_eq!(history(&mut a).await, acknowledged);
    assert_eq!(history(&mut b).await, acknowledged);

    // Redis comes back empty.
    redis.restart();
    for (i, client) in [&mut a, &mut b].into_iter().enumerate() {
        let message = format!("after-{i}");
        acknowledged.push((append(client, &message).await, message));
    }
    // Redis is gone: reads go on, appends say so, and work again when it is back.
    redis.kill();
    assert_eq!(history(&mut a).await, acknowledged);
    assert_eq!(history(&mut b).await, acknowledged);
    let refused = a.append(CONVERSATION, &append_body("not yet", "hey")).await.unwrap();
    assert_eq!(refused.status, 503, "{}", refused.json);
    redis.restart();
    acknowledged.push((append(&mut a, "not yet").await, "not yet".into()));
    assert_eq!(history(&mut b).await, acknowledged);

    for server in servers {
        server.terminate();
    }
}

/// One table of campaigns beneath two servers.
#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_their_campaigns() {
    let (dynamodb, redis) = (DynamoLocal::start(), Redis::start());
    let cloud = Deployment::on(dynamodb.endpoint(), redis.url());
    cloud.init(&[]);
    let (one, other) = (cloud.serve_ready().await, cloud.serve_ready().await);
    let mut writer = Client::connect(one.addr).await.unwrap();
    let mut reader = Client::connect(other.addr).await.unwrap();
    let market = json!({"model": "zoned", "time_zone": "Europe/Berlin"});
    assert_eq!(writer.put("/v1/tenants/de", &market).await.unwrap().status, 200);
    let event = json!({"tenant": "de", "partner_id": "p", "delivery_areas": ["BER-01"], "ended_areas": ["*"],
        "boost_score": 1.5, "last_updated": 1_763_200_000_000_i64});
    let poison = json!({"tenant": "de"});
    let taken = writer.post("/v1/campaign-events", &json!([event, poison])).await.unwrap().json;
    assert_eq!((&taken["applied"], &taken["rejected"][0]["index"]), (&json!(1), &json!(1)), "{taken}");
    let again = reader.post("/v1/campaign-events", &event).await.unwrap().json;
    assert_eq!(again["stale"], 1, "{again}");
    let question = json!({"tenant": "de", "district": "BER-01", "partner_ids": ["p", "q"]});
    let answer = reader.post("/v1/boosts/query", &question).await.unwrap().json;
    assert_eq!(answer, json!({"boosts": [{"partner_id": "p", "boost_score": 1.5, "area": "BER-01"}], "unread": []}));
    let letters = reader.get("/v1/dead-letters").await.unwrap().json;
    assert_eq!(letters["dead_letters"].as_array().unwrap().len(), 1, "{letters}");
}
