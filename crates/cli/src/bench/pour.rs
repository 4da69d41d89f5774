//! A given number of requests, each repeated until it is taken: for filling a server, not for measuring one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, StatusCode};
use tokio::task::JoinSet;

use crate::http::{self, Sender};

/// Before a request that was turned away is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// A server that turns the same request away this often is not merely busy.
const TRIES_MAX: u32 = 200;

pub(super) struct Pour<M, D> {
    pub(super) addr: SocketAddr,
    pub(super) connections: u32,
    pub(super) requests: u64,
    /// Makes the n-th request.
    pub(super) make: M,
    /// Told of each request that was taken.
    pub(super) done: D,
}

impl<M, D> Pour<M, D>
where
    M: Fn(u64) -> Request<Full<Bytes>> + Send + Sync + 'static,
    D: Fn(u64) + Send + Sync + 'static,
{
    /// Answers how often the server asked to come back later.
    pub(super) async fn run(self) -> Result<u64> {
        let pour = Arc::new(self);
        let next = Arc::new(AtomicU64::new(0));
        let mut clients = JoinSet::new();
        for _ in 0..pour.connections {
            let (pour, next) = (Arc::clone(&pour), Arc::clone(&next));
            clients.spawn(async move {
                let stream = http::connect(pour.addr).await?;
                http::over(stream, |sender| pour.client(sender, &next)).await
            });
        }
        let mut retries = 0;
        while let Some(client) = clients.join_next().await {
            retries += client??;
        }
        Ok(retries)
    }

    async fn client(&self, mut sender: Sender, next: &AtomicU64) -> Result<u64> {
        let mut retries = 0;
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= self.requests {
                return Ok(retries);
            }
            retries += u64::from(send_until_taken(&mut sender, &(self.make)(n)).await?);
            (self.done)(n);
        }
    }
}

async fn send_until_taken(sender: &mut Sender, request: &Request<Full<Bytes>>) -> Result<u32> {
    for tries in 0..TRIES_MAX {
        let (status, body) = http::send(sender, request.clone()).await?;
        match status {
            StatusCode::OK | StatusCode::CREATED if !has_error(&body) => return Ok(tries),
            StatusCode::OK | StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(RETRY_PAUSE).await,
            _ => bail!("the server answered {status}: {}", String::from_utf8_lossy(&body)),
        }
    }
    bail!("the server turned a request away {TRIES_MAX} times")
}

/// Whether the answer to a batch tells of a message that was not taken.
fn has_error(body: &[u8]) -> bool {
    const ERROR: &[u8] = br#""error":"#;
    body.windows(ERROR.len()).any(|window| window == ERROR)
}
