//! Apache Kafka with its ZooKeeper, from the folder that `scripts/kafka-broker` prints.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::process::{Process, answers, free_port, wait_until};

const FOLDER: &str = "SALTERN_KAFKA_FOLDER";

pub struct Kafka {
    _zookeeper: Process,
    _broker: Process,
    _data: TempDir,
    port: u16,
}

impl Kafka {
    /// `None` unless the tests are told where the broker is. Topics appear when they are asked for, with so many
    /// partitions.
    pub fn start_if_named(partitions: i32) -> Option<Self> {
        let libs = PathBuf::from(std::env::var_os(FOLDER)?).join("libs");
        let data = TempDir::new().unwrap();
        let (zookeeper_port, port) = (free_port(), free_port());
        let path = |name: &str| data.path().join(name).display().to_string();
        let settings = [
            ("dataDir", path("zookeeper")),
            ("clientPort", zookeeper_port.to_string()),
            ("clientPortAddress", "127.0.0.1".into()),
        ];
        let zookeeper = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
        let zookeeper = Process::start(&java(&libs, zookeeper, &properties(&data, "zookeeper", &settings)));
        wait_until("ZooKeeper answers", || answers(zookeeper_port, b"ruok", b"imok"));
        let settings = [
            ("broker.id", "0".into()),
            ("listeners", format!("PLAINTEXT://127.0.0.1:{port}")),
            ("advertised.host.name", "127.0.0.1".into()),
            ("advertised.port", port.to_string()),
            ("log.dirs", path("log")),
            ("zookeeper.connect", format!("127.0.0.1:{zookeeper_port}")),
            ("num.partitions", partitions.to_string()),
            ("auto.create.topics.enable", "true".into()),
            ("offsets.topic.num.partitions", "1".into()),
        ];
        let broker = Process::start(&java(&libs, "kafka.Kafka", &properties(&data, "broker", &settings)));
        wait_until("Kafka listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(Self { _zookeeper: zookeeper, _broker: broker, _data: data, port })
    }

    pub fn servers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What a client of this version must be told.
    pub fn client_options() -> &'static [(&'static str, &'static str)] {
        &[("api.version.request", "false"), ("broker.version.fallback", "0.9.0.1")]
    }
}

fn properties(data: &TempDir, name: &str, settings: &[(&str, String)]) -> PathBuf {
    let file = data.path().join(format!("{name}.properties"));
    let lines: String = settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    std::fs::write(&file, lines).unwrap();
    file
}

fn java(libs: &Path, main: &str, properties: &Path) -> Command {
    let mut java = Command::new("java");
    java.args(["-Xmx256m", "-cp", &format!("{}/*", libs.display()), main]).arg(properties);
    java
}
