//! Physical keys. What stands here is persisted: change it and existing tables become unreadable.

use std::fmt;

use crate::ids::{ConversationId, MessageId};
use crate::layout::Salt;
use crate::seq::SeqNo;
use crate::words::{self, Word};

/// Escapes `%`, `#` and control characters, byte by byte, as `%XX`.
///
/// Ordinary ids keep their looks, and since `#` never survives, nothing a client writes can reach into
/// the part of a key behind its first `#`. Injective, because `%` itself is escaped.
#[must_use]
pub fn enc(id: &str) -> String {
    let mut out = String::with_capacity(id.len() + 8);
    enc_onto(&mut out, id);
    out
}

/// Whether an id is its own key. Nearly every one is, and then there is nothing to look at character by character.
pub(crate) fn is_plain(id: &str) -> bool {
    let escaped = |word: Word| word.below(b' ') | word.is(b'%') | word.is(b'#') | word.is(0x7f) | word.beyond_ascii();
    words::is_free(id.as_bytes(), escaped)
}

pub(crate) fn enc_onto(out: &mut String, id: &str) {
    if is_plain(id) {
        return out.push_str(id);
    }
    for c in id.chars() {
        if c == '%' || c == '#' || c.is_control() {
            let mut utf8 = [0; 4];
            for byte in c.encode_utf8(&mut utf8).bytes() {
                out.push('%');
                out.push(HEX[usize::from(byte >> 4)]);
                out.push(HEX[usize::from(byte & 15)]);
            }
        } else {
            out.push(c);
        }
    }
}

/// What `enc` made a key of; `None` if it has made none like this.
fn dec(key: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];

/// The hash half of a key. Holds no control character, so adapters may use one as a separator.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionKey(String);

impl PartitionKey {
    /// Where messages and voids with this salt live.
    #[must_use]
    pub fn messages(conversation: &ConversationId, salt: Salt) -> Self {
        let mut key = enc(conversation.as_str());
        if let Salt::Of(salt) = salt {
            key.push('#');
            key.push_str(&salt.to_string());
        }
        Self(key)
    }

    /// As a store has kept it, whatever that is.
    #[must_use]
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The full key of a row in the messages table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub partition: PartitionKey,
    pub sort: u64,
}

impl Key {
    #[must_use]
    pub fn row(conversation: &ConversationId, salt: Salt, seq: SeqNo) -> Self {
        Self { partition: PartitionKey::messages(conversation, salt), sort: seq.get() }
    }

    #[must_use]
    pub fn control(conversation: &ConversationId) -> Self {
        let mut partition = enc(conversation.as_str());
        partition.push_str("#ctl");
        Self::single(partition)
    }

    #[must_use]
    pub fn claim(conversation: &ConversationId, message: &MessageId) -> Self {
        let (conversation, message) = (conversation.as_str(), message.as_str());
        let mut partition = String::with_capacity(conversation.len() + message.len() + 16);
        enc_onto(&mut partition, conversation);
        partition.push_str("#id#");
        enc_onto(&mut partition, message);
        Self::single(partition)
    }

    fn single(partition: String) -> Self {
        Self { partition: PartitionKey(partition), sort: 0 }
    }

    /// What the key is of; `None` if it is no key of ours.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        let text = self.partition.as_str();
        let (conversation, kind) = text.split_once('#').map_or((text, None), |(id, kind)| (id, Some(kind)));
        let conversation = ConversationId::new(&dec(conversation)?).ok()?;
        let row = |salt| Some(Place::Row { conversation: conversation.clone(), salt, seq: SeqNo::new(self.sort)? });
        let place = match (kind, kind.and_then(|kind| kind.strip_prefix("id#"))) {
            (None, _) => row(Salt::Unsalted)?,
            (Some("ctl"), _) => Place::Control(conversation),
            (_, Some(message)) => Place::Claim { conversation, message: MessageId::new(&dec(message)?).ok()? },
            (Some(salt), None) => row(Salt::Of(salt.parse().ok()?))?,
        };
        // Nothing but the one way in which it is written.
        (place.key() == *self).then_some(place)
    }
}

/// What a row of the messages table is for, by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A message or a void.
    Row {
        conversation: ConversationId,
        salt: Salt,
        seq: SeqNo,
    },
    Control(ConversationId),
    Claim {
        conversation: ConversationId,
        message: MessageId,
    },
}

impl Place {
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Self::Row { conversation, salt, seq } => Key::row(conversation, *salt, *seq),
            Self::Control(conversation) => Key::control(conversation),
            Self::Claim { conversation, message } => Key::claim(conversation, message),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.partition.0, self.sort)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::limits::{ID_BYTES_MAX, PARTITION_KEY_BYTES_MAX};

    fn conversation(text: &str) -> ConversationId {
        ConversationId::new(text).unwrap()
    }

    /// Golden bytes: these strings are in people's tables.
    #[rstest]
    #[case("conv_abc123", "conv_abc123")]
    #[case("a#1", "a%231")]
    #[case("a%231", "a%25231")]
    #[case("a/b ..", "a/b ..")]
    #[case("salz 🧂 ü", "salz 🧂 ü")]
    #[case("\0\n\u{7f}\u{85}", "%00%0A%7F%C2%85")]
    fn enc_is_pinned(#[case] id: &str, #[case] key: &str) {
        assert_eq!(enc(id), key);
    }

    #[test]
    fn keys_are_pinned() {
        let c = conversation("a#1");
        let m = MessageId::new("m#%").unwrap();
        let seq = SeqNo::new(42).unwrap();
        assert_eq!(format!("{:?}", Key::row(&c, Salt::Unsalted, seq)), "a%231/42");
        assert_eq!(format!("{:?}", Key::row(&c, Salt::Of(4), seq)), "a%231#4/42");
        assert_eq!(format!("{:?}", Key::control(&c)), "a%231#ctl/0");
        assert_eq!(format!("{:?}", Key::claim(&c, &m)), "a%231#id#m%23%25/0");
    }

    #[test]
    fn the_longest_key_fits_dynamodb() {
        let id = "#".repeat(ID_BYTES_MAX);
        let key = Key::claim(&conversation(&id), &MessageId::new(&id).unwrap());
        assert!(key.partition.as_str().len() <= PARTITION_KEY_BYTES_MAX);
    }

    #[test]
    fn look_alikes_are_different_conversations_even_when_salted() {
        let mut owner: HashMap<PartitionKey, &str> = HashMap::new();
        for name in ["a", "a#0", "a#1", "a%231", "a#ctl", "a#id#x", "a#id", "a%", "%23", "#"] {
            let c = conversation(name);
            let salts = (0..4).map(Salt::Of).chain([Salt::Unsalted]);
            let mut keys: Vec<_> = salts.map(|s| PartitionKey::messages(&c, s)).collect();
            keys.push(Key::control(&c).partition);
            keys.push(Key::claim(&c, &MessageId::new("x").unwrap()).partition);
            for key in keys {
                assert_eq!(owner.insert(key.clone(), name), None, "{key:?}");
            }
        }
    }

    #[test]
    fn only_keys_of_ours_have_a_place() {
        let c = conversation("a#1");
        let keys = [
            Key::row(&c, Salt::Unsalted, SeqNo::FIRST),
            Key::row(&c, Salt::Of(63), SeqNo::clamped(7)),
            Key::control(&c),
            Key::claim(&c, &MessageId::new("m#%").unwrap()),
        ];
        for key in keys {
            assert_eq!(key.place().unwrap().key(), key);
        }
        let strange = [
            ("a", 0),
            ("a#ctl", 1),
            ("a#01", 1),
            ("a#x", 1),
            ("a#id#", 0),
            ("a%2", 1),
            ("a%61", 1),
            ("", 1),
            ("#ctl", 0),
        ];
        for (partition, sort) in strange {
            assert_eq!(
                Key { partition: PartitionKey::stored(partition.into()), sort }.place(),
                None,
                "{partition}/{sort}"
            );
        }
    }

    proptest! {
        #[test]
        fn enc_can_be_undone(id in "\\PC{0,40}|[#%a0-9\\x00-\\x20\u{80}-\u{a0}]{0,40}") {
            prop_assert_eq!(dec(&enc(&id)), Some(id));
        }

        #[test]
        fn enc_leaves_no_hash_and_no_control_character(id in any::<String>()) {
            prop_assert!(enc(&id).chars().all(|c| c != '#' && !c.is_control()));
        }

        /// I9: two (conversation, message) pairs share a claim key only if they are the same pair.
        #[test]
        fn claim_keys_are_injective(
            a in "[#%id1ctl]{1,6}", b in "[#%id1ctl]{1,6}", c in "[#%id1ctl]{1,6}", d in "[#%id1ctl]{1,6}",
        ) {
            let key = |x: &str, y: &str| Key::claim(&conversation(x), &MessageId::new(y).unwrap());
            prop_assert_eq!(key(&a, &b) == key(&c, &d), (a, b) == (c, d));
        }
    }
}
