//! The document at `/openapi.json`, and the server against it, judged by tools that others have made. `scripts/openapi-tools`
//! fetches them.
#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod harness;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use harness::{EVENTS, Harness, MESSAGES, event};
use serde_json::json;

const TOOLS: &str = "SALTERN_OPENAPI_TOOLS";

/// Test cases for each operation, always the same ones.
const EXAMPLES: &str = "30";
const SEED: &str = "22";

const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemathesis.toml");
const HOOKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/schemathesis_hooks.py");

/// Where what they leave behind does not matter.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Runs a tool beside the server that it asks, and expects it to be content.
async fn run(program: &'static str, args: Vec<String>) {
    let tools = std::env::var_os(TOOLS).map(PathBuf::from);
    let tools = tools.unwrap_or_else(|| panic!("{TOOLS} is not set; run scripts/test, which fetches them"));
    let mut command = Command::new(tools.join(program));
    command.args(args).current_dir(folder()).stdin(Stdio::null());
    command.env("NO_COLOR", "1").env("PYTHONDONTWRITEBYTECODE", "1").env("SCHEMATHESIS_HOOKS", HOOKS);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{program} is not content:\n{stdout}\n{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_is_valid_openapi() {
    let server = Harness::open().await;
    let document = folder().join("openapi.json");
    std::fs::write(&document, server.get("/openapi.json").await.body).unwrap();
    run("openapi-spec-validator", vec![document.to_str().unwrap().to_owned()]).await;
}

/// Requests that fit the document, and others that do not, are answered as it says. What is left out, and why, is in
/// `schemathesis.toml` and `schemathesis_hooks.py`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_keeps_to_its_document() {
    let server = Harness::open().await;
    // Something to find.
    server.markets().await;
    server.fill(3).await;
    server.post(EVENTS, json!([event("de", "p", &["*"]), event("nowhere", "p", &["*"])]).to_string()).await;
    server.delete(&format!("{MESSAGES}/1")).await;
    let url = format!("http://{}/openapi.json", server.address);
    let args = ["--config-file", CONFIG, "run", &url, "--seed", SEED, "--max-examples", EXAMPLES];
    run("schemathesis", args.map(String::from).to_vec()).await;
}
