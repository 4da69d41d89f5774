//! Campaigns with the real binary: served, loaded from files, and kept over a kill.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use support::{Client, PATIENCE, Server, plain_line, run, saltern};
use tempfile::TempDir;

const LAST_UPDATED: i64 = 1_763_200_000_000;

fn event(partner: usize) -> String {
    json!({"tenant": "at", "partner_id": format!("p{partner}"), "delivery_areas": ["*"], "boost_score": 1.5,
           "last_updated": LAST_UPDATED})
    .to_string()
}

fn events(count: usize) -> String {
    (0..count).map(|i| event(i) + "\n").collect()
}

fn gz(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

fn file(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

async fn served(folder: &TempDir) -> (Server, Client) {
    let server = Server::start(&folder.path().join("data"));
    let mut client = Client::connect(server.addr).await.unwrap();
    let market = json!({"model": "wildcard", "time_zone": "Europe/Vienna"});
    assert_eq!(client.put("/v1/tenants/at", &market).await.unwrap().status, 200);
    (server, client)
}

fn load(folder: &TempDir, file: &Path, to: &[&str]) -> Output {
    let args = [&["campaigns", "load", file.to_str().unwrap(), "--json"], to].concat();
    run(folder.path(), &args)
}

fn summary(output: &Output) -> (Value, Value, Value) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let summary: Value = serde_json::from_str(&stdout)
        .unwrap_or_else(|_| panic!("{stdout}\n{}", String::from_utf8_lossy(&output.stderr)));
    (summary["applied"].clone(), summary["stale"].clone(), summary["rejected"].clone())
}

async fn boosted(client: &mut Client, partners: std::ops::Range<usize>) -> usize {
    let ids: Vec<_> = partners.map(|i| format!("p{i}")).collect();
    let answer = client.post("/v1/boosts/query", &json!({"tenant": "at", "partner_ids": ids})).await.unwrap();
    assert_eq!(answer.json["unread"], json!([]), "{}", answer.json);
    answer.json["boosts"].as_array().unwrap().len()
}

#[test]
fn a_folder_that_is_not_there_is_not_made() {
    let folder = TempDir::new().unwrap();
    let path = file(&folder, "events.ndjson", events(1));
    let error = support::plain_failure(&load(&folder, &path, &["--data", "typo"]));
    assert!(error.contains("no data folder typo"), "{error}");
    assert!(!folder.path().join("typo").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_loaded_plain_and_packed_and_are_there_after_a_kill() {
    let folder = TempDir::new().unwrap();
    let (server, mut client) = served(&folder).await;
    let url = server.url();
    let to = ["--url", url.as_str()];
    let text = events(5_000);
    let two_parts = [gz(&text[..text.len() / 2]), gz(&text[text.len() / 2..])].concat();
    let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let plain = load(&folder, &file(&folder, "plain", &text), &to);
    assert_eq!((plain.status.code(), summary(&plain)), (Some(0), (json!(5_000), json!(0), json!(0))));
    for packed in [file(&folder, "gz", two_parts), file(&folder, "zst", zst), file(&folder, "empty", "")] {
        let output = load(&folder, &packed, &to);
        let stale = if packed.ends_with("empty") { 0 } else { 5_000 };
        assert_eq!((output.status.code(), summary(&output)), (Some(0), (json!(0), json!(stale), json!(0))));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "progress was left behind");
    server.kill();
    let server = Server::start(&folder.path().join("data"));
    let mut client_after = Client::connect(server.addr).await.unwrap();
    assert_eq!(boosted(&mut client_after, 4_500..5_500).await, 500);
    assert!(client.get("/healthz").await.is_err());
    server.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_nobody_serves_is_loaded_directly() {
    let folder = TempDir::new().unwrap();
    let (server, _) = served(&folder).await;
    let path = file(&folder, "events", events(3_000));
    let data = folder.path().join("data");
    let to = ["--data", data.to_str().unwrap()];
    let refused = load(&folder, &path, &to);
    assert_eq!(refused.status.code(), Some(1));
    assert!(plain_line(&String::from_utf8_lossy(&refused.stderr)).contains("--url"));
    server.terminate();
    assert_eq!(summary(&load(&folder, &path, &to)), (json!(3_000), json!(0), json!(0)));
    let server = Server::start(&data);
    let mut client = Client::connect(server.addr).await.unwrap();
    assert_eq!(boosted(&mut client, 0..1_000).await, 1_000);
    server.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_lines_are_told_and_the_rest_goes_on() {
    let folder = TempDir::new().unwrap();
    let (server, mut client) = served(&folder).await;
    let url = server.url();
    let text = format!("{}\nnot an event\n\n{}\n{}", event(0), event(1), &event(2)[..30]);
    let output = load(&folder, &file(&folder, "events", text), &["--url", url.as_str()]);
    assert_eq!((output.status.code(), summary(&output)), (Some(1), (json!(2), json!(0), json!(2))));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("line 2: ") && stderr.contains("line 5: "), "{stderr}");
    assert!(plain_line(&stderr).contains("2 events were rejected"), "{stderr}");
    let letters = client.get("/v1/dead-letters?limit=100").await.unwrap().json;
    assert_eq!(letters["dead_letters"].as_array().unwrap().len(), 2, "{letters}");
    server.terminate();
}

/// What was whole is loaded, the mistake is told, and once the file is mended the load goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_cut_short_is_told() {
    let folder = TempDir::new().unwrap();
    let (server, mut client) = served(&folder).await;
    let url = server.url();
    let text = events(20_000);
    let zst = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, packed) in [("gz", gz(&text)), ("zst", zst)] {
        let path = file(&folder, name, &packed[..packed.len() - packed.len() / 4]);
        for again in [false, true] {
            let output = load(&folder, &path, &["--url", url.as_str()]);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(plain_line(&stderr).contains("cut short"), "{stderr}");
            assert_eq!(stderr.contains("resuming after line"), again, "{stderr}");
        }
        let mended = file(&folder, name, &packed);
        let output = load(&folder, &mended, &["--url", url.as_str()]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(boosted(&mut client, 19_500..20_500).await, 500);
    let missing = load(&folder, &folder.path().join("missing"), &["--url", url.as_str()]);
    assert!(plain_line(&String::from_utf8_lossy(&missing.stderr)).contains("cannot open"));
    server.terminate();
}

const MANY: usize = 60_000;

fn start_load(file: &Path, to: &[&str]) -> Child {
    let mut command = saltern();
    command.args(["campaigns", "load", file.to_str().unwrap(), "--json"]).args(to);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

async fn all_boosted(client: &mut Client) -> usize {
    let mut found = 0;
    for first in (0..MANY).step_by(1_000) {
        found += boosted(client, first..first + 1_000).await;
    }
    found
}

/// The loader is killed, and started again: whatever was under way is loaded.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_was_killed_is_finished_by_the_next() {
    let folder = TempDir::new().unwrap();
    let (server, mut client) = served(&folder).await;
    let path = file(&folder, "events", events(MANY));
    let url = server.url();
    let mut load_killed = start_load(&path, &["--url", &url]);
    let began = Instant::now();
    while boosted(&mut client, 0..1_000).await == 0 {
        assert!(began.elapsed() < PATIENCE && load_killed.try_wait().unwrap().is_none());
    }
    load_killed.kill().unwrap();
    load_killed.wait().unwrap();
    let before = all_boosted(&mut client).await;
    assert!(before < MANY, "the kill came too late");
    let output = load(&folder, &path, &["--url", &url]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(all_boosted(&mut client).await, MANY);
    server.terminate();
}

/// The process that has the folder is killed in mid-load: the folder opens, and the next load completes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_folder_whose_load_was_killed_is_whole() {
    let folder = TempDir::new().unwrap();
    let (server, _) = served(&folder).await;
    server.terminate();
    let path = file(&folder, "events", events(MANY));
    let data = folder.path().join("data");
    let to = ["--data", data.to_str().unwrap()];
    let mut amid = 0;
    for delay_ms in [50, 100, 200, 400, 800] {
        let mut load_killed = start_load(&path, &to);
        std::thread::sleep(Duration::from_millis(delay_ms));
        amid += usize::from(load_killed.try_wait().unwrap().is_none());
        let _ = load_killed.kill();
        load_killed.wait().unwrap();
    }
    assert!(amid > 0, "every kill came too late");
    assert_eq!(load(&folder, &path, &to).status.code(), Some(0));
    let server = Server::start(&data);
    let mut client = Client::connect(server.addr).await.unwrap();
    assert_eq!(all_boosted(&mut client).await, MANY);
    server.terminate();
}

/// The server is killed in mid-load and started again: the load waits for it, and then ends well.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_outlives_its_server() {
    let folder = TempDir::new().unwrap();
    let (server, mut client) = served(&folder).await;
    let path = file(&folder, "events", events(MANY));
    let (url, addr) = (server.url(), server.addr);
    let mut load = start_load(&path, &["--url", &url]);
    while boosted(&mut client, 0..1_000).await == 0 {
        assert!(load.try_wait().unwrap().is_none());
    }
    server.kill();
    assert!(load.try_wait().unwrap().is_none(), "the kill came too late");
    let server = Server::start_at(addr, &folder.path().join("data"));
    until("the load has ended", || load.try_wait().unwrap().is_some());
    let output = load.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mut client = Client::connect(server.addr).await.unwrap();
    assert_eq!(all_boosted(&mut client).await, MANY);
    server.terminate();
}
