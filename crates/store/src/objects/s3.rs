//! Objects in a bucket of S3, or of anything that speaks its API.
//!
//! General purpose buckets only: directory buckets do not list in the order of names (O5).

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ClientOptions, Error, ObjectStoreExt as _, RetryConfig};

use super::adapter::{NO_SUCH_BUCKET, ObjectRoot, is_missing};
use super::credentials::Chain;
use crate::aws::{self, ConnectError, Place};
use crate::port::Cause;

/// Connecting is over much sooner than a call, or will not be: the rest of the time is better spent on another try.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(2);
/// A call that fails is tried again so often, with a pause that doubles in between, if no more time than this went by.
const RETRIES_MAX: usize = 4;
const RETRY_TIME_MAX: Duration = Duration::from_secs(5);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Asked for to see what is answered. Nobody puts it.
const PROBE: &str = "saltern.probe";

/// Which bucket, where, and how long to wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Options {
    pub bucket: String,
    /// Before the name of every object, as in `saltern/archive`.
    pub prefix: Option<String>,
    /// Address of a compatible server, as in `http://127.0.0.1:9000`. Without it, and without one in the environment or
    /// the profile, the address follows from the region.
    pub endpoint: Option<String>,
    /// Without it the usual chain decides: environment, profile, the machine's own.
    pub region: Option<String>,
    /// Time of one call, with all its tries.
    pub timeout: Duration,
}

/// Why a bucket cannot be used. Each says in one line what to do.
#[derive(Debug, Clone, thiserror::Error)]
pub enum S3Error {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{0:?} is not the name of a bucket; write it without s3:// and without a prefix")]
    Bucket(String),
    #[error("prefix {0:?} is not one of A-Z a-z 0-9 _ . = - with single slashes in between; choose another one")]
    Prefix(String),
    #[error("no HTTP client for S3 can be made; check that this machine has root certificates")]
    Client(#[source] Cause),
    #[error("the bucket of {0} does not exist; create it, or correct its name or the region")]
    NoBucket(String),
    #[error(
        "access to {root} is denied; its credentials need s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject"
    )]
    Denied { root: String, source: Cause },
    #[error("{root} cannot be reached; check region, endpoint and credentials")]
    Failed { root: String, source: Cause },
}

impl ObjectRoot {
    /// Looks up region and credentials as AWS's own tools do. Does not ask whether the bucket is there; `check` does.
    pub async fn s3(options: S3Options) -> Result<Self, S3Error> {
        let prefix = options.prefix.as_deref().unwrap_or_default().trim_matches('/');
        if !is_bucket(&options.bucket) {
            return Err(S3Error::Bucket(options.bucket));
        }
        if !prefix.is_empty() && !prefix.split('/').all(is_segment) {
            return Err(S3Error::Prefix(prefix.to_owned()));
        }
        let root = format!("s3://{}/{prefix}", options.bucket).trim_end_matches('/').to_owned();
        let store = PrefixStore::new(connect(&options).await?, Path::from(prefix));
        Ok(Self { store: Arc::new(store), root, folder: None, call_timeout: Some(options.timeout) })
    }

    /// Whether the bucket is there, and may be read. Writes nothing.
    pub async fn check(&self) -> Result<(), S3Error> {
        let root = || self.root.clone();
        let probed = self.in_time(async { Ok(self.store.get(&Path::from(PROBE)).await) }).await;
        match probed {
            // Whoever may not list is not even told that an object is not there.
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if is_missing(&error) => Ok(()),
            Ok(Err(error)) if error.to_string().contains(NO_SUCH_BUCKET) => Err(S3Error::NoBucket(root())),
            Ok(Err(error @ (Error::PermissionDenied { .. } | Error::Unauthenticated { .. }))) => {
                Err(S3Error::Denied { root: root(), source: Arc::new(error) })
            }
            Ok(Err(error)) => Err(S3Error::Failed { root: root(), source: Arc::new(error) }),
            Err(error) => Err(S3Error::Failed { root: root(), source: Arc::new(error) }),
        }
    }
}

async fn connect(options: &S3Options) -> Result<AmazonS3, S3Error> {
    let place = Place { endpoint: options.endpoint.as_deref(), region: options.region.as_deref() };
    let config = aws::load(aws::loader(place)?).await?;
    // One for the whole process, if nobody has chosen: whoever came first is fine too.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&options.bucket)
        .with_client_options(client_options(options.timeout))
        .with_retry(retries())
        // One object needs no list of objects, which not every server knows how to delete.
        .with_disable_bulk_delete(true);
    if let Some(region) = config.region() {
        builder = builder.with_region(region.as_ref());
    }
    if let Some(credentials) = config.credentials_provider() {
        builder = builder.with_credentials(Arc::new(Chain::new(credentials)));
    }
    builder = match config.endpoint_url() {
        // The bucket goes into the path: a server that is known by its address has no names for buckets.
        Some(endpoint) => builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://")),
        None => builder.with_virtual_hosted_style_request(!options.bucket.contains('.')),
    };
    builder.build().map_err(|error| S3Error::Client(Arc::new(error)))
}

fn client_options(timeout: Duration) -> ClientOptions {
    ClientOptions::new().with_timeout(timeout).with_connect_timeout(CONNECT_TIMEOUT_MAX.min(timeout))
}

fn retries() -> RetryConfig {
    let backoff = BackoffConfig { init_backoff: FIRST_PAUSE, max_backoff: PAUSE_MAX, base: 2.0 };
    RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME_MAX }
}

/// It becomes a part of a host's name.
fn is_bucket(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_');
    !name.is_empty() && name.bytes().all(legal)
}

fn is_segment(segment: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'=' | b'-');
    !matches!(segment, "" | "." | "..") && segment.bytes().all(legal)
}
