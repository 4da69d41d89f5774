//! A message's two ids as one number.

use saltern_core::ids::{ConversationId, MessageId};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Stands for a message where being wrong costs little: messages that share one wait for each other, or look for a claim that
/// is not there. Always the same for the same ids, so that a simulation can be played again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint(pub(super) u64);

impl Fingerprint {
    pub(super) fn of(conversation: &ConversationId, message: &MessageId) -> Self {
        let seed = xxh3_64(conversation.as_str().as_bytes());
        Self(xxh3_64_with_seed(message.as_str().as_bytes(), seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ids_count() {
        let fingerprint = |conversation, message| {
            Fingerprint::of(&ConversationId::new(conversation).unwrap(), &MessageId::new(message).unwrap())
        };
        assert_eq!(fingerprint("a", "b"), fingerprint("a", "b"));
        let others = [fingerprint("b", "a"), fingerprint("ab", "b"), fingerprint("a", "bb"), fingerprint("a", "c")];
        assert!(others.iter().all(|other| *other != fingerprint("a", "b")));
    }
}
