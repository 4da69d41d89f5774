use proptest::prelude::*;
use rstest::rstest;
use saltern_core::ids::ConversationId;
use saltern_core::layout::Salt;

use super::*;
use crate::samples::{archived, claim, control, moved, records, row};

const EXPIRY_S: u64 = 1_763_804_800;

fn key() -> Key {
    Key::row(&ConversationId::new("a#1").unwrap(), Salt::Of(4), SeqNo::clamped(42))
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
    lease=16 moves=150 moving=\"300-301 9 000000000000000a 000000000000000b\" oldest=8 pk=\"a%231#4\" resolved=400 sk=42 v=200 ver=200 voids=[[2,129]] widened_at=6"
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

proptest! {
    #[test]
    fn records_come_back(record in records()) {
        let mut item = encode(&key(), &record, EXPIRY_S);
        prop_assert_eq!(partition_key(&mut item), Ok("a%231#4".to_owned()));
        prop_assert_eq!(sort_key(&mut item), Ok(42));
        prop_assert_eq!(decode(item), Ok(record));
    }
}
