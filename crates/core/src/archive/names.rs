//! Names of objects. What stands here is persisted.
//!
//! A conversation has a folder of its own, named by an encoding that any file system and object store takes as it is:
//! letters, digits, `-`, `_` and inner dots stay, every other byte is `=XX`. A name that would be too long keeps its beginning,
//! and `==` with its digest stands for the rest; `==` occurs in no other.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::ids::{ConversationId, MessageId};
use crate::seq::SeqNo;

/// File systems take 255 bytes.
const NAME_BYTES_MAX: usize = 180;
const BEGINNING_BYTES: usize = 100;

/// Tells one attempt at writing from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(pub u64);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The folder of a conversation's objects.
#[must_use]
pub fn folder(conversation: &ConversationId) -> String {
    encoded(conversation.as_str())
}

/// The leaf of the segment that begins with this message.
#[must_use]
pub fn segment_leaf(first: SeqNo, nonce: Nonce) -> String {
    format!("seg-{:016}-{nonce}", first.get())
}

/// The leaf of an object that holds one message.
#[must_use]
pub fn json_leaf(message: &MessageId, nonce: Nonce) -> String {
    format!("{}.{nonce}.json", encoded(message.as_str()))
}

/// Of which attempt an object is, by its leaf.
#[must_use]
pub fn leaf_nonce(leaf: &str) -> Option<Nonce> {
    let stem = leaf.strip_suffix(".json").unwrap_or(leaf);
    let (_, hex) = stem.split_at_checked(stem.len().checked_sub(17)?)?;
    let hex = hex.strip_prefix(['-', '.'])?;
    u64::from_str_radix(hex, 16).ok().map(Nonce).filter(|nonce| nonce.to_string() == hex)
}

fn encoded(id: &str) -> String {
    let mut out = String::with_capacity(id.len());
    let mut beginning = 0;
    for (at, byte) in id.bytes().enumerate() {
        if out.len() <= BEGINNING_BYTES {
            beginning = out.len();
        }
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => out.push(char::from(byte)),
            b'.' if at > 0 => out.push('.'),
            _ => out.push_str(&format!("={byte:02X}")),
        }
    }
    if out.len() > NAME_BYTES_MAX {
        let digest: String = Sha256::digest(id.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        out.truncate(beginning);
        out.push_str("==");
        out.push_str(&digest);
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn named(id: &str) -> String {
        folder(&ConversationId::new(id).unwrap())
    }

    #[rstest]
    #[case("conv_abc-123", "conv_abc-123")]
    #[case("a.b", "a.b")]
    #[case(".", "=2E")]
    #[case("..", "=2E.")]
    #[case("../x", "=2E.=2Fx")]
    #[case("a/b", "a=2Fb")]
    #[case("a=2Fb", "a=3D2Fb")]
    #[case("ü #\0", "=C3=BC=20=23=00")]
    fn folders_are_pinned(#[case] id: &str, #[case] name: &str) {
        assert_eq!(named(id), name);
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        let long = "/".repeat(255);
        let (a, b) = (named(&format!("{long}a")), named(&format!("{long}b")));
        assert!(a.len() <= NAME_BYTES_MAX && a.starts_with("=2F=2F") && a != b, "{a}");
        assert_eq!((a.len(), a.split_once("==").unwrap().1.len()), (99 + 2 + 64, 64));
    }

    #[test]
    fn leaves_are_pinned() {
        let nonce = Nonce(0xAB);
        assert_eq!(segment_leaf(SeqNo::clamped(513), nonce), "seg-0000000000000513-00000000000000ab");
        assert_eq!(json_leaf(&MessageId::new("m/1").unwrap(), nonce), "m=2F1.00000000000000ab.json");
        for leaf in ["seg-0000000000000513-00000000000000ab", "m=2F1.00000000000000ab.json"] {
            assert_eq!(leaf_nonce(leaf), Some(nonce));
        }
        for leaf in ["", "seg-1-2", "x.json", "seg-0000000000000513-00000000000000AB", "é0000000000000000"] {
            assert_eq!(leaf_nonce(leaf), None, "{leaf}");
        }
    }

    proptest! {
        #[test]
        fn no_two_ids_share_a_folder(ids in prop::collection::vec("[a/.=%#ü]{1,4}|\\PC{1,60}", 1..200)) {
            let mut owners = HashMap::new();
            for id in ids {
                let name = named(&id);
                prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.=".contains(&b)), "{name}");
                prop_assert!(!name.starts_with('.') && name.len() <= NAME_BYTES_MAX);
                prop_assert_eq!(owners.entry(name).or_insert_with(|| id.clone()), &id);
            }
        }
    }
}
