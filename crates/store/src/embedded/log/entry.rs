//! A commit as bytes of the log. What stands here is persisted.
//!
//! ```text
//! "SLTB"   length of the changes: u32   number of the commit: u64   checksum of number and changes: u64   changes
//! change:  kind: u8   length of the key: u16   length of the value: u32   key   value
//! ```
//! Numbers are little-endian.

use xxhash_rust::xxh3::Xxh3Default;

use crate::embedded::physical::Space;

const MARK: &[u8; 4] = b"SLTB";
const HEAD_BYTES: usize = 4 + 4 + 8 + 8;
/// Added to the kind of a change that removes its key.
const REMOVED: u8 = 0x80;

/// A key and what it holds from now on; nothing, if it is removed. One allocation for both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::embedded) struct Change {
    pub(in crate::embedded) space: Space,
    /// The key, and behind it the value.
    bytes: Vec<u8>,
    key_bytes: usize,
    is_removal: bool,
    /// Whether nothing is under the key in any table, as far as is known: this is not written down.
    pub(in crate::embedded) is_new: bool,
}

impl Change {
    /// `bytes` are the key, as long as it is said to be, and the value.
    pub(in crate::embedded) fn joined(space: Space, key_bytes: usize, bytes: Vec<u8>) -> Self {
        Self { space, bytes, key_bytes, is_removal: false, is_new: false }
    }

    pub(in crate::embedded) fn put(space: Space, key: Vec<u8>, value: &[u8]) -> Self {
        let (key_bytes, mut bytes) = (key.len(), key);
        bytes.extend_from_slice(value);
        Self::joined(space, key_bytes, bytes)
    }

    pub(in crate::embedded) fn removal(space: Space, key: Vec<u8>) -> Self {
        Self { space, key_bytes: key.len(), bytes: key, is_removal: true, is_new: false }
    }

    pub(in crate::embedded) fn key(&self) -> &[u8] {
        &self.bytes[..self.key_bytes]
    }

    pub(in crate::embedded) fn value(&self) -> Option<&[u8]> {
        (!self.is_removal).then_some(&self.bytes[self.key_bytes..])
    }

    /// Of key and value.
    pub(in crate::embedded) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Writes a commit behind what is in `out`.
pub(super) fn encode<'a>(number: u64, changes: impl IntoIterator<Item = &'a Change>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(MARK);
    out.resize(start + HEAD_BYTES, 0);
    for change in changes {
        out.push(change.space.tag() | if change.is_removal { REMOVED } else { 0 });
        // Both are bounded far below by the limits on ids and bodies.
        let value_bytes = change.bytes.len() - change.key_bytes;
        out.extend_from_slice(&u16::try_from(change.key_bytes).unwrap_or(u16::MAX).to_le_bytes());
        out.extend_from_slice(&u32::try_from(value_bytes).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&change.bytes);
    }
    let (head, payload) = out[start..].split_at_mut(HEAD_BYTES);
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    head[4..8].copy_from_slice(&length.to_le_bytes());
    head[8..16].copy_from_slice(&number.to_le_bytes());
    head[16..].copy_from_slice(&checksum(number, payload).to_le_bytes());
}

fn checksum(number: u64, payload: &[u8]) -> u64 {
    let mut sum = Xxh3Default::new();
    sum.update(&number.to_le_bytes());
    sum.update(payload);
    sum.digest()
}

/// A whole commit found in the bytes of a log.
pub(super) struct Found<'a> {
    pub(super) number: u64,
    pub(super) end: usize,
    payload: &'a [u8],
}

impl Found<'_> {
    /// `None` if they are not what `encode` writes, whatever the checksum says.
    pub(super) fn changes(&self) -> Option<Vec<Change>> {
        let (mut from, mut changes) = (self.payload, Vec::new());
        while !from.is_empty() {
            let [kind] = take(&mut from)?;
            let key = usize::from(u16::from_le_bytes(take(&mut from)?));
            let value = usize::try_from(u32::from_le_bytes(take(&mut from)?)).ok()?;
            let (bytes, rest) = from.split_at_checked(key.checked_add(value)?)?;
            from = rest;
            let (space, is_removal) = (Space::tagged(kind & !REMOVED)?, kind & REMOVED != 0);
            changes.push(Change { space, bytes: bytes.to_vec(), key_bytes: key, is_removal, is_new: false });
        }
        Some(changes)
    }
}

/// The commit that starts at `at`, if there is a whole one.
pub(super) fn find(bytes: &[u8], at: usize) -> Option<Found<'_>> {
    let mut from = bytes.get(at..)?;
    if take(&mut from)? != *MARK {
        return None;
    }
    let length = usize::try_from(u32::from_le_bytes(take(&mut from)?)).ok()?;
    let number = u64::from_le_bytes(take(&mut from)?);
    let sum = u64::from_le_bytes(take(&mut from)?);
    let payload = from.get(..length)?;
    (checksum(number, payload) == sum).then_some(Found { number, end: at + HEAD_BYTES + length, payload })
}

/// Whether a whole commit starts anywhere behind `at`.
pub(super) fn any_behind(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at + 1..).unwrap_or_default();
    rest.windows(MARK.len()).enumerate().any(|(i, mark)| mark == MARK && find(bytes, at + 1 + i).is_some())
}

fn take<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn change() -> impl Strategy<Value = Change> {
        let space = proptest::sample::select(Space::ALL.to_vec());
        let bytes = || proptest::collection::vec(any::<u8>(), 0..40);
        (space, bytes(), proptest::option::of(bytes())).prop_map(|(space, key, value)| match value {
            Some(value) => Change::put(space, key, &value),
            None => Change::removal(space, key),
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_found(changes in proptest::collection::vec(change(), 0..8), number: u64, before in 0_usize..9) {
            let mut bytes = vec![7; before];
            encode(number, &changes, &mut bytes);
            let found = find(&bytes, before).unwrap();
            prop_assert_eq!((found.number, found.end), (number, bytes.len()));
            prop_assert_eq!(found.changes(), Some(changes));
            prop_assert_eq!(any_behind(&bytes, before), false);
            prop_assert_eq!(before > 0 && any_behind(&bytes, 0), before > 0);
        }

        #[test]
        fn a_changed_byte_or_a_cut_is_no_commit(changes in proptest::collection::vec(change(), 1..4), place: prop::sample::Index, bit in 0..8) {
            let mut bytes = Vec::new();
            encode(1, &changes, &mut bytes);
            let at = place.index(bytes.len());
            prop_assert!(find(&bytes[..at], 0).is_none());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(find(&bytes, 0).is_none());
        }
    }

    /// Golden bytes: these are in people's folders.
    #[test]
    fn commits_are_pinned() {
        let mut bytes = Vec::new();
        let put = Change::put(Space::Claims, b"k".into(), b"vv");
        let removal = Change::removal(Space::Due, b"d".into());
        encode(0x0102, &[put, removal], &mut bytes);
        let head = b"SLTB\x12\0\0\0\x02\x01\0\0\0\0\0\0";
        let changes = b"\x02\x01\0\x02\0\0\0kvv\x84\x01\0\0\0\0\0d";
        assert_eq!((&bytes[..16], &bytes[24..]), (head.as_slice(), changes.as_slice()));
        assert_eq!(bytes[16..24], [134, 3, 188, 6, 74, 99, 127, 171]);
    }
}
