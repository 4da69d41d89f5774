//! Attributes, one by one.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use saltern_core::message::Digest;

use super::{Damage, Item, SeqNo};

pub(in crate::dynamodb) fn text(value: &str) -> AttributeValue {
    AttributeValue::S(value.to_owned())
}

pub(in crate::dynamodb) fn number(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(in crate::dynamodb) fn digest(value: Digest) -> AttributeValue {
    AttributeValue::B(Blob::new(value.0))
}

pub(in crate::dynamodb) fn signed(value: i64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(super) fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> AttributeValue {
    AttributeValue::L(values.into_iter().map(text).collect())
}

/// Pairs of numbers: `[[1, 1], [1033, 2]]`.
pub(super) fn pairs(values: impl IntoIterator<Item = (u64, u64)>) -> AttributeValue {
    let pair = |(a, b)| AttributeValue::L(vec![number(a), number(b)]);
    AttributeValue::L(values.into_iter().map(pair).collect())
}

/// Takes attributes out of an item, each by its name and as its type.
pub(super) struct Fields<'a>(&'a mut Item);

impl<'a> Fields<'a> {
    pub(super) fn of(item: &'a mut Item) -> Self {
        Self(item)
    }

    fn take(&mut self, name: &'static str) -> Result<AttributeValue, Damage> {
        self.0.remove(name).ok_or(Damage::Missing(name))
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<String, Damage> {
        match self.take(name)? {
            AttributeValue::S(text) => Ok(text),
            _ => Err(Damage::Wrong(name)),
        }
    }

    pub(super) fn maybe_text(&mut self, name: &'static str) -> Result<Option<String>, Damage> {
        if self.0.contains_key(name) { self.text(name).map(Some) } else { Ok(None) }
    }

    pub(super) fn number(&mut self, name: &'static str) -> Result<u64, Damage> {
        as_number(&self.take(name)?).ok_or(Damage::Wrong(name))
    }

    pub(super) fn maybe_number(&mut self, name: &'static str) -> Result<Option<u64>, Damage> {
        if self.0.contains_key(name) { self.number(name).map(Some) } else { Ok(None) }
    }

    pub(super) fn signed(&mut self, name: &'static str) -> Result<i64, Damage> {
        self.take(name)?.as_n().ok().and_then(|digits| digits.parse().ok()).ok_or(Damage::Wrong(name))
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, Damage> {
        self.take(name)?.as_bool().copied().map_err(|_| Damage::Wrong(name))
    }

    pub(super) fn maybe_flag(&mut self, name: &'static str) -> Result<bool, Damage> {
        if self.0.contains_key(name) { self.flag(name) } else { Ok(false) }
    }

    /// A number, or a text of digits where DynamoDB's numbers do not reach.
    pub(super) fn float(&mut self, name: &'static str) -> Result<f64, Damage> {
        match self.take(name)? {
            AttributeValue::N(digits) | AttributeValue::S(digits) => digits.parse().map_err(|_| Damage::Wrong(name)),
            _ => Err(Damage::Wrong(name)),
        }
    }

    pub(super) fn texts(&mut self, name: &'static str) -> Result<Vec<String>, Damage> {
        let AttributeValue::L(values) = self.take(name)? else { return Err(Damage::Wrong(name)) };
        values.into_iter().map(|value| as_text(value).ok_or(Damage::Wrong(name))).collect()
    }

    pub(super) fn map(&mut self, name: &'static str) -> Result<Item, Damage> {
        match self.take(name)? {
            AttributeValue::M(values) => Ok(values),
            _ => Err(Damage::Wrong(name)),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn seq(&mut self, name: &'static str) -> Result<SeqNo, Damage> {
        SeqNo::new(self.number(name)?).ok_or(Damage::Wrong(name))
    }

    pub(super) fn digest(&mut self, name: &'static str) -> Result<Digest, Damage> {
        match self.take(name)? {
            AttributeValue::B(bytes) => bytes.as_ref().try_into().map(Digest).map_err(|_| Damage::Wrong(name)),
            _ => Err(Damage::Wrong(name)),
        }
    }

    pub(super) fn pairs(&mut self, name: &'static str) -> Result<Vec<(u64, u64)>, Damage> {
        let AttributeValue::L(values) = self.take(name)? else { return Err(Damage::Wrong(name)) };
        values.iter().map(|pair| as_pair(pair).ok_or(Damage::Wrong(name))).collect()
    }
}

fn as_text(value: AttributeValue) -> Option<String> {
    match value {
        AttributeValue::S(text) => Some(text),
        _ => None,
    }
}

fn as_number(value: &AttributeValue) -> Option<u64> {
    value.as_n().ok()?.parse().ok()
}

fn as_pair(value: &AttributeValue) -> Option<(u64, u64)> {
    match value.as_l().ok()?.as_slice() {
        [a, b] => Some((as_number(a)?, as_number(b)?)),
        _ => None,
    }
}
