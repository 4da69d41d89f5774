//! The way to DynamoDB: one client, which tries once and not for long.

use aws_config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::StalledStreamProtectionConfig;
use aws_sdk_dynamodb::config::retry::RetryConfig;

use super::options::{CONNECT_TIMEOUT_MAX, DynamoOptions};
use crate::aws::{self, ConnectError, Place};

/// Looks up region and credentials as AWS's own tools do. Reaches out to nothing but what that takes.
pub(super) async fn client(options: &DynamoOptions) -> Result<Client, ConnectError> {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT_MAX.min(options.call_timeout))
        .operation_timeout(options.call_timeout)
        .build();
    let place = Place { endpoint: options.endpoint.as_deref(), region: options.region.as_deref() };
    let loader = aws::loader(place)?
        // The service retries, and must know about each attempt: a hidden second one would meet the row of the first.
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    Ok(Client::new(&aws::load(loader).await?))
}
