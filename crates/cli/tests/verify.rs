//! `saltern verify` with the real binary: what it says of a sound folder, a damaged one, and none.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use saltern_core::ids::{ConversationId, MessageId};
use saltern_core::key::Key;
use saltern_core::layout::Salt;
use saltern_core::message::Digest;
use saltern_core::record::{Claim, Record};
use saltern_core::seq::SeqNo;
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore};
use saltern_store::{Condition, Put, PutOutcome, Store as _};
use serde_json::{Value, json};
use support::{Client, Server, append_body, plain_failure, plain_line, run};
use tempfile::TempDir;

fn verify(folder: &TempDir, data: &Path, flags: &[&str]) -> Output {
    run(folder.path(), &[&["verify", "--data", data.to_str().unwrap()], flags].concat())
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

async fn plant(data: &Path, key: Key, record: Record) {
    let store = Arc::new(EmbeddedStore::open(data, EmbeddedOptions::default()).unwrap());
    let put = Put { key, record, condition: Condition::Absent };
    assert_eq!(store.put(&put).await.unwrap(), PutOutcome::Applied);
    store.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_checked_and_each_fault_is_named() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let absent = plain_failure(&verify(&folder, &data, &[]));
    assert!(absent.contains("no data folder"), "{absent}");
    assert!(!data.exists(), "a check made a folder");

    let server = Server::start(&data);
    let mut client = Client::connect(server.addr).await.unwrap();
    for (conversation, count) in [("tea", 40), ("a#1/ü", 3)] {
        for n in 0..count {
            let body = append_body(&format!("m{n}"), "hey");
            assert_eq!(client.append(conversation, &body).await.unwrap().status, 201);
        }
    }
    let held = plain_failure(&verify(&folder, &data, &[]));
    assert!(held.contains("in use"), "{held}");
    server.terminate();

    let sound = verify(&folder, &data, &[]);
    assert_eq!(sound.status.code(), Some(0), "{sound:?}");
    let told = lines(&sound).pop().unwrap();
    let expected = "no fault; conversations: 2, messages and voids: 43, claims: 43, archived contents: 0 (";
    assert!(told.contains(expected), "{told}");

    let tea = ConversationId::new("tea").unwrap();
    plant(&data, Key::row(&tea, Salt::Of(3), SeqNo::clamped(7)), Record::Void).await;
    let claim = Claim { seq: SeqNo::clamped(1_000_000), digest: Digest([0; 16]) };
    plant(&data, Key::claim(&tea, &MessageId::new("x").unwrap()), Record::Claim(claim)).await;
    let damaged = verify(&folder, &data, &["--json"]);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(plain_line(&String::from_utf8_lossy(&damaged.stderr)).contains("2 faults"));
    let told: Vec<Value> = lines(&damaged).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<_> = told.iter().map(|line| line["fault"].clone()).collect();
    assert_eq!(names, [json!("misplaced"), json!("claim-beyond-horizon"), json!(null)], "{told:?}");
    assert_eq!((&told[2]["faults"], &told[2]["rows"]), (&json!(2), &json!(44)));
}
