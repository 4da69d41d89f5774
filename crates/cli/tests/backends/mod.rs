//! DynamoDB Local and Redis as child processes on free ports of loopback; killed when dropped.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::PATIENCE;

const DYNAMODB_LOCAL: &str = "SALTERN_DYNAMODB_LOCAL";

pub(crate) struct DynamoLocal {
    process: Child,
    port: u16,
}

impl DynamoLocal {
    pub(crate) fn start() -> Self {
        let folder = std::env::var_os(DYNAMODB_LOCAL).map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| panic!("{DYNAMODB_LOCAL} is not set; run scripts/test"));
        let port = free_port();
        let mut java = Command::new("java");
        java.arg(format!("-Djava.library.path={}", folder.join("DynamoDBLocal_lib").display()));
        java.args(["-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb", "-disableTelemetry", "-port"]);
        java.arg(port.to_string()).current_dir(&folder);
        let process = quietly(&mut java);
        until_answered(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", b"HTTP/");
        Self { process, port }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for DynamoLocal {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

pub(crate) struct Redis {
    process: Child,
    port: u16,
    folder: TempDir,
}

impl Redis {
    pub(crate) fn start() -> Self {
        let (port, folder) = (free_port(), TempDir::new().unwrap());
        Self { process: redis_server(port, &folder), port, folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&mut self) {
        end(&mut self.process);
    }

    /// Empty, on the same port.
    pub(crate) fn restart(&mut self) {
        self.kill();
        self.process = redis_server(self.port, &self.folder);
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

fn redis_server(port: u16, folder: &TempDir) -> Child {
    let mut redis = Command::new("redis-server");
    redis.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string(), "--dir"]);
    let process = quietly(redis.arg(folder.path()));
    until_answered(port, b"PING\r\n", b"+PONG");
    process
}

fn quietly(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; run scripts/test, which installs it"))
}

fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn until_answered(port: u16, question: &[u8], answer: &[u8; 5]) {
    let began = Instant::now();
    while !answers(port, question, answer) {
        assert!(began.elapsed() < PATIENCE, "nobody answers on port {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn answers(port: u16, question: &[u8], answer: &[u8; 5]) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut head = [0; 5];
    stream.write_all(question).and_then(|()| stream.read_exact(&mut head)).is_ok() && head == *answer
}
