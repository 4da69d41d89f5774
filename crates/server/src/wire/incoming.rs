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

/// A JSON object. Derived structs alone would also take an array of their fields' values.
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
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

impl NewMessage<'_> {
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
                    return Err(A::Error::custom(format!("messages holds more than {BATCH_MESSAGES_MAX}")));
                }
                messages.push(message);
            }
            if messages.is_empty() {
                return Err(A::Error::custom("messages is empty"));
            }
            Ok(messages)
        }
    }

    deserializer.deserialize_seq(Messages)
}

fn message_id_schema() -> Schema {
    let text =
        ObjectBuilder::new().schema_type(SchemaType::new(Type::String)).min_length(Some(1)).max_length(Some(256));
    let number = ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer));
    OneOfBuilder::new()
        .item(text)
        .item(number)
        .description(Some(
            "What makes a retry the same message; `7` and `\"7\"` are the same id. 1 to 256 bytes, or an integer of at \
             most 64 bits.",
        ))
        .into()
}
