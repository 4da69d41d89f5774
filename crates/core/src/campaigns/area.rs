use std::fmt;

use smol_str::SmolStr;

use crate::ids::IdError;
use crate::limits::ID_BYTES_MAX;

const WILDCARD: &str = "*";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AreaError {
    #[error(transparent)]
    Id(#[from] IdError),
    #[error("must not be `*`, which stands for all districts")]
    Wildcard,
}

/// Names a part of a market. Any text of 1 to 256 bytes but `*`, so that none meets the wildcard's rows (I9).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DistrictId(SmolStr);

impl DistrictId {
    pub fn new(text: &str) -> Result<Self, AreaError> {
        match text.len() {
            0 => Err(IdError::Empty.into()),
            n if n > ID_BYTES_MAX => Err(IdError::TooLong(n).into()),
            _ if text == WILDCARD => Err(AreaError::Wildcard),
            _ => Ok(Self(SmolStr::new(text))),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Where a boost counts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// Everywhere in the market.
    Wildcard,
    District(DistrictId),
}

impl Area {
    /// As events write it: `*`, or a district.
    pub fn new(text: &str) -> Result<Self, IdError> {
        match DistrictId::new(text) {
            Ok(district) => Ok(Self::District(district)),
            Err(AreaError::Wildcard) => Ok(Self::Wildcard),
            Err(AreaError::Id(error)) => Err(error),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Wildcard => WILDCARD,
            Self::District(district) => district.as_str(),
        }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wildcard_is_an_area_and_no_district() {
        assert_eq!(Area::new("*"), Ok(Area::Wildcard));
        assert_eq!(DistrictId::new("*"), Err(AreaError::Wildcard));
        for name in ["**", "* ", "BER-01", "a#b", "Köln Süd"] {
            assert_eq!(Area::new(name).unwrap().as_str(), name);
            assert_eq!(DistrictId::new(name).unwrap().as_str(), name);
        }
        assert_eq!(Area::new(""), Err(IdError::Empty));
        assert_eq!(Area::new(&"x".repeat(257)), Err(IdError::TooLong(257)));
    }
}
