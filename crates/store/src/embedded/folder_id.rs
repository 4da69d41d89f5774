use std::fmt;
use std::io;

/// Tells one folder from all others. Random, drawn once when the folder is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FolderId([u8; 16]);

impl FolderId {
    pub(super) fn random() -> io::Result<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id)?;
        Ok(Self(id))
    }

    pub(super) fn bytes(self) -> [u8; 16] {
        self.0
    }

    pub(super) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// As `Display` writes it, and no other way.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = Self(u128::from_str_radix(text, 16).ok()?.to_be_bytes());
        (id.to_string() == text).then_some(id)
    }
}

impl fmt::Display for FolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}
