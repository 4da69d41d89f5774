//! One Kafka message as one line of NDJSON.

use std::fmt;

use rdkafka::message::{BorrowedMessage, Message as _};
use rdkafka::topic_partition_list::{TopicPartitionList, TopicPartitionListElem};
use saltern_core::limits::BULK_BODY_BYTES_MAX;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Partition {
    pub(super) topic: String,
    pub(super) number: i32,
}

impl Partition {
    pub(super) fn of(message: &BorrowedMessage<'_>) -> Self {
        Self { topic: message.topic().to_owned(), number: message.partition() }
    }

    pub(super) fn listed(element: &TopicPartitionListElem<'_>) -> Self {
        Self { topic: element.topic().to_owned(), number: element.partition() }
    }

    pub(super) fn list(&self) -> TopicPartitionList {
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic, self.number);
        list
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.topic, self.number)
    }
}

#[derive(Debug)]
pub(super) struct Event {
    pub(super) offset: i64,
    pub(super) line: Vec<u8>,
}

impl Event {
    pub(super) fn of(message: &BorrowedMessage<'_>) -> Self {
        Self { offset: message.offset(), line: line(message.payload()) }
    }
}

/// A line break becomes the other kind of line break: between the tokens of JSON the two are alike, and within a string
/// neither may be. A message without content becomes `null`, which is no event and is told as such.
fn line(payload: Option<&[u8]>) -> Vec<u8> {
    let payload = payload.unwrap_or_default().trim_ascii();
    if payload.is_empty() {
        return b"null".to_vec();
    }
    // Of one that is too long, enough is kept to be told as such.
    let kept = &payload[..payload.len().min(BULK_BODY_BYTES_MAX + 1)];
    kept.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_message_is_one_line_and_as_valid_as_before() {
        assert_eq!(line(None), b"null");
        assert_eq!(line(Some(b" \n ")), b"null");
        assert_eq!(line(Some(b"\xff\n")), b"\xff");
        let parsed = |line: &[u8]| serde_json::from_slice::<serde_json::Value>(line).ok();
        for (text, valid) in [("{\n \"a\": [1,\r\n2]\n}\n", true), ("{\"a\": \"b\nc\"}", false), ("{}\n{}", false)] {
            let line = line(Some(text.as_bytes()));
            assert!(!line.contains(&b'\n'));
            assert_eq!(parsed(&line), parsed(text.as_bytes()), "{text}");
            assert_eq!(parsed(&line).is_some(), valid, "{text}");
        }
        assert_eq!(line(Some(&vec![b'x'; 2 * BULK_BODY_BYTES_MAX])).len(), BULK_BODY_BYTES_MAX + 1);
    }
}
