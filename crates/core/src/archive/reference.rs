use std::fmt;
use std::str::FromStr;

/// Where a message's content is: an object of its conversation's folder, and the part of it that holds the message. Its text
/// form is persisted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContentRef {
    /// The object's name within the folder of its conversation.
    pub leaf: String,
    /// The block of a segment; `None` for an object that is one message.
    pub block: Option<BlockRange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BlockRange {
    pub offset: u64,
    pub bytes: u64,
}

impl BlockRange {
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a reference into the archive: {0:?}")]
pub struct RefError(String);

impl RefError {
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for ContentRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.leaf)?;
        match self.block {
            Some(block) => write!(f, "#{}+{}", block.offset, block.bytes),
            None => Ok(()),
        }
    }
}

impl FromStr for ContentRef {
    type Err = RefError;

    fn from_str(text: &str) -> Result<Self, RefError> {
        let wrong = || RefError::new(text);
        let (leaf, block) = match text.split_once('#') {
            None => (text, None),
            Some((leaf, block)) => {
                let (offset, bytes) = block.split_once('+').ok_or_else(wrong)?;
                let number = |text: &str| text.parse().map_err(|_| wrong());
                (leaf, Some(BlockRange { offset: number(offset)?, bytes: number(bytes)? }))
            }
        };
        if leaf.is_empty() || leaf.contains('/') {
            return Err(wrong());
        }
        Ok(Self { leaf: leaf.to_owned(), block })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("seg-0000000000000001-00000000000000ab#31+2048", Some(BlockRange { offset: 31, bytes: 2_048 }))]
    #[case("m1.00000000000000ab.json", None)]
    fn references_come_back(#[case] text: &str, #[case] block: Option<BlockRange>) {
        let parsed: ContentRef = text.parse().unwrap();
        assert_eq!((parsed.block, parsed.to_string().as_str()), (block, text));
    }

    #[rstest]
    fn others_are_refused(
        #[values("", "#1+2", "a/b", "a#1", "a#+1", "a#1+", "a#-1+2", "a#1+18446744073709551616")] text: &str,
    ) {
        assert!(text.parse::<ContentRef>().is_err());
    }
}
