//! AWS's own chain of credentials, for a client that asks for them at every request.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;

/// New ones are asked for this long before the old ones end.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);
/// How long those are used that say no end: whoever changes them in a file need not restart anything.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// Asks the chain seldom: it may take a request to somewhere else.
#[derive(Debug)]
pub(super) struct Chain {
    provider: SharedCredentialsProvider,
    recent: Mutex<Option<Recent>>,
}

#[derive(Debug, Clone)]
struct Recent {
    credential: Arc<AwsCredential>,
    renewed_at: SystemTime,
}

impl Chain {
    pub(super) fn new(provider: SharedCredentialsProvider) -> Self {
        Self { provider, recent: Mutex::default() }
    }

    fn recent(&self, now: SystemTime) -> Option<Arc<AwsCredential>> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.as_ref().filter(|recent| now < recent.renewed_at).map(|recent| Arc::clone(&recent.credential))
    }
}

#[async_trait]
impl CredentialProvider for Chain {
    type Credential = AwsCredential;

    /// Calls at the same time may each ask the chain, rather than wait for one another.
    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        let now = SystemTime::now();
        if let Some(credential) = self.recent(now) {
            return Ok(credential);
        }
        let found = self.provider.provide_credentials().await;
        let found = found.map_err(|source| object_store::Error::Generic { store: "S3", source: source.into() })?;
        let credential = Arc::new(AwsCredential {
            key_id: found.access_key_id().into(),
            secret_key: found.secret_access_key().into(),
            token: found.session_token().map(Into::into),
        });
        let recent = Recent { credential: Arc::clone(&credential), renewed_at: renewed_at(&found, now) };
        *self.recent.lock().unwrap_or_else(PoisonError::into_inner) = Some(recent);
        Ok(credential)
    }
}

fn renewed_at(credentials: &Credentials, now: SystemTime) -> SystemTime {
    match credentials.expiry() {
        Some(end) => end.checked_sub(RENEWED_BEFORE).unwrap_or(now),
        None => now + KEPT,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use aws_credential_types::provider::{self, ProvideCredentials, future};
    use rstest::rstest;

    use super::*;

    /// Gives numbered credentials that end after so long.
    #[derive(Debug)]
    struct Numbered {
        given: AtomicU64,
        lifetime: Option<Duration>,
    }

    impl ProvideCredentials for Numbered {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let number = self.given.fetch_add(1, Ordering::Relaxed);
            let end = self.lifetime.map(|lifetime| SystemTime::now() + lifetime);
            let credentials = Credentials::new(number.to_string(), "secret", Some("token".into()), end, "test");
            future::ProvideCredentials::ready(provider::Result::Ok(credentials))
        }
    }

    #[rstest]
    #[case::forever(None, "0")]
    #[case::long(Some(2 * RENEWED_BEFORE), "0")]
    #[case::almost_over(Some(RENEWED_BEFORE / 2), "1")]
    #[tokio::test]
    async fn credentials_are_kept_until_shortly_before_their_end(
        #[case] lifetime: Option<Duration>,
        #[case] second: &str,
    ) {
        let chain = Chain::new(SharedCredentialsProvider::new(Numbered { given: AtomicU64::new(0), lifetime }));
        let first = chain.get_credential().await.unwrap();
        assert_eq!((first.key_id.as_str(), first.token.as_deref()), ("0", Some("token")));
        assert_eq!(chain.get_credential().await.unwrap().key_id, second);
    }
}
