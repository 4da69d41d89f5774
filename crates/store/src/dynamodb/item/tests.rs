use proptest::prelude::*;
use rstest::rstest;
use saltern_core::archive::ArchiveState;
use saltern_core::control::ControlRecord;
use saltern_core::heat::HeatState;
use saltern_core::ids::ConversationId;
use saltern_core::layout::{Layout, Salt};
use saltern_core::limits::SEQ_NO_END;
use saltern_core::message::{Body, Digest};
use saltern_core::seq::SeqRange;
use saltern_core::voids::VoidRuns;

use super::*;

const EXPIRY_S: u64 = 1_763_804_800;

fn key() -> Key {
    Key::row(&ConversationId::new("a#1").unwrap(), Salt::Of(4), SeqNo::clamped(42))
}

fn row(receiver: Option<&str>, timestamp: Option<&str>) -> Record {
    let body = Body {
        sender_id: ParticipantId::new("al").unwrap(),
        receiver_id: receiver.map(|receiver| ParticipantId::new(receiver).unwrap()),
        content: "hé".into(),
        timestamp: timestamp.map(str::to_owned),
    };
    Record::Message(MessageRow::with_digest(MessageId::new("m1").unwrap(), body, Digest([0xAB; 16]), 300))
}

fn moved(content: Content) -> Record {
    let Record::Message(row) = row(None, Some("t")) else { unreachable!() };
    Record::Message(row.moved(content))
}

fn archived() -> Record {
    moved(Content::Archived { at: "seg-1#31+20".parse().unwrap(), text: None })
}

fn claim() -> Record {
    Record::Claim(Claim { seq: SeqNo::clamped(300), digest: Digest([1; 16]) })
}

fn control() -> Record {
    Record::Control(ControlRecord {
        ver: 200,
        layout: Layout::new(8).raised(SeqNo::clamped(500), 3),
        resolved: SeqNo::clamped(400),
        lease: 16,
        extended_at_ms: 5,
        heat: HeatState { low_since_ms: None, widened_at_ms: Some(6), grown_at_ms: Some(7) },
        voids: VoidRuns::from_runs([SeqRange { from: SeqNo::clamped(2), to: SeqNo::clamped(129) }]),
        archive: ArchiveState {
            through: SeqNo::clamped(300),
            oldest_ms: Some(8),
            moving: "300-301 9 a b".parse().map(Box::new).ok(),
        },
    })
}

/// An item as a person would write it down, in the order of the names.
fn written(item: &Item) -> String {
    let mut lines: Vec<_> = item.iter().map(|(name, value)| format!("{name}={}", written_value(value))).collect();
    lines.sort();
    lines.join(" ")
}

fn written_value(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => format!("{text:?}"),
        AttributeValue::N(number) => number.clone(),
        AttributeValue::B(bytes) => {
            let hex: String = bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            format!("<{hex}>")
        }
        AttributeValue::L(values) => format!("[{}]", values.iter().map(written_value).collect::<Vec<_>>().join(",")),
        other => format!("{other:?}"),
    }
}

/// Golden: these items are in people's tables.
#[rstest]
#[case(
    row(None, None),
    "content=\"hé\" digest=<abababababababababababababababab> ingested_at=300 kind=\"message\" \
    message_id=\"m1\" pk=\"a%231#4\" sender_id=\"al\" sk=42 v=0"
)]
#[case(
    row(Some("b"), Some("")),
    "content=\"hé\" digest=<abababababababababababababababab> ingested_at=300 \
    kind=\"message\" message_id=\"m1\" pk=\"a%231#4\" receiver_id=\"b\" sender_id=\"al\" sk=42 timestamp=\"\" v=0"
)]
#[case(
    archived(),
    "digest=<abababababababababababababababab> ingested_at=300 kind=\"message\" message_id=\"m1\" pk=\"a%231#4\" \
    s3_ref=\"seg-1#31+20\" sender_id=\"al\" sk=42 timestamp=\"t\" v=1"
)]
#[case(
    moved(Content::Erased),
    "digest=<abababababababababababababababab> erased=Bool(true) ingested_at=300 kind=\"message\" message_id=\"m1\" \
    pk=\"a%231#4\" sender_id=\"al\" sk=42 timestamp=\"t\" v=1"
)]
#[case(Record::Void, "kind=\"void\" pk=\"a%231#4\" sk=42 v=0")]
#[case(
    claim(),
    "digest=<01010101010101010101010101010101> expires_at=1763804800 kind=\"claim\" pk=\"a%231#4\" \
    seq_no=300 sk=42 v=300"
)]
#[case(
    control(),
    "archived_through=300 due=\"3\" epochs=[[1,1],[9,3]] extended_at=5 grown_at=7 horizon=500 kind=\"control\" \
    lease=16 moving=\"300-301 9 000000000000000a 000000000000000b\" oldest=8 pk=\"a%231#4\" resolved=400 sk=42 v=200 ver=200 voids=[[2,129]] widened_at=6"
)]
fn items_are_pinned(#[case] record: Record, #[case] expected: &str) {
    let item = encode(&key(), &record, EXPIRY_S);
    assert_eq!(written(&item), expected);
    assert_eq!(decode(item), Ok(record));
}

#[test]
fn attributes_of_later_versions_are_left_alone() {
    let mut item = encode(&key(), &claim(), EXPIRY_S);
    item.insert("later".into(), AttributeValue::Bool(true));
    assert_eq!(decode(item), Ok(claim()));
}

#[rstest]
#[case(claim(), "kind", text("clam"), Damage::Kind("clam".into()))]
#[case(claim(), "kind", number(3), Damage::Wrong("kind"))]
#[case(claim(), "v", number(301), Damage::Wrong("v"))]
#[case(claim(), "v", text("300"), Damage::Wrong("v"))]
#[case(claim(), "seq_no", number(0), Damage::Wrong("seq_no"))]
#[case(claim(), "seq_no", AttributeValue::N("1.5".into()), Damage::Wrong("seq_no"))]
#[case(claim(), "digest", AttributeValue::B(aws_sdk_dynamodb::primitives::Blob::new([1; 15])), Damage::Wrong("digest"))]
#[case(row(None, None), "content", AttributeValue::Null(true), Damage::Wrong("content"))]
#[case(row(None, None), "timestamp", number(1), Damage::Wrong("timestamp"))]
#[case(row(None, None), "message_id", text(""), Damage::Id(IdError::Empty))]
#[case(control(), "epochs", fields::pairs([(0, 1)]), Damage::Wrong("epochs"))]
#[case(control(), "epochs", AttributeValue::L(vec![number(1)]), Damage::Wrong("epochs"))]
#[case(control(), "voids", fields::pairs([(9, 2)]), Damage::Wrong("voids"))]
#[case(control(), "grown_at", text("7"), Damage::Wrong("grown_at"))]
fn damage_is_told(#[case] record: Record, #[case] name: &str, #[case] value: AttributeValue, #[case] damage: Damage) {
    let mut item = encode(&key(), &record, EXPIRY_S);
    item.insert(name.to_owned(), value);
    assert_eq!(decode(item), Err(damage));
}

#[test]
fn layouts_must_hold_together() {
    let mut item = encode(&key(), &control(), EXPIRY_S);
    item.insert("epochs".into(), fields::pairs([(1, 1), (9, 3), (9, 4)]));
    assert!(matches!(decode(item), Err(Damage::Layout(_))));
}

#[rstest]
#[case(row(None, None), &["content", "digest", "ingested_at", "kind", "message_id", "sender_id", "v"])]
#[case(Record::Void, &["kind", "v"])]
#[case(claim(), &["digest", "kind", "seq_no", "v"])]
#[case(control(), &["epochs", "extended_at", "horizon", "kind", "lease", "resolved", "v", "ver", "voids"])]
fn nothing_that_is_needed_may_be_missing(#[case] record: Record, #[case] needed: &[&str]) {
    for name in needed {
        let mut item = encode(&key(), &record, EXPIRY_S);
        item.remove(*name);
        assert!(matches!(decode(item), Err(Damage::Missing(missing)) if missing == *name), "{name}");
    }
}

fn seqs() -> impl Strategy<Value = SeqNo> {
    prop_oneof![1..300_u64, 1..=SEQ_NO_END].prop_map(SeqNo::clamped)
}

fn controls() -> impl Strategy<Value = Record> {
    let steps = prop::collection::vec((1..5_000_u64, 1..300_u16), 0..40);
    let runs = prop::collection::vec((1..100_000_u64, 0..500_u64), 0..80);
    let heat = (any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<u64>>());
    (any::<u64>(), steps, runs, heat, (seqs(), any::<u64>(), any::<u64>())).prop_map(
        |(ver, steps, runs, (low_since_ms, widened_at_ms, grown_at_ms), (resolved, lease, extended_at_ms))| {
            let raise = |layout: Layout, (step, n)| layout.raised(layout.horizon().plus(step), n);
            let run = |(from, count)| SeqRange { from: SeqNo::clamped(from), to: SeqNo::clamped(from + count) };
            Record::Control(ControlRecord {
                ver,
                layout: steps.into_iter().fold(Layout::new(8), raise),
                resolved,
                lease,
                extended_at_ms,
                heat: HeatState { low_since_ms, widened_at_ms, grown_at_ms },
                voids: VoidRuns::from_runs(runs.into_iter().map(run)),
                archive: ArchiveState {
                    through: resolved,
                    oldest_ms: low_since_ms,
                    moving: grown_at_ms.map(|began| Box::new(format!("1-512 {began} a b").parse().unwrap())),
                },
            })
        },
    )
}

fn messages() -> impl Strategy<Value = Record> {
    let receiver = prop::option::of("\\PC{1,20}");
    (any::<[u8; 16]>(), any::<u64>(), "\\PC{1,20}", receiver, any::<String>(), any::<Option<String>>()).prop_map(
        |(digest, ingested_at_ms, id, receiver, content, timestamp)| {
            let body = Body {
                sender_id: ParticipantId::new(&id).unwrap(),
                receiver_id: receiver.map(|receiver| ParticipantId::new(&receiver).unwrap()),
                content,
                timestamp,
            };
            let row = MessageRow::with_digest(MessageId::new(&id).unwrap(), body, Digest(digest), ingested_at_ms);
            let at = "seg-1#31+20".parse().unwrap();
            Record::Message(match ingested_at_ms % 3 {
                0 => row,
                1 => row.moved(Content::Archived { at, text: None }),
                _ => row.moved(Content::Erased),
            })
        },
    )
}

fn records() -> impl Strategy<Value = Record> {
    let claims = (seqs(), any::<[u8; 16]>()).prop_map(|(seq, digest)| Claim { seq, digest: Digest(digest) });
    prop_oneof![messages(), Just(Record::Void), claims.prop_map(Record::Claim), controls()]
}

proptest! {
    #[test]
    fn records_come_back(record in records()) {
        let mut item = encode(&key(), &record, EXPIRY_S);
        prop_assert_eq!(partition_key(&mut item), Ok("a%231#4".to_owned()));
        prop_assert_eq!(sort_key(&mut item), Ok(42));
        prop_assert_eq!(decode(item), Ok(record));
    }
}
