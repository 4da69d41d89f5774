//! The way to AWS, or to a server that speaks as it does: endpoint, region, credentials, one kind of TLS.

use std::env;
use std::net::IpAddr;

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

/// What a server on this machine is told when nobody says anything else. Such servers do not check.
const LOCAL: &str = "local";
const LOCAL_REGION: &str = "us-east-1";

/// Why there is nothing to connect to. Each says in one line what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    #[error("endpoint {0:?} is not an address; write it as in http://127.0.0.1:8000")]
    Endpoint(String),
    #[error("region {0:?} is not the name of a region; write it as in eu-central-1")]
    Region(String),
    #[error("no AWS region is set; set it in the configuration, in AWS_REGION or in the AWS profile")]
    NoRegion,
}

/// What the configuration says of where a service is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) endpoint: Option<&'a str>,
    pub(crate) region: Option<&'a str>,
}

/// Looks up region and credentials as AWS's own tools do, once it is loaded.
pub(crate) fn loader(place: Place<'_>) -> Result<ConfigLoader, ConnectError> {
    let http_client = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http_client);
    let mut region = place.region;
    if let Some(endpoint) = place.endpoint {
        let local = is_loopback(endpoint)?;
        if local && is_unset(&["AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"]) {
            region = region.or(Some(LOCAL_REGION));
        }
        if local && is_unset(&["AWS_ACCESS_KEY_ID", "AWS_PROFILE"]) {
            loader = loader.credentials_provider(Credentials::new(LOCAL, LOCAL, None, None, LOCAL));
        }
        loader = loader.endpoint_url(endpoint);
    }
    Ok(match region {
        Some(region) => loader.region(Region::new(region.to_owned())),
        None => loader,
    })
}

/// Reaches out to nothing but what the region takes.
pub(crate) async fn load(loader: ConfigLoader) -> Result<SdkConfig, ConnectError> {
    let config = loader.load().await;
    let region = config.region().ok_or(ConnectError::NoRegion)?.as_ref();
    // It becomes a part of a host's name.
    if region.is_empty() || !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(ConnectError::Region(region.to_owned()));
    }
    // It may come from the environment or the profile.
    config.endpoint_url().map_or(Ok(false), is_loopback)?;
    Ok(config)
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

    #[rstest]
    #[case("eu-central-1", true)]
    #[case("us-gov-west-1", true)]
    #[case("", false)]
    #[case("eu central 1", false)]
    #[case("eu-central-1.example.org/", false)]
    #[tokio::test]
    async fn regions_are_names(#[case] region: &str, #[case] fine: bool) {
        let loader = loader(Place { endpoint: None, region: Some(region) }).unwrap();
        let wrong = ConnectError::Region(region.to_owned());
        assert_eq!(load(loader).await.err(), (!fine).then_some(wrong));
    }
}
