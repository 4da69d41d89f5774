//! The deployment: three servers, DynamoDB behind a proxy, two Redis servers behind one address.

use std::time::{Duration, Instant};

use saltern_backends::{Address, DynamoLocal, DynamoProxy, Redis};
use tokio::time::sleep;

use crate::deployment::Deployment;
use crate::load::Load;
use crate::support::watched::Watched;
use crate::support::{Client, PATIENCE, Server, append_body};

const SERVERS: usize = 3;

pub(crate) struct Stage {
    deployment: Deployment,
    servers: Vec<Server>,
    load: Load,
    pub(crate) dynamodb: DynamoProxy,
    address: Address,
    /// The first one is the primary.
    redis: [Redis; 2],
    probes: u64,
    _local: DynamoLocal,
}

/// What a read of everything has found.
#[derive(Debug, Default)]
pub(crate) struct ReadBack {
    pub(crate) acknowledged: u64,
    pub(crate) voids: u64,
    pub(crate) max_n: u64,
}

impl Stage {
    pub(crate) async fn open() -> Self {
        let (local, redis) = (DynamoLocal::start(), [redis(), redis()]);
        let (dynamodb, address) = (DynamoProxy::before(local.port()).await, Address::of(redis[0].port()).await);
        let deployment = Deployment::on(dynamodb.endpoint(), address.url());
        deployment.init(&[]);
        let mut servers = Vec::new();
        for _ in 0..SERVERS {
            servers.push(deployment.serve_ready().await);
        }
        let load = Load::start(servers.iter().map(|server| server.addr).collect());
        Self { deployment, servers, load, dynamodb, address, redis, probes: 0, _local: local }
    }

    pub(crate) fn primary(&mut self) -> &mut Redis {
        &mut self.redis[0]
    }

    pub(crate) fn replica(&mut self) -> &mut Redis {
        &mut self.redis[1]
    }

    pub(crate) fn replicate(&self) {
        self.redis[1].follow(&self.redis[0]);
    }

    /// The other Redis is the primary from now on, and every connection finds that out.
    pub(crate) fn fail_over(&mut self) {
        self.redis.swap(0, 1);
        self.address.move_to(self.redis[0].port());
        self.address.cut();
    }

    /// The other Redis is the primary for some, while the rest do not notice.
    pub(crate) fn fail_over_half(&mut self) {
        self.redis.swap(0, 1);
        self.address.move_to(self.redis[0].port());
        self.address.cut_half();
    }

    pub(crate) fn cut(&self) {
        self.address.cut();
    }

    /// In the midst of whatever it was doing; another takes its place.
    pub(crate) async fn kill_a_server(&mut self) {
        self.servers.remove(0).kill();
        self.servers.push(self.deployment.serve_ready().await);
        *self.load.servers.write().unwrap() = self.servers.iter().map(|server| server.addr).collect();
    }

    /// Redis is down for this long: appends say so, and every page, newest and older, is there and right (I5).
    pub(crate) async fn without_redis(&mut self, down: Duration) {
        self.primary().kill();
        let began = Instant::now();
        let mut pages = 0;
        while began.elapsed() < down {
            for server in &self.servers {
                let mut client = Client::connect(server.addr).await.unwrap();
                for watched in [&self.load.conversations[0], &self.load.conversations[1 + pages % 100]] {
                    let mut before = None;
                    for _ in 0..3 {
                        let page = watched.read_older(&mut client, before).await.unwrap();
                        pages += 1;
                        match page.expect("reads go on without Redis") {
                            Some(next) => before = Some(next),
                            None => break,
                        }
                    }
                }
                self.probes += 1;
                let refused = append_body(&format!("refused-{}", self.probes), "hey");
                let refused = client.append("while redis is down", &refused).await.unwrap();
                assert_eq!(refused.status, 503, "{}", refused.json);
            }
        }
        assert!(pages > 0);
    }

    pub(crate) async fn without_dynamodb(&mut self, down: Duration) {
        self.dynamodb.fall();
        sleep(down).await;
        self.dynamodb.rise().await;
    }

    /// Appends through every server until each of them works; answers how long the slowest took.
    pub(crate) async fn works_again(&mut self) -> Duration {
        let began = Instant::now();
        let mut slowest = Duration::ZERO;
        self.probes += 1;
        for (i, server) in self.servers.iter().enumerate() {
            for (j, watched) in self.load.conversations.iter().step_by(50).enumerate() {
                let probe = format!("probe-{}-{i}-{j}.", self.probes);
                let mut client = Client::connect(server.addr).await.unwrap();
                loop {
                    let answer = client.append(&watched.name, &append_body(&probe, &probe)).await.unwrap();
                    if answer.status != 503 {
                        watched.acknowledge(&probe, answer.seq());
                        break;
                    }
                    assert!(began.elapsed() < PATIENCE, "appends never work again: {}", answer.json);
                    sleep(Duration::from_millis(10)).await;
                }
            }
            slowest = slowest.max(began.elapsed());
        }
        slowest
    }

    /// Reads everything that has been acknowledged by now, through one of the servers.
    pub(crate) async fn examine(&mut self) -> ReadBack {
        self.load.check();
        let server = &self.servers[usize::try_from(self.probes).unwrap() % SERVERS];
        read_everything(server, &self.load.conversations).await
    }

    /// Lets every message be acknowledged, and reads everything through each server.
    pub(crate) async fn close(mut self) -> ReadBack {
        self.load.stop().await;
        let mut found = Vec::new();
        for server in &self.servers {
            found.push(read_everything(server, &self.load.conversations).await);
        }
        let acknowledged: Vec<_> = found.iter().map(|read| read.acknowledged).collect();
        assert!(acknowledged.iter().all(|count| *count == acknowledged[0]), "servers differ: {found:?}");
        let mut read = found.pop().unwrap();
        let mut client = Client::connect(self.servers[0].addr).await.unwrap();
        let hot = crate::support::client::path(&self.load.conversations[0].name);
        read.max_n = client.get(&hot).await.unwrap().json["max_n"].as_u64().unwrap();
        self.deployment.verify();
        for server in self.servers {
            server.terminate();
        }
        read
    }
}

/// One that keeps what it was told, as far as a second ago.
fn redis() -> Redis {
    Redis::with(&["--appendonly", "yes"])
}

async fn read_everything(server: &Server, conversations: &[Watched]) -> ReadBack {
    let mut client = Client::connect(server.addr).await.unwrap();
    let mut read = ReadBack::default();
    for watched in conversations {
        read.acknowledged += watched.acknowledged() as u64;
        let (began, head, mut after) = (Instant::now(), watched.head(), 0);
        while after < head {
            let reached = watched.read_on(&mut client, after).await.unwrap();
            read.voids += reached.voids;
            if reached.after == after {
                assert!(began.elapsed() < PATIENCE, "{}: what is behind {after} stays pending", watched.name);
                sleep(Duration::from_millis(20)).await;
            }
            after = reached.after;
        }
    }
    read
}
