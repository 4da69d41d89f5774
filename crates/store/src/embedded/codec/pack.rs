//! Several rows of a stripe as the value of one entry, which stands under the key of the last of them.
//!
//! Tag, then for each row, from the lowest on: its place in the stripe, its length, its bytes. A single row stands for itself.

use saltern_core::limits::STRIPE;

use super::wire::{Reader, Writer};
use super::{Damage, PACK};

/// The last sort key of a stripe, by one of them. What has sort key 0 is a stripe of its own.
pub(in crate::embedded) fn stripe_end(sort: u64) -> u64 {
    sort.div_ceil(STRIPE).saturating_mul(STRIPE)
}

/// Rows of one stripe, in order.
pub(in crate::embedded) fn encode_pack(rows: &[(u64, &[u8])]) -> Vec<u8> {
    const FRAME: usize = 1 + 3;
    if let [(_, row)] = rows {
        return row.to_vec();
    }
    let bytes = rows.iter().map(|(_, row)| FRAME + row.len()).sum::<usize>();
    let mut out = Writer::with_capacity(1 + bytes);
    out.tag(PACK);
    for (sort, row) in rows {
        out.number(STRIPE - 1 - (stripe_end(*sort) - sort));
        out.number(row.len() as u64);
        out.bytes(row);
    }
    out.finish()
}

/// The rows of an entry, in order. `last` is the sort key that it stands under.
pub(in crate::embedded) fn decode_pack(last: u64, entry: &[u8]) -> Result<Vec<(u64, &[u8])>, Damage> {
    let Some((&PACK, rows)) = entry.split_first().filter(|_| last > 0) else { return Ok(vec![(last, entry)]) };
    let (mut from, end) = (Reader::new(rows), stripe_end(last));
    let mut rows: Vec<(u64, &[u8])> = Vec::with_capacity(usize::try_from(STRIPE).unwrap_or_default());
    while !from.is_empty() {
        let above = (STRIPE - 1).checked_sub(from.number()?).ok_or(Damage::Number)?;
        let sort = end.checked_sub(above).ok_or(Damage::Number)?;
        if rows.last().is_some_and(|(before, _)| *before >= sort) {
            return Err(Damage::Number);
        }
        rows.push((sort, from.slice()?));
    }
    if rows.last().is_none_or(|(sort, _)| *sort != last) {
        return Err(Damage::Truncated);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Golden bytes: these are in people's folders.
    #[test]
    fn packs_are_pinned() {
        let rows: [(u64, &[u8]); 3] = [(33, b"a"), (34, b""), (64, b"bcd")];
        assert_eq!(encode_pack(&rows), b"\x0c\x00\x01a\x01\x00\x1f\x03bcd");
        assert_eq!(decode_pack(64, &encode_pack(&rows)).unwrap(), rows);
        assert_eq!(encode_pack(&rows[2..]), b"bcd");
        assert_eq!(decode_pack(64, b"bcd").unwrap(), rows[2..]);
    }

    #[test]
    fn stripes_end_where_salts_change() {
        assert_eq!([0, 1, 31, 32, 33, 64, 65].map(stripe_end), [0, 32, 32, 32, 64, 64, 96]);
        assert_eq!(stripe_end(u64::MAX), u64::MAX);
    }

    #[test]
    fn what_no_rows_make_is_damage() {
        let two = encode_pack(&[(1, b"a"), (3, b"b")]);
        assert!(decode_pack(3, &two).is_ok());
        // Under another key, cut, out of order, beyond the stripe.
        for (last, entry) in [
            (4, &*two),
            (3, &two[..4]),
            (3, &two[..5]),
            (3, b"\x0c"),
            (1, b"\x0c\x02\x01b\x00\x01a"),
            (1, b"\x0c\x20\x01b"),
        ] {
            assert!(decode_pack(last, entry).is_err(), "{last} {entry:?}");
        }
    }

    proptest! {
        #[test]
        fn packs_are_read_back(
            stripe in 0_u64..(1 << 48),
            rows in proptest::collection::btree_map(1..=STRIPE, proptest::collection::vec(1_u8..12, 1..300), 1..33),
        ) {
            let rows: Vec<_> = rows.iter().map(|(at, row)| (stripe * STRIPE + at, row.as_slice())).collect();
            let (last, _) = *rows.last().unwrap();
            let entry = encode_pack(&rows);
            prop_assert_eq!(decode_pack(last, &entry), Ok(rows));
        }
    }
}
