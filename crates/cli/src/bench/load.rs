//! The load: connections that each send one request at a time, as fast as answers come back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, StatusCode};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::measure::Measured;
use super::processors::Processors;
use crate::http::{self, Sender};

#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) addr: SocketAddr,
    pub(super) connections: u32,
    pub(super) duration: Duration,
    /// Any other status is an error.
    pub(super) expect: StatusCode,
}

impl Load {
    /// Every connection gets its own source of requests from `requests`. The clock starts when all are connected.
    pub(super) async fn run<G>(self, requests: impl Fn(u32) -> G) -> Result<Measured>
    where
        G: FnMut() -> Request<Full<Bytes>> + Send + 'static,
    {
        let all_connected = Arc::new(Barrier::new(self.connections as usize + 1));
        let mut clients = JoinSet::new();
        for connection in 0..self.connections {
            clients.spawn(self.client(requests(connection), Arc::clone(&all_connected)));
        }
        let mut total = Measured::default();
        // One that cannot connect keeps the others waiting: its error is what there is to tell.
        let processors = tokio::select! {
            _ = all_connected.wait() => Processors::read(),
            Some(client) = clients.join_next() => {
                total.add(&client??);
                None
            }
        };
        while let Some(client) = clients.join_next().await {
            total.add(&client??);
        }
        total.worked = processors.and_then(|before| before.busy_since());
        Ok(total)
    }

    async fn client<G>(self, mut next: G, all_connected: Arc<Barrier>) -> Result<Measured>
    where
        G: FnMut() -> Request<Full<Bytes>>,
    {
        let mut stream = Some(http::connect(self.addr).await?);
        all_connected.wait().await;
        let started = Instant::now();
        let mut measured = Measured::default();
        while started.elapsed() < self.duration {
            let stream = match stream.take() {
                Some(stream) => stream,
                None => http::connect(self.addr).await?,
            };
            let session = http::over(stream, |sender| self.session(sender, &mut next, started, &mut measured));
            // A connection that breaks is an error like any other answer that is not the expected one.
            if session.await.is_err() {
                measured.errors += 1;
            }
        }
        measured.elapsed = started.elapsed();
        Ok(measured)
    }

    async fn session<G>(self, mut sender: Sender, next: &mut G, started: Instant, measured: &mut Measured) -> Result<()>
    where
        G: FnMut() -> Request<Full<Bytes>>,
    {
        let mut sent = started.elapsed();
        while sent < self.duration {
            sender.ready().await?;
            let response = sender.send_request(next()).await?;
            let as_expected = response.status() == self.expect;
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                frame?;
            }
            let answered = started.elapsed();
            if as_expected {
                measured.done += 1;
                measured.latency.record(answered.saturating_sub(sent));
            } else {
                measured.errors += 1;
            }
            sent = answered;
        }
        Ok(())
    }
}
