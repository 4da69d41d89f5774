//! A deployment of the cloud mode: where its servers find DynamoDB and Redis, and how they are started.
#![allow(dead_code, reason = "each test file uses its part")]

use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{Client, PATIENCE, Server, saltern};

pub(crate) struct Deployment {
    endpoint: String,
    redis: String,
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl Deployment {
    pub(crate) fn on(endpoint: String, redis: String) -> Self {
        Self { endpoint, redis, folder: TempDir::new().unwrap(), variables: Vec::new() }
    }

    /// With this variable, for every command.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn command(&self, verb: &str) -> Command {
        let mut command = saltern();
        command.arg(verb).current_dir(self.folder.path());
        command.env("SALTERN_MODE", "cloud").env("SALTERN_DYNAMODB_ENDPOINT", &self.endpoint);
        command.env("SALTERN_REDIS_URL", &self.redis).env("SALTERN_TIMEOUTS_APPEND_MS", "3000");
        command.envs(self.variables.iter().cloned());
        command
    }

    pub(crate) fn init(&self, flags: &[&str]) {
        let output = self.command("init").args(flags).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.stdout, b"tables saltern-messages and saltern-campaigns are ready\n");
    }

    /// All that is in the tables is as it should be, servers or not.
    pub(crate) fn verify(&self) {
        let output = self.command("verify").output().unwrap();
        let (told, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && told.contains("no fault"), "{told}{stderr}");
    }

    /// A server that answers, ready or not.
    pub(crate) fn serve(&self) -> Server {
        let mut command = self.command("serve");
        command.args(["--listen", "127.0.0.1:0"]);
        Server::spawn(command).unwrap_or_else(|output| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    }

    pub(crate) async fn serve_ready(&self) -> Server {
        let server = self.serve();
        until_ready(&server).await;
        server
    }
}

pub(crate) async fn until_ready(server: &Server) {
    let began = Instant::now();
    let mut client = Client::connect(server.addr).await.unwrap();
    while client.get("/readyz").await.unwrap().status != 200 {
        assert!(began.elapsed() < PATIENCE, "never ready");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
