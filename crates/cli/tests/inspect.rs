//! `saltern inspect`, of a running server and of a folder at rest.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use serde_json::{Value, json};
use support::{Client, Server, append_body, plain_failure, run, saltern};
use tempfile::TempDir;

const CONVERSATION: &str = "tea #1/ü..";

async fn fill(server: &Server, count: usize) {
    let messages: Vec<_> = (0..count).map(|i| append_body(&format!("m{i}"), "hey")).collect();
    let answer = Client::connect(server.addr).await.unwrap().batch(CONVERSATION, &messages).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.json);
}

fn inspected(folder: &TempDir, args: &[&str]) -> String {
    let output = run(folder.path(), &[&["inspect", CONVERSATION], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_server_and_its_folder_tell_the_same() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    fill(&server, 50).await;

    let text = inspected(&folder, &["--url", &server.url()]);
    assert!(text.contains("head            50"), "{text}");
    assert!(text.contains("tea %231/ü..\n"), "{text}");
    let asked: Value = serde_json::from_str(&inspected(&folder, &["--url", &server.url(), "--json"])).unwrap();
    assert_eq!(asked["conversation_id"], CONVERSATION);
    assert_eq!(asked["head_seq"], 50);
    assert_eq!((&asked["newest_page_partitions"], &asked["older_page_partitions"]), (&json!(1), &json!(1)));
    assert_eq!(asked["recent_gaps"], json!([]));

    let error = plain_failure(&run(folder.path(), &["inspect", CONVERSATION, "--data", "data"]));
    assert!(error.contains(&format!("--url {}", server.url())), "{error}");

    server.terminate();
    let mut opened: Value = serde_json::from_str(&inspected(&folder, &["--data", "data", "--json"])).unwrap();
    assert_eq!(opened["rate_wcu_per_s"], 0.0);
    opened["rate_wcu_per_s"] = asked["rate_wcu_per_s"].clone();
    // A lower bound, which the server had come to know by writing.
    assert!(opened["stable_through"].as_u64() <= Some(50));
    opened["stable_through"] = asked["stable_through"].clone();
    assert_eq!(opened, asked);
}

/// Nobody forges a line of an operator's terminal with an id, or steers it.
#[tokio::test]
async fn ids_are_escaped_for_people() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let hostile = "tea\nhead            9\u{1b}[2J\u{202e}";
    let mut client = Client::connect(server.addr).await.unwrap();
    assert_eq!(client.append(hostile, &append_body("m1", "hey")).await.unwrap().status, 201);
    let output = run(folder.path(), &["inspect", hostile, "--url", &server.url()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("conversation    tea\\nhead            9\\u{1b}[2J\\u{202e}\n"), "{text:?}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control() && c != '\u{202e}'), "{text:?}");
    let error = plain_failure(&run(folder.path(), &["inspect", "\u{1b}[2Jno", "--url", &server.url()]));
    assert!(!error.contains('\u{1b}'), "{error:?}");
    let json = run(folder.path(), &["inspect", hostile, "--json", "--url", &server.url()]);
    assert_eq!(serde_json::from_slice::<Value>(&json.stdout).unwrap()["conversation_id"], hostile);
    server.terminate();
}

#[tokio::test]
async fn what_is_not_there_is_said_to_be_so() {
    let folder = TempDir::new().unwrap();
    let error = plain_failure(&run(folder.path(), &["inspect", "tea"]));
    assert!(error.contains("saltern-data"), "{error}");
    assert!(!folder.path().join("saltern-data").exists());

    let server = Server::start(&folder.path().join("saltern-data"));
    let error = plain_failure(&run(folder.path(), &["inspect", "nobody", "--url", &server.url()]));
    assert!(error.contains("no conversation \"nobody\""), "{error}");
    fill(&server, 1).await;
    let url = server.url();
    server.terminate();
    let error = plain_failure(&run(folder.path(), &["inspect", "nobody"]));
    assert!(error.contains("no conversation \"nobody\""), "{error}");
    let error = plain_failure(&run(folder.path(), &["inspect", "tea", "--url", &url]));
    assert!(error.contains(&url), "{error}");
    let error = plain_failure(&run(folder.path(), &["inspect", "", "--url", &url]));
    assert!(error.contains("must not be empty"), "{error}");
    let both = run(folder.path(), &["inspect", "tea", "--url", &url, "--data", "x"]);
    assert_eq!(both.status.code(), Some(2));
}

#[tokio::test]
async fn a_server_with_keys_wants_one() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("keys.toml");
    // `printf %s secret | sha256sum`
    let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let key = format!("[[api_keys]]\nname = 'ops'\nsha256 = '{hash}'\nscopes = ['admin']\n");
    std::fs::write(&config, key).unwrap();
    let server = Server::start_with(&folder.path().join("data"), &["--config", config.to_str().unwrap()]);
    let args = ["inspect", "tea", "--url", &server.url()];
    let error = plain_failure(&run(folder.path(), &args));
    assert!(error.contains("401"), "{error}");
    let with_key = run(folder.path(), &[&args[..], &["--key", "secret"]].concat());
    assert!(plain_failure(&with_key).contains("no conversation"));
    let with_variable = saltern().args(args).env("SALTERN_KEY", "secret").output().unwrap();
    assert!(plain_failure(&with_variable).contains("no conversation"));
}

/// What answers at the address answers, though it is no Saltern server.
#[test]
fn another_servers_refusal_is_shown() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Read::read(&mut stream, &mut [0; 4_096]).unwrap();
        std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let error = plain_failure(&run(std::path::Path::new("."), &["inspect", "tea", "--url", &url]));
    assert_eq!(error, format!("error: request to {url} failed: 400 Bad Request: no reason given"));
    other.join().unwrap();
}
