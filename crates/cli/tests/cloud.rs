//! Two servers of the real binary on DynamoDB Local and a real Redis.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod backends;
mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use backends::{DynamoLocal, Redis};
use saltern_core::seq::SeqNo;
use support::{Client, PATIENCE, Server, append_body, saltern};
use tempfile::TempDir;

const CONVERSATION: &str = "tea #1";

struct Cloud {
    dynamodb: DynamoLocal,
    redis: Redis,
    folder: TempDir,
}

impl Cloud {
    fn command(&self, verb: &str) -> Command {
        let mut command = saltern();
        command.arg(verb).current_dir(self.folder.path());
        command.env("SALTERN_MODE", "cloud").env("SALTERN_DYNAMODB_ENDPOINT", self.dynamodb.endpoint());
        command.env("SALTERN_REDIS_URL", self.redis.url()).env("SALTERN_TIMEOUTS_APPEND_MS", "3000");
        command
    }

    fn init(&self) {
        let output = self.command("init").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, b"table saltern-messages is ready\n");
    }

    fn serve(&self) -> Server {
        let mut command = self.command("serve");
        command.args(["--listen", "127.0.0.1:0"]);
        Server::spawn(command).unwrap_or_else(|output| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    }
}

async fn until_ready(server: &Server) {
    let began = Instant::now();
    let mut client = Client::connect(server.addr).await.unwrap();
    while client.get("/readyz").await.unwrap().status != 200 {
        assert!(began.elapsed() < PATIENCE, "never ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

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
    let mut cloud = Cloud { dynamodb: DynamoLocal::start(), redis: Redis::start(), folder: TempDir::new().unwrap() };
    let early = cloud.serve();
    let missing = Client::connect(early.addr).await.unwrap().get("/readyz").await.unwrap();
    assert_eq!(missing.status, 503, "{}", missing.json);
    // Again, as in every deployment.
    cloud.init();
    cloud.init();
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
    cloud.redis.restart();
    for (i, client) in [&mut a, &mut b].into_iter().enumerate() {
        let message = format!("after-{i}");
        acknowledged.push((append(client, &message).await, message));
    }
    // Redis is gone: reads go on, appends say so, and work again when it is back.
    cloud.redis.kill();
    assert_eq!(history(&mut a).await, acknowledged);
    assert_eq!(history(&mut b).await, acknowledged);
    let refused = a.append(CONVERSATION, &append_body("not yet", "hey")).await.unwrap();
    assert_eq!(refused.status, 503, "{}", refused.json);
    cloud.redis.restart();
    acknowledged.push((append(&mut a, "not yet").await, "not yet".into()));
    assert_eq!(history(&mut b).await, acknowledged);

    for server in servers {
        server.terminate();
    }
}
