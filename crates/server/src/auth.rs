//! API keys and what they may do.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use http::{HeaderMap, header};
use sha2::{Digest, Sha256};

use crate::budget::{BODIES_BYTES_MAX_PER_KEY, Budget};
use crate::problem::{Kind, Problem};

/// What a key may be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    MessagesRead,
    MessagesWrite,
    BoostsRead,
    CampaignsWrite,
    /// Everything, the other scopes included.
    Admin,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope {0:?}; there are messages:read, messages:write, boosts:read, campaigns:write and admin")]
pub struct UnknownScope(pub String);

impl Scope {
    pub const ALL: [Self; 5] =
        [Self::MessagesRead, Self::MessagesWrite, Self::BoostsRead, Self::CampaignsWrite, Self::Admin];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MessagesRead => "messages:read",
            Self::MessagesWrite => "messages:write",
            Self::BoostsRead => "boosts:read",
            Self::CampaignsWrite => "campaigns:write",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or_else(|| UnknownScope(text.into()))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A key as the configuration knows it: by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// For people.
    pub name: String,
    pub sha256: [u8; 32],
    pub scopes: Vec<Scope>,
}

/// The configured keys. None at all means that the server is open.
pub(crate) struct Keys(HashMap<[u8; 32], Known>);

struct Known {
    scopes: Vec<Scope>,
    /// Its share of the memory for bodies.
    bodies: Arc<Budget>,
}

impl Keys {
    /// The same key given twice has the scopes of both.
    pub(crate) fn new(keys: &[ApiKey], bodies: &Arc<Budget>) -> Self {
        let mut known = HashMap::<_, Known>::new();
        for key in keys {
            let unseen = || Known { scopes: Vec::new(), bodies: bodies.share(BODIES_BYTES_MAX_PER_KEY) };
            known.entry(key.sha256).or_insert_with(unseen).scopes.extend(&key.scopes);
        }
        Self(known)
    }

    /// Answers with the key's share of the memory for bodies; an open server has no shares.
    pub(crate) fn check(&self, headers: &HeaderMap, needed: Scope) -> Result<Option<&Arc<Budget>>, Problem> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let unauthorized = |detail| Problem::new(Kind::Unauthorized, detail);
        let credentials = headers
            .get(header::AUTHORIZATION)
            .ok_or_else(|| unauthorized("no API key was sent; send the header `authorization: Bearer KEY`"))?;
        let key = bearer(credentials.as_bytes())
            .ok_or_else(|| unauthorized("the authorization header must be `Bearer KEY`"))?;
        let known = self.0.get(&*Sha256::digest(key)).ok_or_else(|| {
            unauthorized("the API key is unknown; check it against the [[api_keys]] of the server's configuration")
        })?;
        if known.scopes.contains(&needed) || known.scopes.contains(&Scope::Admin) {
            return Ok(Some(&known.bodies));
        }
        Err(Problem::new(
            Kind::Forbidden,
            format!("the API key lacks the scope {needed}; send another key, or add the scope to it"),
        ))
    }
}

/// The scheme's name is case-insensitive (RFC 9110).
fn bearer(credentials: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = credentials.split_at_checked("Bearer ".len())?;
    let key = key.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        assert_eq!("Admin".parse::<Scope>(), Err(UnknownScope("Admin".into())));
    }

    #[test]
    fn bearer_credentials() {
        assert_eq!(bearer(b"Bearer abc"), Some(&b"abc"[..]));
        assert_eq!(bearer(b"bearer  abc "), Some(&b"abc"[..]));
        for bad in [&b""[..], b"Bearer", b"Bearer ", b"Basic abc", b"Bearerabc"] {
            assert_eq!(bearer(bad), None);
        }
    }
}
