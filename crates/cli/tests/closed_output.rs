//! Standard output and standard error may be closed or a full disk. Every command then ends as it is documented to.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::fs::File;
use std::process::{Command, Output, Stdio};

use rstest::rstest;
use support::{Client, Server, append_body, plain_line, saltern};
use tempfile::TempDir;

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe that nobody reads.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn ended(mut command: Command) -> Output {
    command.spawn().unwrap().wait_with_output().unwrap()
}

/// A folder with a message in it, and a file of campaign events.
async fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    Client::connect(server.addr).await.unwrap().append("tea", &append_body("m1", "hey")).await.unwrap();
    server.terminate();
    std::fs::write(folder.path().join("events"), "").unwrap();
    folder
}

#[rstest]
#[case::help(&["--help"], "")]
#[case::help_of_a_command(&["serve", "--help"], "")]
#[case::version(&["--version"], "")]
#[case::config(&["config", "check"], "error: cannot write to standard output")]
#[case::verify(&["verify", "--data", "data"], "error: cannot write to standard output")]
#[case::verify_json(&["verify", "--data", "data", "--json"], "error: cannot write to standard output")]
#[case::inspect(&["inspect", "tea", "--data", "data"], "error: cannot write to standard output")]
#[case::inspect_json(&["inspect", "tea", "--data", "data", "--json"], "error: cannot write to standard output")]
#[case::archive(&["archive", "--data", "data", "--dry-run"], "error: cannot write to standard output")]
#[case::load(&["campaigns", "load", "events", "--data", "data"], "error: cannot write to standard output")]
#[tokio::test]
async fn a_result_that_cannot_be_printed_is_a_failure(#[case] args: &[&str], #[case] line: &str) {
    let folder = folder().await;
    for stdout in [full, closed] {
        let mut command = saltern();
        command.args(args).current_dir(folder.path()).stdout(stdout()).stderr(Stdio::piped());
        let output = ended(command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
        if line.is_empty() {
            assert_eq!(stderr, "", "{args:?}");
        } else {
            assert!(plain_line(&stderr).starts_with(line), "{args:?}: {stderr}");
        }
    }
}

#[rstest]
#[case::usage(&["nonsense"], 2)]
#[case::failure(&["verify", "--data", "nowhere"], 1)]
#[case::success(&["verify", "--data", "data"], 0)]
#[tokio::test]
async fn nobody_need_read_standard_error(#[case] args: &[&str], #[case] code: i32) {
    let folder = folder().await;
    for stderr in [full, closed] {
        let mut command = saltern();
        command.args(args).current_dir(folder.path()).stdout(Stdio::piped()).stderr(stderr());
        assert_eq!(ended(command).status.code(), Some(code), "{args:?}");
    }
}

/// A server goes on serving when its logs cannot be written.
#[tokio::test]
async fn a_server_outlives_its_log() {
    let folder = TempDir::new().unwrap();
    let mut command = saltern();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(folder.path().join("data"));
    command.env("SALTERN_LOG", "debug").stdout(Stdio::piped()).stderr(full());
    let mut process = command.spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(process.stdout.take().unwrap()), &mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    let mut client = Client::connect(address).await.unwrap();
    for i in 0..3 {
        let answer = client.append("tea", &append_body(&format!("m{i}"), "hey")).await.unwrap();
        assert_eq!(answer.status, 201);
    }
    assert!(process.try_wait().unwrap().is_none());
    process.kill().unwrap();
    process.wait().unwrap();
}
