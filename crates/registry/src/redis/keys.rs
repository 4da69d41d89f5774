//! The names of what is kept. Servers of different versions share it: change it and they issue from two states.

use saltern_core::ids::ConversationId;
use saltern_core::key::enc;

/// Sorted sets that the hot list is spread over.
pub(super) const HOT_SHARDS: u64 = 16;

#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

/// A sorted set of conversations by rate, of some seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HotSet {
    pub(super) shard: u64,
    pub(super) period: u64,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned() }
    }

    /// In a cluster what stands in the first braces alone decides where a key lives, so those are ours, and whatever
    /// an id holds comes after. The hash spreads; the id makes the key unique.
    pub(super) fn conversation(&self, conversation: &ConversationId) -> String {
        let id = conversation.as_str();
        format!("{}:{{{:016x}}}:{}", self.prefix, hash(id), enc(id))
    }

    pub(super) fn hot(&self, set: HotSet) -> String {
        format!("{}:hot:{}:{}", self.prefix, set.shard, set.period)
    }
}

pub(super) fn hot_shard(conversation: &ConversationId) -> u64 {
    hash(conversation.as_str()) % HOT_SHARDS
}

/// FNV-1a, with splitmix64's last steps, since its own lowest bits follow the text's.
fn hash(text: &str) -> u64 {
    let fnv = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    saltern_core::rng::SplitMix64::new(fnv).next_u64()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn id(text: &str) -> ConversationId {
        ConversationId::new(text).unwrap()
    }

    #[test]
    fn keys_are_pinned() {
        let keys = Keys::new("saltern");
        let pinned = [
            ("conv_abc123", "saltern:{c1309998dd8d14dc}:conv_abc123"),
            ("a{b}#\n%🧂", "saltern:{7694f83873a028fc}:a{b}%23%0A%25🧂"),
        ];
        for (text, key) in pinned {
            assert_eq!(keys.conversation(&id(text)), key);
        }
        assert_eq!(keys.hot(HotSet { shard: 3, period: 42 }), "saltern:hot:3:42");
    }

    #[test]
    fn the_first_braces_hold_sixteen_digits_of_ours() {
        let keys = Keys::new("saltern");
        for text in ["{}", "}{", "{", "}", "{a}{b}", "x"] {
            let key = keys.conversation(&id(text));
            let (_, rest) = key.split_once('{').unwrap();
            let (tag, _) = rest.split_once('}').unwrap();
            assert!(tag.len() == 16 && tag.bytes().all(|b| b.is_ascii_hexdigit()), "{key}");
        }
    }

    #[test]
    fn conversations_spread_over_the_shards() {
        let shards: BTreeSet<u64> = (0..200).map(|i| hot_shard(&id(&format!("conv_{i}")))).collect();
        assert_eq!(shards.len() as u64, HOT_SHARDS);
    }
}
