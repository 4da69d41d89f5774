//! `saltern archive`, a server's own passes and erasure, with the real binary: killed in the middle, under load, on a folder
//! and, with the feature `cloud`, on DynamoDB Local and moto's S3.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

#[cfg(feature = "cloud")]
mod deployment;
mod support;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};

use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use serde_json::{Value, json};
use support::watched::Watched;
use support::{Client, PATIENCE, Server, append_body, plain_failure, run, saltern};
use tempfile::TempDir;
use tokio::task::JoinSet;

const CONVERSATIONS: [&str; 2] = ["tea/../#1", "salt 🧂"];
const MESSAGES: usize = 900;
const KILLS: u64 = 8;

fn folder_and_data() -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    (folder, data)
}

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn fill(addr: SocketAddr, watched: &[Watched], count: usize) {
    let mut client = Client::connect(addr).await.unwrap();
    for watched in watched {
        let mut ids: Vec<_> = (0..count).map(|n| format!("first-{n}")).collect();
        while !ids.is_empty() {
            let some = &ids[..ids.len().min(100)];
            let bodies: Vec<_> = some.iter().map(|id| append_body(id, &id.repeat(3))).collect();
            let answer = client.batch(&watched.name, &bodies).await.unwrap();
            // What a busy server could not settle in time is sent again.
            for result in answer.json["results"].as_array().into_iter().flatten() {
                if let (Some(id), Some(seq)) = (result["message_id"].as_str(), result["seq_no"].as_u64()) {
                    watched.acknowledge(id, SeqNo::clamped(seq));
                    ids.retain(|there| there != id);
                }
            }
        }
    }
}

/// Reads everything, again and again, until the server is gone. The judge sees every page, and each content.
async fn read_all_the_time(addr: SocketAddr, watched: Arc<[Watched]>) -> u64 {
    let mut rounds = 0;
    let Ok(mut client) = Client::connect(addr).await else { return 0 };
    loop {
        for watched in watched.iter() {
            let mut before = None;
            loop {
                match watched.read_older(&mut client, before).await {
                    Ok(Some(Some(next))) => before = Some(next),
                    Ok(_) => break,
                    Err(_) => return rounds,
                }
            }
        }
        rounds += 1;
    }
}

async fn append_all_the_time(addr: SocketAddr, watched: Arc<[Watched]>, cycle: u64) {
    let Ok(mut client) = Client::connect(addr).await else { return };
    for n in 0.. {
        let watched = &watched[usize::try_from(n % 2).unwrap()];
        let id = format!("more-{cycle}-{n}");
        match client.append(&watched.name, &append_body(&id, &id)).await {
            Ok(answer) if answer.status == 201 => watched.acknowledge(&id, answer.seq()),
            Ok(answer) => assert_eq!(answer.status, 503, "{}", answer.json),
            Err(_) => return,
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn archive_all_the_time(addr: SocketAddr) -> u64 {
    let Ok(mut client) = Client::connect(addr).await else { return 0 };
    let mut moved = 0;
    while let Ok(answer) = client.post("/v1/archive", &json!({"older_than_s": 0})).await {
        assert!(matches!(answer.status, 200 | 503), "{}", answer.json);
        moved += answer.json["messages"].as_u64().unwrap_or(0);
    }
    moved
}

async fn all_is_read(addr: SocketAddr, watched: &[Watched]) {
    let mut client = Client::connect(addr).await.unwrap();
    for watched in watched {
        let (began, mut after) = (Instant::now(), 0);
        loop {
            let reached = watched.read_on(&mut client, after).await.unwrap();
            if reached.at_end {
                break;
            }
            assert!(reached.after > after || began.elapsed() < PATIENCE, "{} stays at {after}", watched.name);
            after = reached.after;
        }
    }
}

/// Kill -9 in the middle of passes, with readers and writers beside them; at the end everything is archived, and no object
/// is left that nothing refers to.
async fn survive(
    start: impl AsyncFn() -> Server,
    command: impl Fn(&str) -> Command,
    objects: impl Fn() -> Option<usize>,
) {
    let watched: Arc<[Watched]> = CONVERSATIONS.into_iter().map(Watched::new).collect();
    let server = start().await;
    fill(server.addr, &watched, MESSAGES).await;
    server.kill();
    let mut rng = SplitMix64::new(11);
    let mut rounds = 0;
    for cycle in 0..KILLS {
        let server = start().await;
        all_is_read(server.addr, &watched).await;
        let mut reading = JoinSet::new();
        reading.spawn(read_all_the_time(server.addr, Arc::clone(&watched)));
        let mut others = JoinSet::new();
        others.spawn(append_all_the_time(server.addr, Arc::clone(&watched), cycle));
        let passing = tokio::spawn(archive_all_the_time(server.addr));
        tokio::time::sleep(Duration::from_millis(5 + rng.below(250))).await;
        server.kill();
        others.join_all().await;
        rounds += reading.join_all().await.into_iter().sum::<u64>();
        passing.await.unwrap();
    }
    // A pass stops at a hole, and only a server seals those that the last kill has left.
    let server = start().await;
    all_is_read(server.addr, &watched).await;
    server.kill();
    let mut archive = command("archive");
    let done = json_of(&archive.args(["--older-than", "0s", "--sweep-all", "--json"]).output().unwrap());
    assert_eq!((&done["failed"], &done["busy"], &done["stopped"]), (&json!(0), &json!(0), &json!(false)), "{done}");
    let checked = json_of(&command("verify").arg("--json").output().unwrap());
    assert_eq!(checked["faults"], 0, "{checked}");
    let acknowledged: usize = watched.iter().map(Watched::acknowledged).sum();
    assert!(checked["archived"].as_u64().unwrap() >= acknowledged as u64, "{checked}");
    let again = json_of(&command("archive").args(["--older-than", "0s", "--json"]).output().unwrap());
    assert_eq!((&again["messages"], &again["orphans_removed"]), (&json!(0), &json!(0)), "{again}");
    let server = start().await;
    all_is_read(server.addr, &watched).await;
    let mut client = Client::connect(server.addr).await.unwrap();
    let mut referred = BTreeSet::new();
    for name in CONVERSATIONS {
        let mut after = 0;
        loop {
            let path = format!("{}/messages?limit=200&archived=refs&after_seq={after}", support::client::path(name));
            let page = client.get(&path).await.unwrap().json;
            let refs = page["messages"].as_array().unwrap().iter().map(|m| m["s3_ref"].as_str().unwrap());
            referred.extend(refs.map(|at| at.split('#').next().unwrap().to_owned()));
            after = page["next_after_seq"].as_u64().unwrap();
            if page["at_end"] == json!(true) {
                break;
            }
        }
    }
    println!("{acknowledged} acknowledged, {} objects, {rounds} rounds of reading", referred.len());
    if let Some(objects) = objects() {
        assert_eq!(objects, referred.len());
    }
    server.terminate();
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn passes_survive_kills() {
    let (folder, data) = folder_and_data();
    let path = data.to_str().unwrap().to_owned();
    let command = |verb: &str| {
        let mut command = saltern();
        command.args([verb, "--data", &path]).env("SALTERN_ARCHIVE_ORPHAN_HOURS", "0").current_dir(folder.path());
        command
    };
    let objects = || Some(files(&data.join("archive")).iter().filter(|file| !file.ends_with("_saltern/swept")).count());
    survive(async || Server::start(&data), command, objects).await;
}

#[cfg(feature = "cloud")]
#[tokio::test(flavor = "multi_thread")]
async fn passes_survive_kills_in_the_cloud() {
    let (dynamodb, redis) = (saltern_backends::DynamoLocal::start(), saltern_backends::Redis::start());
    let moto = saltern_backends::Moto::start();
    moto.create_bucket("old-content");
    let deployment = deployment::Deployment::on(dynamodb.endpoint(), redis.url())
        .with("SALTERN_ARCHIVE_URL", "s3://old-content/saltern")
        .with("SALTERN_ARCHIVE_ENDPOINT", &moto.endpoint())
        .with("SALTERN_ARCHIVE_ORPHAN_HOURS", "0");
    deployment.init(&[]);
    survive(async || deployment.serve_ready().await, |verb| deployment.command(verb), || None).await;
}

/// `saltern archive` itself, killed: started again, it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_can_be_killed_and_goes_on() {
    let (folder, data) = folder_and_data();
    let watched: Arc<[Watched]> = CONVERSATIONS.into_iter().map(Watched::new).collect();
    let server = Server::start(&data);
    fill(server.addr, &watched, 3_000).await;
    server.terminate();
    let path = data.to_str().unwrap();
    let planned =
        json_of(&run(folder.path(), &["archive", "--data", path, "--older-than", "0s", "--dry-run", "--json"]));
    assert_eq!((&planned["messages"], &planned["objects"]), (&json!(6_000), &json!(12)), "{planned}");
    for delay_ms in [60, 90, 130, 180] {
        let mut archive = saltern();
        archive.args(["archive", "--data", path, "--older-than", "0s", "--rate", "4000"]).current_dir(folder.path());
        let mut child =
            archive.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // Ctrl-C ends it between two objects, and says so.
    let mut archive = saltern();
    archive
        .args(["archive", "--data", path, "--older-than", "0s", "--rate", "500", "--json"])
        .current_dir(folder.path());
    let child = archive.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let stopped = child.wait_with_output().unwrap();
    assert_eq!(stopped.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&stopped.stderr).contains("resumes there"), "{stopped:?}");
    let told: Value = serde_json::from_slice(&stopped.stdout).unwrap();
    assert_eq!(told["stopped"], true);
    let server = Server::start(&data);
    all_is_read(server.addr, &watched).await;
    let held = plain_failure(&run(folder.path(), &["archive", "--data", path]));
    assert!(held.contains("in use") || held.contains("served"), "{held}");
    let url = server.url();
    let done = json_of(&run(folder.path(), &["archive", "--url", &url, "--older-than", "0s", "--json"]));
    assert_eq!(done["failed"], 0);
    let checked = json_of(&run(folder.path(), &["verify", "--url", &url, "--json"]));
    assert_eq!((&checked["faults"], &checked["archived"]), (&json!(0), &json!(6_000)), "{checked}");
    all_is_read(server.addr, &watched).await;
    server.terminate();
}

/// A server does by itself what is due, and keeps to its settings.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_archives_on_its_schedule() {
    let (folder, data) = folder_and_data();
    let elsewhere = folder.path().join("elsewhere");
    let mut command = saltern();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
    command.env("SALTERN_ARCHIVE_EVERY_S", "1").env("SALTERN_ARCHIVE_AFTER_DAYS", "0");
    command.env("SALTERN_ARCHIVE_URL", &elsewhere).env("SALTERN_ARCHIVE_LAYOUT", "messages");
    let server = Server::spawn(command).unwrap_or_else(|output| panic!("{output:?}"));
    let mut client = Client::connect(server.addr).await.unwrap();
    client.append("tea", &append_body("m/1", "hey")).await.unwrap();
    let began = Instant::now();
    let at = loop {
        let message = client.get("/v1/conversations/tea/messages/1").await.unwrap().json;
        assert_eq!(message["content"], "hey");
        if let Some(at) = message["s3_ref"].as_str() {
            break at.to_owned();
        }
        assert!(began.elapsed() < PATIENCE, "never archived");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    // Relative to the archive: where that is on the server is no client's business.
    let name = at.strip_prefix("archive/").unwrap();
    assert!(name.starts_with("tea/m=2F1."), "{at}");
    let file = &elsewhere.join(name);
    let object: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!((&object["content"], &object["seq_no"]), (&json!("hey"), &json!(1)));
    std::fs::remove_file(file).unwrap();
    server.terminate();
    let server = Server::start_with(&data, &[]);
    let mut client = Client::connect(server.addr).await.unwrap();
    // Configured elsewhere now: not there, and never as an empty content.
    let lost = client.get("/v1/conversations/tea/messages/1").await.unwrap();
    assert_eq!((lost.status, &lost.json["seq_no"]), (500, &json!(1)), "{}", lost.json);
    assert_eq!(client.get("/v1/conversations/tea/messages/1?archived=refs").await.unwrap().status, 200);
    server.terminate();
}

/// What is erased is found in no file, once the store has been made to let go of what it overwrote.
#[tokio::test(flavor = "multi_thread")]
async fn erased_text_is_nowhere_on_the_disk() {
    let (folder, data) = folder_and_data();
    let server = Server::start(&data);
    let mut client = Client::connect(server.addr).await.unwrap();
    let mut rng = SplitMix64::new(5);
    let mut word = || (0..4).map(|_| format!("{:016x}", rng.next_u64())).collect::<String>();
    let (archived, fresh, kept) = (word(), word(), word());
    for n in 0..200 {
        let text = match n {
            50 => &archived,
            60 => &kept,
            _ => "hey",
        };
        client.append("tea", &append_body(&format!("m{n}"), text)).await.unwrap();
    }
    let url = server.url();
    json_of(&run(folder.path(), &["archive", "--url", &url, "--older-than", "0s", "--json"]));
    client.append("tea", &append_body("fresh", &fresh)).await.unwrap();
    let holds = |word: &str| {
        let holds = |file: &std::path::PathBuf| {
            std::fs::read(file).unwrap().windows(word.len()).any(|window| window == word.as_bytes())
        };
        files(&data).into_iter().filter(holds).count()
    };
    assert!(holds(&archived) > 0 && holds(&fresh) > 0, "the search finds nothing at all");
    for seq in [51, 201] {
        let erased = client.delete(&format!("/v1/conversations/tea/messages/{seq}")).await.unwrap();
        assert_eq!(erased.status, 200, "{}", erased.json);
    }
    let compacted = run(folder.path(), &["archive", "--url", &url, "--older-than", "0s", "--compact", "--json"]);
    assert_eq!(json_of(&compacted)["failed"], 0);
    assert_eq!((holds(&archived), holds(&fresh)), (0, 0), "{:?}", files(&data));
    let message = client.get("/v1/conversations/tea/messages/61").await.unwrap().json;
    assert_eq!(message["content"], kept.as_str());
    server.terminate();
    assert_eq!((holds(&archived), holds(&fresh)), (0, 0));
}

#[test]
fn bad_usage_is_told() {
    let (folder, data) = folder_and_data();
    let absent = plain_failure(&run(folder.path(), &["archive", "--data", data.to_str().unwrap()]));
    assert!(absent.contains("no data folder"), "{absent}");
    assert!(!data.exists());
    for flags in [["--older-than", "90"], ["--older-than", "-1d"], ["--rate", "0"]] {
        assert_eq!(run(folder.path(), &[&["archive"], &flags[..]].concat()).status.code(), Some(2), "{flags:?}");
    }
    let mut check = saltern();
    check.args(["config", "check"]).env("SALTERN_ARCHIVE_URL", "ftp://x").current_dir(folder.path());
    assert!(plain_failure(&check.output().unwrap()).contains("archive.url must be"));
}
