//! A message as its client wrote it, checked against the limits.

use sha2::{Digest as _, Sha256};

use crate::cost::{message_bytes, write_units};
use crate::ids::{MessageId, ParticipantId};
use crate::limits::{CONTENT_BYTES_MAX, TIMESTAMP_BYTES_MAX};

/// The digest of a message's body: what tells a retry from another message under the same id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 16]);

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DraftError {
    #[error("content is {0} bytes long, at most {CONTENT_BYTES_MAX} are allowed")]
    ContentTooLong(usize),
    #[error("timestamp is {0} bytes long, at most {TIMESTAMP_BYTES_MAX} are allowed")]
    TimestampTooLong(usize),
}

/// What a client says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    pub sender_id: ParticipantId,
    pub receiver_id: Option<ParticipantId>,
    pub content: String,
    /// The client's clock, for display only; returned as it came.
    pub timestamp: Option<String>,
}

impl Body {
    /// The first half of SHA-256 over the fields, each with its length, absent ones told from empty ones.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let mut sha = Sha256::new();
        let receiver = self.receiver_id.as_ref().map(ParticipantId::as_str);
        let fields = [Some(self.sender_id.as_str()), receiver, Some(self.content.as_str()), self.timestamp.as_deref()];
        for field in fields {
            match field {
                None => sha.update([0]),
                Some(text) => {
                    sha.update([1]);
                    sha.update((text.len() as u64).to_be_bytes());
                    sha.update(text);
                }
            }
        }
        let mut half = [0; 16];
        half.copy_from_slice(&sha.finalize()[..16]);
        Digest(half)
    }
}

/// A message on its way in: within the limits, with its digest, not yet placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    pub message_id: MessageId,
    pub body: Body,
    pub digest: Digest,
}

impl Draft {
    pub fn new(message_id: MessageId, body: Body) -> Result<Self, DraftError> {
        if body.content.len() > CONTENT_BYTES_MAX {
            return Err(DraftError::ContentTooLong(body.content.len()));
        }
        if let Some(timestamp) = body.timestamp.as_ref().filter(|t| t.len() > TIMESTAMP_BYTES_MAX) {
            return Err(DraftError::TimestampTooLong(timestamp.len()));
        }
        let digest = body.digest();
        Ok(Self { message_id, body, digest })
    }

    /// What the row of this message costs to write, in DynamoDB's units.
    #[must_use]
    pub fn wcu(&self) -> u64 {
        write_units(message_bytes(&self.message_id, &self.body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(content: &str) -> Body {
        let sender_id = ParticipantId::new("alice").unwrap();
        Body { sender_id, receiver_id: None, content: content.into(), timestamp: None }
    }

    fn draft(body: Body) -> Result<Draft, DraftError> {
        Draft::new(MessageId::new("m").unwrap(), body)
    }

    #[test]
    fn the_digest_is_pinned() {
        assert_eq!(format!("{:?}", body("hey").digest()), "39745ddb400472b328edec82b235efe4");
    }

    #[test]
    fn every_field_counts() {
        let bob = ParticipantId::new("bob").ok();
        let variants = [
            body("hey"),
            body("hey "),
            body(""),
            Body { sender_id: ParticipantId::new("alic").unwrap(), ..body("ehey") },
            Body { receiver_id: bob.clone(), ..body("hey") },
            Body { timestamp: Some(String::new()), ..body("hey") },
            Body { timestamp: Some("bob".into()), ..body("hey") },
        ];
        for (i, a) in variants.iter().enumerate() {
            for (j, b) in variants.iter().enumerate() {
                assert_eq!(a.digest() == b.digest(), i == j, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn limits_hold_at_the_byte() {
        assert!(draft(body(&"x".repeat(CONTENT_BYTES_MAX))).is_ok());
        assert_eq!(draft(body(&"x".repeat(CONTENT_BYTES_MAX + 1))), Err(DraftError::ContentTooLong(65_537)));
        let stamped = |n| draft(Body { timestamp: Some("x".repeat(n)), ..body("") });
        assert!(stamped(TIMESTAMP_BYTES_MAX).is_ok());
        assert_eq!(stamped(TIMESTAMP_BYTES_MAX + 1), Err(DraftError::TimestampTooLong(65)));
    }

    #[test]
    fn large_messages_cost_more() {
        assert_eq!(draft(body("hey")).unwrap().wcu(), 1);
        assert_eq!(draft(body(&"x".repeat(3_000))).unwrap().wcu(), 4);
        assert_eq!(draft(body(&"x".repeat(2_900))).unwrap().wcu(), 3);
    }
}
