//! API keys and what they may do.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;

use http::uri::Authority;
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
            return is_of_this_machine(headers).map(|()| None);
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

/// An open server answers only who asks for this machine by name or address. A page in a browser can reach loopback under a
/// name of its own, whose address it changes after it has been loaded (DNS rebinding), but it cannot choose the host header.
fn is_of_this_machine(headers: &HeaderMap) -> Result<(), Problem> {
    // Only programs of old leave it out, and no browser.
    let Some(host) = headers.get(header::HOST).and_then(|host| host.to_str().ok()) else { return Ok(()) };
    let name = host.parse::<Authority>().map_or_else(|_| String::new(), |host| host.host().to_ascii_lowercase());
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_loopback = address.is_ok_and(|address| address.to_canonical().is_loopback());
    if is_loopback || name.is_empty() || name == "localhost" || name.ends_with(".localhost") {
        return Ok(());
    }
    let detail = format!(
        "a server without API keys answers requests to localhost or a loopback address, not to {name:?}; use \
         http://127.0.0.1, or configure [[api_keys]]"
    );
    Err(Problem::new(Kind::Forbidden, detail))
}

/// The scheme's name is case-insensitive (RFC 9110).
fn bearer(credentials: &[u8]) -> Option<&[u8]> {
    let (scheme, key) = credentials.split_at_checked("Bearer ".len())?;
    let key = key.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"Bearer ") && !key.is_empty()).then_some(key)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for scope in Scope::ALL {
            assert_eq!(scope.as_str().parse(), Ok(scope));
        }
        assert_eq!("Admin".parse::<Scope>(), Err(UnknownScope("Admin".into())));
    }

    #[rstest]
    #[case("127.0.0.1:8080", true)]
    #[case("127.9.9.9", true)]
    #[case("[::1]:8080", true)]
    #[case("[::ffff:127.0.0.1]", true)]
    #[case("LocalHost:1", true)]
    #[case("tea.localhost", true)]
    #[case("", true)]
    #[case("evil.example:8080", false)]
    #[case("localhost.evil.example", false)]
    #[case("127.0.0.1.evil.example", false)]
    #[case("192.168.0.1", false)]
    #[case("notlocalhost", false)]
    fn an_open_server_is_not_reached_under_another_name(#[case] host: &str, #[case] answered: bool) {
        let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
        let keys = Keys::new(&[], &Budget::new(0));
        assert_eq!(keys.check(&headers, Scope::MessagesRead).is_ok(), answered);
        assert!(keys.check(&HeaderMap::new(), Scope::MessagesRead).is_ok());
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
