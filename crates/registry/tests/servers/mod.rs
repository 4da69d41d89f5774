//! Registries on real servers.

use std::time::Duration;

use redis::FromRedisValue;
use saltern_backends::{Redis, free_port, wait_until};
use saltern_registry::redis::{RedisOptions, RedisRegistry};

pub(crate) fn options(url: String) -> RedisOptions {
    RedisOptions { urls: vec![url], ..RedisOptions::default() }
}

pub(crate) async fn registry(redis: &Redis) -> RedisRegistry {
    RedisRegistry::connect(options(redis.url())).await.unwrap()
}

/// An answer that is more than a word.
pub(crate) fn ask<T: FromRedisValue>(redis: &Redis, words: &[&str]) -> T {
    let client = redis::Client::open(redis.url()).unwrap();
    redis::cmd(words[0]).arg(&words[1..]).query(&mut client.get_connection().unwrap()).unwrap()
}

/// One that no busy machine makes late: conformance is not about time.
pub(crate) async fn patient(mut options: RedisOptions) -> RedisRegistry {
    options.timeout = Duration::from_secs(30);
    RedisRegistry::connect(options).await.unwrap()
}

pub(crate) fn keys(redis: &Redis) -> u64 {
    redis.ask(&["DBSIZE"]).parse().unwrap()
}

/// Three primaries that share the slots.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Redis>,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let bus_ports: Vec<_> = (0..3).map(|_| free_port().to_string()).collect();
        let node = |bus: &String| {
            Redis::with(&["--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000"])
        };
        let cluster = Self { nodes: bus_ports.iter().map(node).collect() };
        let ranges = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        for (i, (node, (from, to))) in cluster.nodes.iter().zip(ranges).enumerate() {
            node.ask(&["CLUSTER", "ADDSLOTSRANGE", from, to]);
            node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
        }
        for (node, bus) in cluster.nodes.iter().zip(&bus_ports).skip(1) {
            cluster.nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string(), bus]);
        }
        cluster.wait_until_ok();
        cluster
    }

    pub(crate) fn wait_until_ok(&self) {
        wait_until("the cluster is whole", || {
            self.nodes.iter().all(|node| {
                let info = node.ask(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            })
        });
    }

    pub(crate) fn options(&self) -> RedisOptions {
        let urls = self.nodes.iter().map(Redis::url).collect();
        RedisOptions { urls, cluster: true, ..RedisOptions::default() }
    }

    pub(crate) async fn registry(&self) -> RedisRegistry {
        RedisRegistry::connect(self.options()).await.unwrap()
    }
}
