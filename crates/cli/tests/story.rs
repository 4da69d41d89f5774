//! The promises that a client relies on, end to end against the real binary.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::collections::HashSet;

use support::{Client, Server, append_body};
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn many_copies_of_one_message_are_one_message() {
    const COPIES: usize = 50;
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let addr = server.addr;
    let copies: Vec<_> = (0..COPIES)
        .map(|_| {
            tokio::spawn(async move {
                let mut client = Client::connect(addr).await.unwrap();
                client.append("tea", &append_body("m1", "hey")).await.unwrap()
            })
        })
        .collect();
    let (mut created, mut replayed, mut places) = (0, 0, HashSet::new());
    for copy in copies {
        let answer = copy.await.unwrap();
        places.insert(answer.seq());
        match answer.status {
            201 => created += 1,
            200 => replayed += 1,
            status => panic!("{status}: {}", answer.json),
        }
        assert_eq!(answer.json["replayed"], answer.status == 200);
    }
    assert_eq!((created, replayed, places.len()), (1, COPIES - 1, 1));

    let mut client = Client::connect(addr).await.unwrap();
    let other = client.append("tea", &append_body("m1", "another body")).await.unwrap();
    assert_eq!(other.status, 409, "{}", other.json);
    let page = client.older("tea", None).await.unwrap().unwrap();
    assert_eq!(page.messages.len(), 1);
    assert_eq!(page.messages[0].value.text(), Some("hey"));
    server.terminate();
}

#[tokio::test]
async fn look_alikes_are_conversations_of_their_own() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let mut client = Client::connect(server.addr).await.unwrap();
    let names = ["a", "a#1", "a%231", "a#ctl", "a#id#x", ".", "..", "a/b", "a b", "ü🧂"];
    for name in names {
        // The same message_id everywhere: it names a message within its conversation only.
        let answer = client.append(name, &append_body("x", name)).await.unwrap();
        assert_eq!((answer.status, answer.seq().get()), (201, 1), "{name}: {}", answer.json);
        assert_eq!(answer.json["conversation_id"], name);
    }
    for name in names {
        let page = client.older(name, None).await.unwrap().unwrap();
        let contents: Vec<_> = page.messages.iter().map(|m| m.value.text().unwrap()).collect();
        assert_eq!(contents, [name]);
    }
    server.terminate();
}

#[tokio::test]
async fn pages_lead_through_the_whole_history_both_ways() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let mut client = Client::connect(server.addr).await.unwrap();
    let messages: Vec<_> = (1..=450).map(|i| append_body(&format!("m{i}"), &i.to_string())).collect();
    let answer = client.batch("tea", &messages).await.unwrap();
    let places = answer.json["results"].as_array().unwrap().iter().map(|r| r["seq_no"].as_u64().unwrap());
    assert_eq!(places.collect::<Vec<_>>(), (1..=450).collect::<Vec<_>>());

    let (mut down, mut before) = (Vec::new(), None);
    loop {
        let page = client.older("tea", before).await.unwrap().unwrap();
        down.extend(page.messages.iter().map(|m| m.seq.get()));
        before = page.next_before;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(down, (1..=450).rev().collect::<Vec<_>>());
    let (mut up, mut after) = (Vec::new(), 0);
    loop {
        let page = client.newer("tea", after).await.unwrap().unwrap();
        up.extend(page.messages.iter().map(|m| m.seq.get()));
        after = page.next_after;
        if page.at_end {
            break;
        }
    }
    assert_eq!(up, (1..=450).collect::<Vec<_>>());
    server.terminate();
}
