//! Redis and DynamoDB Local as child processes on free ports of loopback; killed when dropped.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Names the folder of DynamoDB Local.
const DYNAMODB_LOCAL: &str = "SALTERN_DYNAMODB_LOCAL";
const START_MAX: Duration = Duration::from_secs(60);
const ANSWER_MAX: Duration = Duration::from_secs(5);

pub(super) struct Backend {
    process: Child,
    port: u16,
}

/// How to tell that a server is up.
struct Greeting {
    question: &'static [u8],
    answer: &'static [u8; 5],
}

impl Backend {
    pub(super) async fn redis() -> Result<Self> {
        let port = free_port()?;
        let mut redis = Command::new("redis-server");
        redis.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
        let greeting = Greeting { question: b"PING\r\n", answer: b"+PONG" };
        Self::start(&mut redis, port, greeting).await.context("cannot start redis-server; install it or use --redis")
    }

    pub(super) async fn dynamodb_local() -> Result<Self> {
        let Some(folder) = std::env::var_os(DYNAMODB_LOCAL).map(PathBuf::from) else {
            bail!("name a DynamoDB with --endpoint, or the folder of DynamoDB Local in {DYNAMODB_LOCAL}");
        };
        let port = free_port()?;
        let mut java = Command::new("java");
        java.arg(format!("-Djava.library.path={}", folder.join("DynamoDBLocal_lib").display()));
        java.args(["-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb", "-disableTelemetry", "-port"]);
        java.arg(port.to_string()).current_dir(&folder);
        let greeting = Greeting { question: b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", answer: b"HTTP/" };
        Self::start(&mut java, port, greeting).await.context("cannot start DynamoDB Local")
    }

    async fn start(command: &mut Command, port: u16, greeting: Greeting) -> Result<Self> {
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut backend = Self { process, port };
        let give_up = Instant::now() + START_MAX;
        while !greeting.is_answered(port).await {
            if let Some(status) = backend.process.try_wait()? {
                bail!("it ended with {status}");
            }
            if Instant::now() > give_up {
                bail!("nobody answers on port {port}");
            }
            sleep(Duration::from_millis(50)).await;
        }
        Ok(backend)
    }

    pub(super) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://127.0.0.1:{}", self.port)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Greeting {
    async fn is_answered(&self, port: u16) -> bool {
        let asked = async {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
            stream.write_all(self.question).await?;
            let mut head = [0; 5];
            stream.read_exact(&mut head).await?;
            std::io::Result::Ok(head == *self.answer)
        };
        matches!(timeout(ANSWER_MAX, asked).await, Ok(Ok(true)))
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
