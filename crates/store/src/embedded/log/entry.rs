//! A commit as bytes of the log. What stands here is persisted.
//!
//! ```text
//! head:    "SLTB"   length of the changes: u32   number of the commit: u64   checksum of the changes: u64   check: u64
//! change:  kind: u8   length of the key: u16   length of the value: u32   key   value
//! ```
//! Numbers are little-endian. Both checksums are keyed with the random secret of the segment, which no client ever sees. The
//! check also covers the rest of the head, the segment's number and the commit's position in it. So bytes that a client sends
//! are never taken for a commit, and a head is accepted or refused without reading what it claims to precede.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::embedded::physical::Space;

const MARK: &[u8; 4] = b"SLTB";
/// The head up to its check.
const CHECKED_BYTES: usize = 4 + 4 + 8 + 8;
pub(super) const HEAD_BYTES: usize = CHECKED_BYTES + 8;
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

/// Makes and checks the commits of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommitKey {
    secret: [u8; 16],
    segment: u64,
}

impl CommitKey {
    pub(super) fn new(secret: [u8; 16], segment: u64) -> Self {
        Self { secret, segment }
    }

    fn halves(&self) -> (u64, u64) {
        let secret = u128::from_le_bytes(self.secret);
        // The lower half and the upper half.
        #[expect(clippy::cast_possible_truncation, reason = "the rest is the other half")]
        (secret as u64, (secret >> u64::BITS) as u64)
    }

    fn checksum(&self, changes: &[u8]) -> u64 {
        xxh3_64_with_seed(changes, self.halves().0)
    }

    fn check(&self, at: usize, head: &[u8]) -> u64 {
        let (seed, key) = self.halves();
        let mut input = [0; 3 * 8 + CHECKED_BYTES];
        input[..8].copy_from_slice(&key.to_le_bytes());
        input[8..16].copy_from_slice(&self.segment.to_le_bytes());
        input[16..24].copy_from_slice(&(at as u64).to_le_bytes());
        input[24..].copy_from_slice(head);
        xxh3_64_with_seed(&input, seed)
    }

    /// Appends a commit to `out`. `at` is its position in the segment.
    pub(super) fn encode<'a>(
        &self,
        at: usize,
        number: u64,
        changes: impl IntoIterator<Item = &'a Change>,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
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
        head[..4].copy_from_slice(MARK);
        head[4..8].copy_from_slice(&length.to_le_bytes());
        head[8..16].copy_from_slice(&number.to_le_bytes());
        head[16..CHECKED_BYTES].copy_from_slice(&self.checksum(payload).to_le_bytes());
        let check = self.check(at, &head[..CHECKED_BYTES]);
        head[CHECKED_BYTES..].copy_from_slice(&check.to_le_bytes());
    }

    /// The head at `at`, if one was written there. Looks at nothing after it.
    pub(super) fn head(&self, bytes: &[u8], at: usize) -> Option<Head> {
        let head = bytes.get(at..at.checked_add(HEAD_BYTES)?)?;
        if !head.starts_with(MARK) {
            return None;
        }
        let (checked, mut check) = head.split_at(CHECKED_BYTES);
        if self.check(at, checked) != u64::from_le_bytes(take(&mut check)?) {
            return None;
        }
        let mut from = &checked[MARK.len()..];
        let length = usize::try_from(u32::from_le_bytes(take(&mut from)?)).ok()?;
        let number = u64::from_le_bytes(take(&mut from)?);
        let end = at.checked_add(HEAD_BYTES)?.checked_add(length)?;
        Some(Head { number, end, checksum: u64::from_le_bytes(take(&mut from)?) })
    }

    /// The commit at `at`, if there is a whole one.
    pub(super) fn find<'a>(&self, bytes: &'a [u8], at: usize) -> Option<Found<'a>> {
        let Head { number, end, checksum } = self.head(bytes, at)?;
        let payload = bytes.get(at + HEAD_BYTES..end)?;
        (self.checksum(payload) == checksum).then_some(Found { number, end, payload })
    }

    /// The number of the first commit that was begun after `at`. Takes time in proportion to the bytes, whatever they are.
    pub(super) fn any_after(&self, bytes: &[u8], at: usize) -> Option<u64> {
        let rest = bytes.get(at + 1..).unwrap_or_default();
        let marks = rest.windows(MARK.len()).enumerate().filter(|(_, mark)| mark == MARK);
        marks.map(|(i, _)| at + 1 + i).find_map(|at| self.head(bytes, at)).map(|head| head.number)
    }
}

/// The head of a commit: it was begun, but may not be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) number: u64,
    /// Where the commit ends.
    pub(super) end: usize,
    checksum: u64,
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

    fn key() -> CommitKey {
        CommitKey::new(*b"0123456789abcdef", 3)
    }

    proptest! {
        #[test]
        fn what_is_written_is_found(changes in proptest::collection::vec(change(), 0..8), number: u64, before in 0_usize..9) {
            let mut bytes = vec![7; before];
            key().encode(before, number, &changes, &mut bytes);
            let found = key().find(&bytes, before).unwrap();
            prop_assert_eq!((found.number, found.end), (number, bytes.len()));
            prop_assert_eq!(found.changes(), Some(changes));
            prop_assert_eq!(key().any_after(&bytes, before), None);
            prop_assert_eq!(before > 0 && key().any_after(&bytes, 0) == Some(number), before > 0);
        }

        #[test]
        fn a_changed_byte_or_a_cut_is_no_commit(changes in proptest::collection::vec(change(), 1..4), place: prop::sample::Index, bit in 0..8) {
            let mut bytes = Vec::new();
            key().encode(0, 1, &changes, &mut bytes);
            let at = place.index(bytes.len());
            prop_assert!(key().find(&bytes[..at], 0).is_none());
            bytes[at] ^= 1_u8 << bit;
            prop_assert!(key().find(&bytes, 0).is_none());
        }

        /// A commit counts where it was written, and nowhere else.
        #[test]
        fn a_commit_of_another_place_segment_or_key_is_none(secret: [u8; 16], segment: u64, at in 0_usize..99) {
            prop_assume!((secret, segment, at) != (key().secret, 3, 40));
            let mut bytes = vec![0; 40];
            CommitKey::new(secret, segment).encode(at, 1, &[Change::put(Space::Rows, b"k".into(), b"v")], &mut bytes);
            prop_assert!(key().head(&bytes, 40).is_none());
            prop_assert_eq!(key().any_after(&bytes, 0), None);
        }
    }

    /// Golden bytes: these are in people's folders.
    #[test]
    fn commits_are_pinned() {
        let mut bytes = Vec::new();
        let put = Change::put(Space::Claims, b"k".into(), b"vv");
        let removal = Change::removal(Space::Due, b"d".into());
        key().encode(0x48, 0x0102, &[put, removal], &mut bytes);
        let head = b"SLTB\x12\0\0\0\x02\x01\0\0\0\0\0\0";
        let changes = b"\x02\x01\0\x02\0\0\0kvv\x84\x01\0\0\0\0\0d";
        assert_eq!((&bytes[..16], &bytes[32..]), (head.as_slice(), changes.as_slice()));
        assert_eq!(bytes[16..32], [37, 136, 162, 75, 245, 26, 104, 209, 190, 58, 80, 162, 87, 237, 177, 48]);
    }
}
