use proptest::prelude::*;
use rstest::rstest;
use saltern_core::archive::ArchiveState;
use saltern_core::control::ControlRecord;
use saltern_core::heat::HeatState;
use saltern_core::layout::Layout;
use saltern_core::limits::SEQ_NO_END;
use saltern_core::message::Body;
use saltern_core::seq::SeqRange;
use saltern_core::voids::VoidRuns;

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
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

/// Golden bytes: these rows are in people's folders.
#[rstest]
#[case(row(None, None), "0100ac02abababababababababababababababab026d3102616c000368c3a900")]
#[case(row(Some("b"), Some("")), "0100ac02abababababababababababababababab026d3102616c02620368c3a901")]
#[case(archived(), "0901ac02abababababababababababababababab026d3102616c000b7365672d312333312b32300274")]
#[case(moved(Content::Erased), "0a01ac02abababababababababababababababab026d3102616c000274")]
#[case(Record::Void, "0200")]
#[case(Record::Claim(Claim { seq: SeqNo::clamped(300), digest: Digest([1; 16]) }), "03ac0201010101010101010101010101010101")]
#[case(
    control(),
    "0bc801f403020101090390031005000106010701028101ac0201082c3330302d3330312039203030303030303030303030303030306120\
    30303030303030303030303030303062"
)]
fn rows_are_pinned(#[case] record: Record, #[case] bytes: &str) {
    assert_eq!(hex(&encode(&record)), bytes);
    assert_eq!(decode(&encode(&record)), Ok(record));
}

/// Folders of the first builds hold these.
#[test]
fn control_records_of_the_first_shape_are_still_read() {
    let old = "04c801f40302010109039003100500010601028101";
    let Record::Control(mut expected) = control() else { unreachable!() };
    expected.heat.grown_at_ms = None;
    expected.archive = ArchiveState::unknown();
    assert_eq!(decode(&bytes(old)), Ok(Record::Control(expected)));
}

#[test]
fn control_records_of_before_the_archive_are_still_read() {
    let Record::Control(mut expected) = control() else { unreachable!() };
    expected.archive = ArchiveState::unknown();
    assert_eq!(decode(&bytes("05c801f403020101090390031005000106010701028101")), Ok(Record::Control(expected)));
}

#[rstest]
#[case(&[], Damage::Truncated)]
#[case(&[99, 0], Damage::Kind(99))]
#[case(&[VOID], Damage::Truncated)]
#[case(&[VOID, 1], Damage::Number)]
#[case(&[VOID, 0, 0], Damage::Trailing)]
#[case(&[CLAIM, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Damage::Number)]
#[case(&[VOID, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02], Damage::Number)]
fn damage_is_told(#[case] bytes: &[u8], #[case] damage: Damage) {
    assert_eq!(decode(bytes), Err(damage));
}

#[test]
fn text_must_be_utf8_and_whole() {
    let good = encode(&row(None, None));
    let content = good.len() - 2;
    let mut bad = good.clone();
    bad[content] = 0xFF;
    assert_eq!(decode(&bad), Err(Damage::Text));
    for cut in 0..good.len() {
        assert!(decode(&good[..cut]).is_err(), "cut at {cut}");
    }
}

fn seqs() -> impl Strategy<Value = SeqNo> {
    prop_oneof![1..300_u64, 1..=SEQ_NO_END].prop_map(SeqNo::clamped)
}

fn messages() -> impl Strategy<Value = Record> {
    let receiver = prop::option::of("\\PC{1,20}");
    (any::<[u8; 16]>(), any::<u64>(), "\\PC{1,20}", "\\PC{1,20}", receiver, any::<String>(), any::<Option<String>>())
        .prop_map(|(digest, ingested_at_ms, id, sender, receiver, content, timestamp)| {
            let body = Body {
                sender_id: ParticipantId::new(&sender).unwrap(),
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
        })
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

fn records() -> impl Strategy<Value = Record> {
    let claims = (seqs(), any::<[u8; 16]>()).prop_map(|(seq, digest)| Claim { seq, digest: Digest(digest) });
    prop_oneof![messages(), Just(Record::Void), claims.prop_map(Record::Claim), controls()]
}

proptest! {
    #[test]
    fn records_come_back(record in records()) {
        let bytes = encode(&record);
        prop_assert_eq!(version(&bytes), Ok(record.version()));
        prop_assert_eq!(decode(&bytes), Ok(record));
    }

    #[test]
    fn any_bytes_are_a_row_or_damage(kind in 0..12_u8, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = decode(&[&[kind], bytes.as_slice()].concat());
    }

    #[test]
    fn a_flipped_byte_never_panics(record in records(), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = encode(&record);
        let at = at.index(bytes.len());
        bytes[at] = to;
        let _ = (version(&bytes), decode(&bytes));
    }
}
