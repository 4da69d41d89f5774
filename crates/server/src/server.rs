//! The listener: accepts, serves, and ends in order.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use tokio::net::{TcpListener, TcpSocket};
use tracing::warn;

use crate::app::{Readiness, Services};
use crate::auth::ApiKey;
use crate::connection::Timeouts;
use crate::connections::Connections;
use crate::interface::Interface;
use crate::routes::interface;

/// Connections that may wait to be accepted, as far as the system allows it. Of those that come at once beyond it, as clients do
/// when a server is back, each would try again only after a second.
const BACKLOG: u32 = 4_096;

/// After which the server looks again for a connection that can be closed, or for a file descriptor that is free.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub listen: SocketAddr,
    /// None means that the server is open, which is allowed on loopback only.
    pub api_keys: Vec<ApiKey>,
    /// Requests under way at once; beyond it they are turned away with 503.
    pub requests_max: usize,
    /// Connections at once; beyond it the longest idle one is closed for each that comes.
    pub connections_max: usize,
    /// How long the body of a request may take to arrive, or a line of it where lines are taken one by one; and how long
    /// a client may go on sending after it was refused.
    pub body_timeout: Duration,
    /// How long a client may take to accept the next part of its answer.
    pub write_timeout: Duration,
    /// How long a connection may take to bring a request's head, or be idle.
    pub idle_timeout: Duration,
    /// How long requests under way may take to end once the server is asked to.
    pub shutdown_grace: Duration,
}

impl ServerConfig {
    /// An open server with the usual bounds.
    #[must_use]
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            api_keys: Vec::new(),
            requests_max: 4_096,
            connections_max: 16_384,
            body_timeout: Duration::from_secs(15),
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(75),
            shutdown_grace: Duration::from_secs(20),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BindError {
    #[error(
        "{0} is reachable from other machines, which requires API keys; configure [[api_keys]] or listen on 127.0.0.1"
    )]
    Open(SocketAddr),
    #[error("cannot listen on {address}; {}", advice(source))]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

/// What to do about an address that cannot be listened on.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "stop the process that uses the port, or choose another with --listen",
        io::ErrorKind::PermissionDenied => {
            "choose a port from 1024 on with --listen, or run with the privilege to use this one"
        }
        io::ErrorKind::AddrNotAvailable => "choose an address of this machine with --listen",
        _ => "choose another address with --listen",
    }
}

/// A server that is listening, but does not accept yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    interface: Arc<Interface>,
    config: ServerConfig,
}

impl Server {
    pub async fn bind(
        config: ServerConfig,
        services: Services,
        ready: Readiness,
        metrics: Registry,
    ) -> Result<Self, BindError> {
        let address = config.listen;
        if config.api_keys.is_empty() && !address.ip().to_canonical().is_loopback() {
            return Err(BindError::Open(address));
        }
        let failed = |source| BindError::Listen { address, source };
        let listener = listen(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let interface = Arc::new(interface(&config, services, ready, metrics));
        Ok(Self { listener, address, interface, config })
    }

    /// Where it listens; the port is known even if the configuration left it open.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown`; then accepts nothing more, lets requests under way end, and returns.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let Self { listener, interface, config, .. } = self;
        let timeouts = Timeouts { idle: config.idle_timeout, write: config.write_timeout, linger: config.body_timeout };
        let mut connections = Connections::new(Arc::clone(&interface), timeouts, config.connections_max);
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                () = connections.one_ends() => {}
                () = interface.answers_wait.notified() => connections.shed_stalled(),
                accepted = listener.accept(), if !connections.are_too_many() => match accepted {
                    Ok((stream, _)) => {
                        connections.start(stream);
                        if connections.are_too_many() {
                            connections.shed_idle();
                        }
                    }
                    Err(error) if is_about_one_connection(&error) => {}
                    Err(error) => {
                        warn!(%error, "cannot accept connections");
                        connections.shed_idle();
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                () = tokio::time::sleep(PAUSE), if connections.are_too_many() => {
                    connections.shed_idle();
                }
            }
        }
        drop(listener);
        connections.shut_down(config.shutdown_grace).await;
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Else a server could not be started again while connections of the one before it are being let go.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

#[cfg(test)]
mod tests {
    use futures_util::future::try_join_all;
    use tokio::net::TcpStream;

    use super::*;

    /// Nobody accepts meanwhile: who does not find room keeps trying, and the test does not end.
    #[tokio::test]
    async fn hundreds_may_wait_to_be_accepted() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").ok();
        let waiting = allowed.and_then(|most| most.trim().parse().ok()).unwrap_or(128).min(400);
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let connections = try_join_all((0..waiting).map(|_| TcpStream::connect(address)));
        let connections = tokio::time::timeout(Duration::from_secs(60), connections).await.unwrap().unwrap();
        assert_eq!(connections.len(), waiting);
    }
}
