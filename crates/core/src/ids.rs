//! Ids as clients write them: any text of 1 to 256 bytes. Up to 23 of them are kept in place, without an allocation.

use std::fmt;

use smol_str::SmolStr;

use crate::limits::ID_BYTES_MAX;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    #[error("must not be empty")]
    Empty,
    #[error("is {0} bytes long, at most {ID_BYTES_MAX} are allowed")]
    TooLong(usize),
}

fn check(text: &str) -> Result<(), IdError> {
    match text.len() {
        0 => Err(IdError::Empty),
        n if n > ID_BYTES_MAX => Err(IdError::TooLong(n)),
        _ => Ok(()),
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(SmolStr);

        impl $name {
            pub fn new(text: &str) -> Result<Self, IdError> {
                check(text)?;
                Ok(Self(SmolStr::new(text)))
            }

            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }

            #[must_use]
            pub fn into_text(self) -> SmolStr {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// Names an append log. Chosen by the client.
    ConversationId
}
id! {
    /// Names a message within its conversation. Chosen by the client; what makes a retry the same message.
    MessageId
}
id! {
    /// Who sends or receives.
    ParticipantId
}
id! {
    /// Names a market.
    TenantId
}
id! {
    /// Who is boosted.
    PartnerId
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_is_counted_in_bytes() {
        assert_eq!(MessageId::new(""), Err(IdError::Empty));
        assert!(MessageId::new("x").is_ok());
        assert!(MessageId::new(&"x".repeat(ID_BYTES_MAX)).is_ok());
        assert_eq!(MessageId::new(&"x".repeat(ID_BYTES_MAX + 1)), Err(IdError::TooLong(257)));
        assert!(MessageId::new(&"🧂".repeat(64)).is_ok());
        assert_eq!(MessageId::new(&"🧂".repeat(65)), Err(IdError::TooLong(260)));
    }
}
