use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::process::{Process, answers, free_port, wait_until};

const FOLDER: &str = "SALTERN_DYNAMODB_LOCAL";

/// DynamoDB Local, AWS's own engine, in memory.
pub struct DynamoLocal {
    _process: Process,
    port: u16,
}

impl DynamoLocal {
    pub fn start() -> Self {
        let folder = std::env::var_os(FOLDER).map(PathBuf::from);
        let folder = folder.unwrap_or_else(|| panic!("{FOLDER} is not set; run scripts/test, which fetches it"));
        let port = free_port();
        let mut java = Command::new("java");
        java.arg(format!("-Djava.library.path={}", folder.join("DynamoDBLocal_lib").display()));
        java.args(["-jar", "DynamoDBLocal.jar", "-inMemory", "-sharedDb", "-disableTelemetry", "-port"]);
        java.arg(port.to_string()).current_dir(&folder);
        let process = Process::start(&java);
        wait_until("DynamoDB Local answers", || {
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
