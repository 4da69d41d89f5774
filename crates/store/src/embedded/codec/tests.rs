use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::samples::{archived, claim, control, moved, records, row};

fn encode(record: &Record) -> Vec<u8> {
    encode_behind(Vec::new(), record)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Golden bytes: these rows are in people's folders.
#[rstest]
#[case(row(None, None), "0100ac02abababababababababababababababab026d3102616c000368c3a900")]
#[case(row(Some("b"), Some("")), "0100ac02abababababababababababababababab026d3102616c02620368c3a901")]
#[case(archived(), "0901ac02abababababababababababababababab026d3102616c000b7365672d312333312b32300274")]
#[case(moved(Content::Erased), "0a01ac02abababababababababababababababab026d3102616c000274")]
#[case(Record::Void, "0200")]
#[case(claim(), "03ac0201010101010101010101010101010101")]
#[case(
    control(),
    "0bc801f403020101090390031005000106010701028101ac0201082c3330302d3330312039203030303030303030303030303030306120\
    303030303030303030303030303030629601"
)]
fn rows_are_pinned(#[case] record: Record, #[case] bytes: &str) {
    assert_eq!(hex(&encode(&record)), bytes);
    assert_eq!(decode(&encode(&record)), Ok(record));
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
