//! File descriptors: idle clients leave enough of them to the engine and to everyone else.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use support::{Client, Server, append_body, without_variables};
use tempfile::TempDir;
use tokio::net::TcpStream;

/// A server of which the shell has limited the open files.
fn limited(ulimit: &str, data: &Path) -> Server {
    let mut command = without_variables(Command::new("bash"));
    let script = format!(r#"{ulimit} && exec "$0" serve --listen 127.0.0.1:0 --data "$1""#);
    command.args(["-c", &script, env!("CARGO_BIN_EXE_saltern")]).arg(data).env("SALTERN_LIMITS_LOG_MIB", "1");
    Server::spawn(command).unwrap_or_else(|output| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn idle_connections_beyond_all_descriptors_stop_nobody() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = limited("ulimit -n 256", &data);
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(TcpStream::connect(server.addr).await.unwrap());
    }
    // Enough for several segments of the log, and for tables made of them; each with a connection of its own.
    let content = "x".repeat(60_000);
    for i in 0..150 {
        let append = async {
            let mut client = Client::connect(server.addr).await.unwrap();
            client.append("tea", &append_body(&format!("m{i}"), &content)).await.unwrap()
        };
        // Long before idle connections are closed for being idle.
        let answer = tokio::time::timeout(Duration::from_secs(30), append).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.json);
    }
    drop(idle);
    server.terminate();
}

#[test]
fn the_limit_of_open_files_is_raised() {
    let folder = TempDir::new().unwrap();
    let server = limited("ulimit -Sn 300 && ulimit -Hn 2048", &folder.path().join("data"));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let open_files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(open_files.split_whitespace().nth(3), Some("2048"), "{open_files}");
}
