//! Real servers on free ports of the loopback interface, which end with their handles.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redis::{FromRedisValue, RedisResult};
use saltern_registry::redis::{RedisOptions, RedisRegistry};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Server {
    child: Option<Child>,
    dir: TempDir,
    pub(crate) port: u16,
    flags: Vec<String>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(flags: &[&str]) -> Self {
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        // Another process may take a free port before the server does.
        for _ in 0..5 {
            let dir = tempfile::tempdir().expect("a folder");
            let mut server = Self { child: None, dir, port: free_port(), flags: flags.clone() };
            if server.spawn() {
                return server;
            }
        }
        panic!("no redis-server came up");
    }

    /// A port on which nobody listens yet.
    pub(crate) fn reserved() -> Self {
        let mut server = Self::start();
        server.kill();
        server
    }

    fn spawn(&mut self) -> bool {
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--dir"]).arg(self.dir.path());
        command.args(["--save", "", "--appendonly", "no"]).args(&self.flags).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("redis-server is not there: run scripts/test, which installs it");
        let child = self.child.insert(child);
        let began = Instant::now();
        loop {
            if child.try_wait().expect("a child").is_some() {
                return false;
            }
            if ask::<String>(self.port, &["PING"]).is_ok() {
                return true;
            }
            assert!(began.elapsed() < PATIENCE, "redis-server does not answer");
            sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Empty, on the same port.
    pub(crate) fn restart(&mut self) {
        self.kill();
        assert!(self.spawn(), "port {} was taken", self.port);
    }

    /// Stops (`STOP`) or resumes (`CONT`) the process.
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.as_ref().expect("it runs").id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().expect("kill").success());
    }

    pub(crate) fn ask<T: FromRedisValue>(&self, words: &[&str]) -> T {
        ask(self.port, words).expect("an answer")
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn options(&self) -> RedisOptions {
        RedisOptions { urls: vec![self.url()], ..RedisOptions::default() }
    }

    pub(crate) async fn registry(&self) -> RedisRegistry {
        RedisRegistry::connect(self.options()).await.expect("sound options")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

fn ask<T: FromRedisValue>(port: u16, words: &[&str]) -> RedisResult<T> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]).query(&mut client.get_connection_with_timeout(Duration::from_secs(1))?)
}

pub(crate) fn wait_until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Makes a server a replica, and waits until it has caught up.
pub(crate) fn follow(replica: &Server, primary: &Server) {
    replica.ask::<()>(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
    wait_until("the replica follows", || {
        replica.ask::<String>(&["INFO", "replication"]).contains("master_link_status:up")
    });
}

/// An address that leads to one server, and later to another. Connections that are open stay where they are.
pub(crate) struct Address {
    port: u16,
    target: Arc<AtomicU16>,
}

impl Address {
    pub(crate) async fn of(server: &Server) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let target = Arc::new(AtomicU16::new(server.port));
        let current = Arc::clone(&target);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let port = current.load(Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
                    copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
        Self { port, target }
    }

    pub(crate) fn move_to(&self, server: &Server) {
        self.target.store(server.port, Ordering::Relaxed);
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

/// Three primaries that share the slots.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Server>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let bus_ports: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let node = |bus: &u16| {
            Server::with(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus.to_string(),
                "--cluster-node-timeout",
                "2000",
            ])
        };
        let cluster = Self { nodes: bus_ports.iter().map(node).collect() };
        let ranges = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        for (i, (node, (from, to))) in cluster.nodes.iter().zip(ranges).enumerate() {
            node.ask::<()>(&["CLUSTER", "ADDSLOTSRANGE", from, to]);
            node.ask::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
        }
        for (node, bus) in cluster.nodes.iter().zip(&bus_ports).skip(1) {
            let (port, bus) = (node.port.to_string(), bus.to_string());
            cluster.nodes[0].ask::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        cluster.wait_until_ok();
        cluster
    }

    pub(crate) fn wait_until_ok(&self) {
        wait_until("the cluster is whole", || {
            self.nodes.iter().all(|node| {
                let info = node.ask::<String>(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
        });
    }

    pub(crate) async fn registry(&self) -> RedisRegistry {
        let urls = self.nodes.iter().map(Server::url).collect();
        RedisRegistry::connect(RedisOptions { urls, cluster: true, ..RedisOptions::default() })
            .await
            .expect("sound options")
    }
}
