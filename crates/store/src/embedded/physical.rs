//! Where a row lives in the engine. What stands here is persisted.

use saltern_core::campaigns::{BoostKey, DEAD_LETTERS_PARTITION, LetterNo, TENANT_SORT, tenant_partition};
use saltern_core::ids::TenantId;
use saltern_core::key::{Key, PartitionKey};

/// Ends the partition key. It holds no control character, so no partition is a prefix of another.
const SEPARATOR: u8 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Space {
    /// Messages, voids and control records.
    Rows,
    /// Claims, which are only ever read by their exact key: apart, so that histories stay dense.
    Claims,
    /// Boosts, markets and dead letters.
    Campaigns,
    /// When the archive has to look at which conversation.
    Due,
}

impl Space {
    pub(super) const ALL: [Self; 4] = [Self::Rows, Self::Claims, Self::Campaigns, Self::Due];

    /// Its sign in the log.
    pub(super) fn tag(self) -> u8 {
        match self {
            Self::Rows => 1,
            Self::Claims => 2,
            Self::Campaigns => 3,
            Self::Due => 4,
        }
    }

    pub(super) fn tagged(tag: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|space| space.tag() == tag)
    }

    /// Where a row of the messages table lives. The first `#` of a key is ours, since `enc` lets none through.
    pub(super) fn of(partition: &PartitionKey) -> Self {
        let key = partition.as_str().as_bytes();
        match key.iter().position(|byte| *byte == b'#') {
            Some(first) if key[first..].starts_with(b"#id#") => Self::Claims,
            _ => Self::Rows,
        }
    }
}

pub(super) fn physical_key(key: &Key) -> Vec<u8> {
    key_with_room(key, 0)
}

/// With room for so many bytes behind it.
pub(super) fn key_with_room(key: &Key, room: usize) -> Vec<u8> {
    let mut bytes = prefix_with_room(&key.partition, size_of::<u64>() + room);
    bytes.extend_from_slice(&key.sort.to_be_bytes());
    bytes
}

/// What the physical keys of a partition begin with, and no others.
pub(super) fn partition_prefix(partition: &PartitionKey) -> Vec<u8> {
    prefix_with_room(partition, 0)
}

fn prefix_with_room(partition: &PartitionKey, room: usize) -> Vec<u8> {
    let partition = partition.as_str().as_bytes();
    let mut bytes = Vec::with_capacity(partition.len() + 1 + room);
    bytes.extend_from_slice(partition);
    bytes.push(SEPARATOR);
    bytes
}

/// The partition half of a physical key, with its end.
pub(super) fn partition_of(physical: &[u8]) -> Option<&[u8]> {
    physical.split_last_chunk::<{ size_of::<u64>() }>().map(|(partition, _)| partition)
}

/// What the physical key of a claim begins with, its first `#` included: so none of these is a prefix of another, and they are in
/// the order of the keys.
pub(super) fn conversation_of(claim: &[u8]) -> &[u8] {
    claim.split_inclusive(|byte| *byte == b'#').next().unwrap_or_default()
}

/// The sort half of a physical key.
pub(super) fn sort_of(physical: &[u8]) -> Option<u64> {
    physical.last_chunk().map(|sort| u64::from_be_bytes(*sort))
}

/// In the order of time.
pub(super) fn due_key(oldest_ms: u64, control: &PartitionKey) -> Vec<u8> {
    [oldest_ms.to_be_bytes().as_slice(), control.as_str().as_bytes()].concat()
}

pub(super) fn due_parts(key: &[u8]) -> Option<(u64, &[u8])> {
    let (oldest_ms, control) = key.split_first_chunk()?;
    Some((u64::from_be_bytes(*oldest_ms), control))
}

pub(super) fn boost_key(key: &BoostKey) -> Vec<u8> {
    [key.partition().as_bytes(), &[SEPARATOR], key.sort().as_bytes()].concat()
}

/// What `boost_key` made this of, if it did.
pub(super) fn boost_of(physical: &[u8]) -> Option<BoostKey> {
    let (partition, sort) = str::from_utf8(physical).ok()?.split_once(char::from(SEPARATOR))?;
    Some(BoostKey::stored(partition, sort))
}

pub(super) fn market_key(tenant: &TenantId) -> Vec<u8> {
    let mut bytes = tenant_partition(tenant).into_bytes();
    bytes.push(SEPARATOR);
    bytes.extend_from_slice(TENANT_SORT.as_bytes());
    bytes
}

pub(super) fn letter_key(number: LetterNo) -> Vec<u8> {
    [DEAD_LETTERS_PARTITION.as_bytes(), &[SEPARATOR], &number.0.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use saltern_core::campaigns::Area;
    use saltern_core::ids::{ConversationId, MessageId, PartnerId};
    use saltern_core::layout::Salt;
    use saltern_core::seq::SeqNo;

    use super::*;

    fn conversation(text: &str) -> ConversationId {
        ConversationId::new(text).unwrap()
    }

    /// Golden bytes: these keys are in people's folders.
    #[test]
    fn keys_are_pinned() {
        let c = conversation("a#1");
        let seq = SeqNo::clamped(0x0102_0304);
        assert_eq!(&*physical_key(&Key::row(&c, Salt::Unsalted, seq)), b"a%231\0\0\0\0\0\x01\x02\x03\x04");
        assert_eq!(&*physical_key(&Key::row(&c, Salt::Of(7), seq)), b"a%231#7\0\0\0\0\0\x01\x02\x03\x04");
        assert_eq!(&*physical_key(&Key::control(&c)), b"a%231#ctl\0\0\0\0\0\0\0\0\0");
        let claim = Key::claim(&c, &MessageId::new("m").unwrap());
        assert_eq!(&*physical_key(&claim), b"a%231#id#m\0\0\0\0\0\0\0\0\0");
        assert_eq!(sort_of(&physical_key(&Key::row(&c, Salt::Of(7), seq))), Some(seq.get()));
    }

    #[test]
    fn keys_of_campaigns_are_pinned() {
        let tenant = TenantId::new("d#e").unwrap();
        let boost = BoostKey::new(&tenant, &Area::Wildcard, &PartnerId::new("p\0").unwrap());
        assert_eq!(&*boost_key(&boost), b"d%23e#*\0p%00");
        assert_eq!(boost_of(&boost_key(&boost)), Some(boost));
        assert_eq!(&*market_key(&tenant), b"#tenant#d%23e\0tenant");
        assert_eq!(&*letter_key(LetterNo(0x0102)), b"#dead-letters\0\0\0\0\0\0\0\x01\x02");
        assert_eq!(sort_of(&letter_key(LetterNo(7))), Some(7));
    }

    #[test]
    fn keys_of_the_index_are_pinned() {
        let key = due_key(0x0102, &Key::control(&conversation("a#1")).partition);
        assert_eq!(&*key, b"\0\0\0\0\0\0\x01\x02a%231#ctl");
        assert_eq!(due_parts(&key), Some((0x0102, b"a%231#ctl".as_slice())));
    }

    #[test]
    fn only_claims_live_with_claims() {
        for name in ["a", "id", "a#id#x", "#id#", "id#"] {
            let c = conversation(name);
            assert_eq!(Space::of(&PartitionKey::messages(&c, Salt::Unsalted)), Space::Rows);
            assert_eq!(Space::of(&PartitionKey::messages(&c, Salt::Of(3))), Space::Rows);
            assert_eq!(Space::of(&Key::control(&c).partition), Space::Rows);
            assert_eq!(Space::of(&Key::claim(&c, &MessageId::new(name).unwrap()).partition), Space::Claims);
        }
    }
}
