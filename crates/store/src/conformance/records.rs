//! Rows come back as they were written.

use saltern_core::archive::{ArchiveState, Move, Nonce};
use saltern_core::control::ControlRecord;
use saltern_core::heat::HeatState;
use saltern_core::ids::{MessageId, ParticipantId};
use saltern_core::key::Key;
use saltern_core::layout::Layout;
use saltern_core::limits::{CONTENT_BYTES_MAX, EPOCHS_MAX, ID_BYTES_MAX, SEQ_NO_END, TIMESTAMP_BYTES_MAX};
use saltern_core::message::{Body, Draft};
use saltern_core::record::{Content, MessageRow, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_core::voids::VoidRuns;

use super::fixtures::{claim, claim_key, conversation, message, read, row_key, write};
use crate::port::{Consistency, Store};

/// Every kind of row, with the texts and numbers that are easiest to get wrong.
pub async fn every_record_comes_back(store: &dyn Store) {
    let name = "round trip 🧂 %#/\u{7f}";
    let messages = messages();
    for (sort, record) in (1..).zip(messages.iter().chain([&Record::Void])) {
        write(store, row_key(name, sort), record.clone()).await;
        assert_eq!(read(store, &row_key(name, sort)).await.as_ref(), Some(record));
    }
    for (id, seq) in [("m", 1), ("M", SEQ_NO_END - 1), ("m#1\0", 1 << 32)] {
        write(store, claim_key(name, id), claim(seq)).await;
        assert_eq!(read(store, &claim_key(name, id)).await, Some(claim(seq)));
    }
    for (i, control) in controls().into_iter().enumerate() {
        let key = Key::control(&conversation(&format!("{name}{i}")));
        write(store, key.clone(), Record::Control(control.clone())).await;
        assert_eq!(read(store, &key).await, Some(Record::Control(control)));
    }
}

fn messages() -> Vec<Record> {
    let id = |text: &str| ParticipantId::new(text).expect("a legal id");
    let long = "ü".repeat(ID_BYTES_MAX / 2);
    let body = |receiver_id: Option<ParticipantId>, content: &str, timestamp: Option<&str>| Body {
        sender_id: id("alice"),
        receiver_id,
        content: content.into(),
        timestamp: timestamp.map(str::to_owned),
    };
    let bodies = [
        body(None, "", None),
        body(Some(id("bob")), "", Some("")),
        body(Some(id("\0")), "a\0b\n\u{7f}", Some("2026-11-15T04:20:00Z")),
        body(Some(id(&long)), "👩‍👩‍👧 مرحبا \u{202e}", Some(&"9".repeat(TIMESTAMP_BYTES_MAX))),
        body(None, &"x".repeat(CONTENT_BYTES_MAX), Some("null")),
        Body { sender_id: id(&long), ..body(None, "{\"a\":1}", None) },
    ];
    let rows = bodies.into_iter().zip([0, 1, 127, 128, 1_763_200_000_000, u64::from(u32::MAX)]);
    let rows = rows.map(|(body, at_ms)| {
        let draft = Draft::new(MessageId::new("m 🧂\0").expect("a legal id"), body).expect("a legal message");
        MessageRow::new(&draft, at_ms)
    });
    let moved = |row: MessageRow| {
        let at = "seg-0000000000000001-00000000000000ab#31+2048".parse().expect("a reference");
        let archived = row.moved(Content::Archived { at, text: None });
        let erased = archived.moved(Content::Erased);
        [row, archived, erased].map(Record::Message)
    };
    rows.flat_map(moved).collect()
}

fn controls() -> [ControlRecord; 3] {
    let small = ControlRecord::create(1, 0);
    let mut layout = Layout::new(8);
    for i in 1..EPOCHS_MAX {
        layout = layout.raised(layout.horizon().plus(4_096), if i % 2 == 0 { 1 } else { 256 });
    }
    assert_eq!(layout.epochs().len(), EPOCHS_MAX);
    let runs =
        (0..64).map(|i| SeqRange { from: SeqNo::clamped(1 + i * 1_000), to: SeqNo::clamped(i * 1_000 + 100 + i) });
    let large = ControlRecord {
        ver: 1 << 40,
        layout,
        resolved: SeqNo::clamped(1 << 20),
        lease: 4_096,
        extended_at_ms: 1_763_200_000_000,
        heat: HeatState { low_since_ms: Some(0), widened_at_ms: Some(1_763_200_000_001), grown_at_ms: None },
        voids: VoidRuns::from_runs(runs),
        archive: ArchiveState {
            through: SeqNo::clamped(513),
            oldest_ms: Some(1_763_200_000_000),
            moving: Some(Box::new(Move {
                range: SeqRange { from: SeqNo::clamped(513), to: SeqNo::clamped(1_024) },
                nonce: Nonce(u64::MAX),
                replaces: (0..8).map(Nonce).collect(),
                began_at_ms: 1_763_200_000_001,
            })),
            moves: 1 << 50,
        },
    };
    let last = ControlRecord {
        layout: Layout::new(8).raised(SeqNo::END, 2),
        resolved: SeqNo::END,
        heat: HeatState { low_since_ms: None, widened_at_ms: Some(1), grown_at_ms: Some(2) },
        ..small.clone()
    };
    [small, large, last]
}

/// A get answers for each key, in their order, however often a key is asked for.
pub async fn gets_answer_key_by_key(store: &dyn Store) {
    let name = "gets";
    let rows: Vec<_> = (1..=150).map(|sort| (row_key(name, sort), message(&sort.to_string(), "here"))).collect();
    for (key, record) in &rows {
        write(store, key.clone(), record.clone()).await;
    }
    write(store, claim_key(name, "m"), claim(3)).await;
    let missing = row_key(name, 1_000);
    let mut asked =
        vec![missing.clone(), rows[2].0.clone(), claim_key(name, "m"), rows[0].0.clone(), rows[2].0.clone()];
    let mut expected =
        vec![None, Some(rows[2].1.clone()), Some(claim(3)), Some(rows[0].1.clone()), Some(rows[2].1.clone())];
    asked.extend(rows.iter().rev().map(|(key, _)| key.clone()).chain([missing, claim_key(name, "n")]));
    expected.extend(rows.iter().rev().map(|(_, record)| Some(record.clone())).chain([None, None]));
    for consistency in [Consistency::Strong, Consistency::Eventual] {
        let records = store.get(&asked, consistency).await.expect("a get is answered");
        assert_eq!(records.len(), expected.len());
        if consistency == Consistency::Strong {
            assert_eq!(records, expected);
        }
    }
    assert_eq!(store.get(&[], Consistency::Strong).await.expect("nothing is easy to get"), []);
}
