use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::process::{Process, answers, free_port, wait_until};

const FOLDER: &str = "SALTERN_DYNAMODB_LOCAL";
const DYNOXIDE: &str = "SALTERN_DYNOXIDE_BIN";

/// DynamoDB Local, AWS's own engine, in memory; or dynoxide, for a second opinion, where its binary is named.
pub struct DynamoLocal {
    _process: Process,
    port: u16,
}

impl DynamoLocal {
    pub fn start() -> Self {
        let port = free_port();
        let mut server = match std::env::var_os(DYNOXIDE) {
            Some(binary) => dynoxide(&binary),
            None => dynamodb_local(),
        };
        let process = Process::start(server.arg(port.to_string()));
        wait_until("DynamoDB answers", || {
            answers(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", b"HTTP/")
        });
        Self { _process: process, port }
    }

    /// One for all tests of a binary, which take tables of their own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<DynamoLocal> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn dynamodb_local() -> Command {
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| panic!("{FOLDER} is not set; run scripts/test, which fetches it"));
    let mut java = Command::new("java");
    java.arg(format!("-Djava.library.path={}", folder.join("DynamoDBLocal_lib").display()));
    java.args(["-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb", "-disableTelemetry", "-port"]);
    java.current_dir(folder);
    java
}

fn dynoxide(binary: &OsStr) -> Command {
    let mut dynoxide = Command::new(binary);
    dynoxide.args(["serve", "--log", "quiet", "--port"]);
    dynoxide
}
