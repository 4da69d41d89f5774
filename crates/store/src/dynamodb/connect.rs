//! The way to DynamoDB: region, credentials, one HTTP client.

use std::env;
use std::net::IpAddr;

use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, ConfigLoader, Region};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{Credentials, SharedHttpClient, StalledStreamProtectionConfig};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

use super::options::{CONNECT_TIMEOUT_MAX, DynamoOptions};

/// What a server on this machine is told when nobody says anything else. Such servers do not check.
const LOCAL: &str = "local";
const LOCAL_REGION: &str = "us-east-1";

/// Why there is nothing to connect to. Each says in one line what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    #[error("endpoint {0:?} is not an address; write it as in http://127.0.0.1:8000")]
    Endpoint(String),
    #[error("no AWS region is set; set it in the configuration, in AWS_REGION or in the AWS profile")]
    NoRegion,
}

/// Looks up region and credentials as AWS's own tools do. Reaches out to nothing but what that takes.
pub(super) async fn client(options: &DynamoOptions) -> Result<Client, ConnectError> {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT_MAX.min(options.call_timeout))
        .operation_timeout(options.call_timeout)
        .build();
    let loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        // The service retries, and must know about each attempt: a hidden second one would meet the row of the first.
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    let config = place(loader, options)?.load().await;
    if config.region().is_none() {
        return Err(ConnectError::NoRegion);
    }
    Ok(Client::new(&config))
}

fn http_client() -> SharedHttpClient {
    Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
}

fn place(mut loader: ConfigLoader, options: &DynamoOptions) -> Result<ConfigLoader, ConnectError> {
    let mut region = options.region.clone();
    if let Some(endpoint) = &options.endpoint {
        let local = is_loopback(endpoint)?;
        if local && is_unset(&["AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"]) {
            region = region.or_else(|| Some(LOCAL_REGION.into()));
        }
        if local && is_unset(&["AWS_ACCESS_KEY_ID", "AWS_PROFILE"]) {
            loader = loader.credentials_provider(Credentials::new(LOCAL, LOCAL, None, None, LOCAL));
        }
        loader = loader.endpoint_url(endpoint);
    }
    Ok(match region {
        Some(region) => loader.region(Region::new(region)),
        None => loader,
    })
}

fn is_unset(variables: &[&str]) -> bool {
    variables.iter().all(|name| env::var_os(name).is_none())
}

fn is_loopback(endpoint: &str) -> Result<bool, ConnectError> {
    let wrong = || ConnectError::Endpoint(endpoint.to_owned());
    let uri: http::Uri = endpoint.parse().map_err(|_| wrong())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong());
    }
    let host = uri.host().ok_or_else(wrong)?;
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    Ok(host == "localhost" || address.is_ok_and(|address| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("http://127.0.0.1:8000", Some(true))]
    #[case("http://localhost:8000/", Some(true))]
    #[case("https://[::1]:8000", Some(true))]
    #[case("https://dynamodb.eu-central-1.amazonaws.com", Some(false))]
    #[case("http://localhost.example.org", Some(false))]
    #[case("127.0.0.1:8000", None)]
    #[case("ftp://127.0.0.1", None)]
    #[case("", None)]
    fn endpoints_are_told_apart(#[case] endpoint: &str, #[case] loopback: Option<bool>) {
        assert_eq!(is_loopback(endpoint).ok(), loopback);
    }
}
