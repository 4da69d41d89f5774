//! What clients send. Unknown fields, repeated fields and values of another type are refused, each by name.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use saltern_core::ids::{IdError, MessageId, ParticipantId};
use saltern_core::limits::BATCH_MESSAGES_MAX;
use saltern_core::message::{Body, Draft};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};

use super::plain::Plain;

/// A JSON object. Derived structs alone would also take an array of their fields' values.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// A message to append.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage<'a> {
    /// What makes a retry the same message; `7` and `"7"` are the same id. 1 to 256 bytes.
    #[serde(borrow, deserialize_with = "message_id")]
    #[schema(schema_with = message_id_schema)]
    message_id: Cow<'a, str>,
    /// 1 to 256 bytes.
    #[serde(borrow, deserialize_with = "sender_id")]
    #[schema(min_length = 1, max_length = 256)]
    sender_id: Cow<'a, str>,
    /// 1 to 256 bytes.
    #[serde(borrow, default, deserialize_with = "receiver_id")]
    #[schema(min_length = 1, max_length = 256)]
    receiver_id: Option<Cow<'a, str>>,
    /// At most 65,536 bytes; may be empty.
    #[serde(borrow, deserialize_with = "content")]
    #[schema(max_length = 65536)]
    content: Cow<'a, str>,
    /// The client's clock, for display only; returned as it came. At most 64 bytes.
    #[serde(borrow, default, deserialize_with = "timestamp")]
    #[schema(max_length = 64)]
    timestamp: Option<Cow<'a, str>>,
}

impl<'a> NewMessage<'a> {
    /// If it is of the usual shape.
    pub(crate) fn plain(body: &'a str) -> Option<Self> {
        let [mut message_id, mut sender_id, mut receiver_id, mut content, mut timestamp] = [None; 5];
        Plain::new(body).object(|name, value| {
            let field = match name {
                "message_id" => &mut message_id,
                "sender_id" => &mut sender_id,
                "receiver_id" => &mut receiver_id,
                "content" => &mut content,
                "timestamp" => &mut timestamp,
                _ => return None,
            };
            field.replace(value.string()?).is_none().then_some(())
        })?;
        Some(Self {
            message_id: message_id?.into(),
            sender_id: sender_id?.into(),
            receiver_id: receiver_id.map(Cow::Borrowed),
            content: content?.into(),
            timestamp: timestamp.map(Cow::Borrowed),
        })
    }

    /// The message within the limits, or what breaks them, for people.
    pub(crate) fn draft(self) -> Result<Draft, String> {
        let named = |field: &'static str| move |e: IdError| format!("{field} {e}");
        let participant = |id: Cow<'_, str>, field| ParticipantId::new(&id).map_err(named(field));
        let body = Body {
            sender_id: participant(self.sender_id, "sender_id")?,
            receiver_id: self.receiver_id.map(|id| participant(id, "receiver_id")).transpose()?,
            content: self.content.into_owned(),
            timestamp: self.timestamp.map(Cow::into_owned),
        };
        let message_id = MessageId::new(&self.message_id).map_err(named("message_id"))?;
        Draft::new(message_id, body).map_err(|e| e.to_string())
    }
}

/// Messages to append, in order.
#[derive(serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch<'a> {
    #[serde(borrow, deserialize_with = "messages")]
    #[schema(min_items = 1, max_items = 500)]
    pub(crate) messages: Vec<NewMessage<'a>>,
}

const _: () = assert!(BATCH_MESSAGES_MAX == 500, "the schema of Batch says 500");

/// A string, which may not be null.
struct Text(&'static str);

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as a string", self.0)
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.into()))
    }
}

/// A string, null or absent.
struct OptionalText(&'static str);

impl<'de> Visitor<'de> for OptionalText {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as a string or null", self.0)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(Text(self.0)).map(Some)
    }
}

/// A string, or an integer that stands for its digits.
struct MessageIdText;

impl<'de> Visitor<'de> for MessageIdText {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("message_id as a string, or as an integer of at most 64 bits; send any other number as a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.into()))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Cow::Owned(number.to_string()))
    }
}

fn message_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    deserializer.deserialize_any(MessageIdText)
}

fn sender_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    deserializer.deserialize_str(Text("sender_id"))
}

fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    deserializer.deserialize_str(Text("content"))
}

fn receiver_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    deserializer.deserialize_option(OptionalText("receiver_id"))
}

fn timestamp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    deserializer.deserialize_option(OptionalText("timestamp"))
}

/// Stops at the first message too many, so that a hostile body does not become a large list first.
fn messages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NewMessage<'de>>, D::Error> {
    struct Messages;

    impl<'de> Visitor<'de> for Messages {
        type Value = Vec<NewMessage<'de>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("messages as an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut messages = Vec::new();
            while let Some(Object(message)) = seq.next_element()? {
                if messages.len() == BATCH_MESSAGES_MAX {
                    return Err(A::Error::custom(format!(
                        "messages must hold 1 to {BATCH_MESSAGES_MAX} messages, not more"
                    )));
                }
                messages.push(message);
            }
            if messages.is_empty() {
                return Err(A::Error::custom("messages must hold at least one message"));
            }
            Ok(messages)
        }
    }

    deserializer.deserialize_seq(Messages)
}

fn message_id_schema() -> Schema {
    let text =
        ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).min_length(Some(1)).max_length(Some(256));
    let number = ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::Integer))
        .minimum(Some(i64::MIN))
        .maximum(Some(u64::MAX));
    OneOfBuilder::new()
        .item(text)
        .item(number)
        .description(Some(
            "What makes a retry the same message; `7` and `\"7\"` are the same id. 1 to 256 bytes, or an integer of at \
             most 64 bits.",
        ))
        .into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const USUAL: &str = r#"{"message_id":"m","sender_id":"a","content":"hey"}"#;

    fn plain(body: &str) -> Option<Result<Draft, String>> {
        NewMessage::plain(body).map(NewMessage::draft)
    }

    fn serde(body: &str) -> Result<Draft, String> {
        let Object(message) =
            serde_json::from_str::<Object<NewMessage<'_>>>(body).map_err(|error| error.to_string())?;
        message.draft()
    }

    #[test]
    fn messages_of_the_usual_shape_are_read_in_one_pass() {
        for body in [
            USUAL,
            r#"{"timestamp":"t","content":"","receiver_id":"b","sender_id":"a","message_id":"m"}"#,
            "\n{ \"content\" : \"ü👩‍👩‍👧\" , \"message_id\":\"#\",\t\"sender_id\":\"a/b\"} \n",
            r#"{"message_id":"","sender_id":"a","content":"hey"}"#,
        ] {
            assert_eq!(plain(body), Some(serde(body)), "{body}");
        }
    }

    #[test]
    fn all_other_messages_are_left_to_serde() {
        let with = |more: &str| format!("{}{more}}}", &USUAL[..USUAL.len() - 1]);
        for body in [
            "{}".into(),
            r#"["m","a",null,"hey",null]"#.into(),
            USUAL.replace(r#""m""#, "7"),
            USUAL.replace("hey", r"he\ny"),
            USUAL.replace("hey", "he\ny"),
            USUAL.replace(r#","content":"hey""#, ""),
            with(r#","content":"hey""#),
            with(r#","receiver_id":null"#),
            with(r#","more":"x""#),
            with(","),
            format!("{USUAL}x"),
        ] {
            assert_eq!(plain(&body), None, "{body}");
        }
    }

    proptest! {
        /// Whatever is read in one pass is what serde would have read.
        #[test]
        fn one_pass_reads_the_message_that_serde_reads(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "{", "}", ",", ":", "\"", "\\", " ", "\n", "\u{c}", "1", "null", "ü", "\"m\"", "\"\"", "\"sender_id\":\"a\"",
                    "\"receiver_id\":\"b\"", "\"message_id\":", "\"content\":", "\"timestamp\":\"t\"",
                ]),
                0..12,
            ),
            framed in any::<bool>(),
        ) {
            let inner = pieces.concat();
            let body = if framed { format!("{}{inner}}}", &USUAL[..USUAL.len() - 1]) } else { inner };
            if let Some(read) = plain(&body) {
                prop_assert_eq!(read, serde(&body));
            }
        }
    }
}
