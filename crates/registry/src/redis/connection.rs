//! One connection for all calls, with a time limit on each: opened by the first, and anew after it broke.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::{ClusterClient, ClusterConfig};
use redis::cluster_async::ClusterConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError};
use redis::{RedisResult, ScriptInvocation, ServerErrorKind, Value};
use tokio::sync::Semaphore;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::options::RedisOptions;
use crate::port::RegistryError;

/// Calls under way at once. Those beyond wait, for as long as their time limit lets them.
const IN_FLIGHT_MAX: usize = 1_024;

#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("redis failed")]
    Redis(#[source] RedisError),
    #[error("redis did not answer within {0:?}")]
    Late(Duration),
    #[error("redis answered with {0}, which is no seq_no")]
    NoSeqNo(u64),
    #[error("redis answered with {0} numbers to a request for tickets")]
    NoTickets(usize),
}

impl From<CallError> for RegistryError {
    fn from(error: CallError) -> Self {
        Self(Arc::new(error))
    }
}

/// What a call sends.
#[derive(Clone, Copy)]
pub(super) enum Call<'a> {
    Script(&'a ScriptInvocation<'a>),
    Command(&'a Cmd),
    /// All of its keys are in one slot.
    Pipeline(&'a Pipeline),
}

impl Call<'_> {
    async fn on(self, server: &mut (impl ConnectionLike + Send)) -> RedisResult<Value> {
        match self {
            Self::Script(script) => script.invoke_async(server).await,
            Self::Command(command) => command.query_async(server).await,
            Self::Pipeline(pipeline) => pipeline.query_async(server).await,
        }
    }
}

pub(super) struct Connection {
    server: Server,
    timeout: Duration,
    in_flight: Semaphore,
}

enum Server {
    Single(Box<Single>),
    /// Finds its nodes again by itself, each by its own connection: one that is down does not stop the others.
    Cluster(ClusterConnection),
}

impl Connection {
    /// Nothing is opened yet: a service starts without its registry, and goes on when that comes.
    pub(super) fn new(options: &RedisOptions) -> RedisResult<Self> {
        let server = match options.urls.as_slice() {
            [url] if !options.cluster => Server::Single(Box::new(Single::new(url)?)),
            urls => Server::Cluster(cluster(urls, options.timeout)?),
        };
        Ok(Self { server, timeout: options.timeout, in_flight: Semaphore::new(IN_FLIGHT_MAX) })
    }

    pub(super) async fn call<T: FromRedisValue>(&self, call: Call<'_>) -> Result<T, CallError> {
        let answer = self.in_time(call).await?;
        T::from_redis_value(answer).map_err(|error| CallError::Redis(error.into()))
    }

    async fn in_time(&self, call: Call<'_>) -> Result<Value, CallError> {
        let late = |_| CallError::Late(self.timeout);
        let deadline = Instant::now() + self.timeout;
        // Never closed, so there is always a permit in the end.
        let _permit = timeout_at(deadline, self.in_flight.acquire()).await.map_err(late)?;
        let answer = match &self.server {
            Server::Single(single) => single.call(call, deadline).await,
            Server::Cluster(cluster) => timeout_at(deadline, call.on(&mut cluster.clone())).await,
        };
        answer.map_err(late)?.map_err(CallError::Redis)
    }
}

fn cluster(urls: &[String], timeout: Duration) -> RedisResult<ClusterConnection> {
    let client = ClusterClient::builder(urls.iter().map(String::as_str)).build()?;
    let config = ClusterConfig::new().set_connection_timeout(timeout).set_response_timeout(timeout);
    Ok(client.get_pending_async_connection_with_config(config))
}

/// The connection to a single primary.
struct Single {
    client: Client,
    config: AsyncConnectionConfig,
    current: Mutex<Option<Numbered>>,
    /// Held while a connection is opened, so that all who wait get the same one.
    opening: tokio::sync::Mutex<u64>,
}

#[derive(Clone)]
struct Numbered {
    number: u64,
    connection: MultiplexedConnection,
}

impl Single {
    fn new(url: &str) -> RedisResult<Self> {
        // Every call has its own time limit, which covers opening a connection too.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        Ok(Self { client: Client::open(url)?, config, current: Mutex::new(None), opening: Default::default() })
    }

    /// Once more if the connection broke: it may have done so long ago, unnoticed. Should the first attempt have had its
    /// effect, its tickets stay unused and its load is counted twice, which is what a lost answer costs anyway.
    async fn call(&self, call: Call<'_>, deadline: Instant) -> Result<RedisResult<Value>, Elapsed> {
        match self.attempt(call, deadline).await? {
            Err(error) if breaks(&error) => self.attempt(call, deadline).await,
            answer => Ok(answer),
        }
    }

    async fn attempt(&self, call: Call<'_>, deadline: Instant) -> Result<RedisResult<Value>, Elapsed> {
        let Numbered { number, mut connection } = match timeout_at(deadline, self.open()).await? {
            Ok(open) => open,
            Err(error) => return Ok(Err(error)),
        };
        let answer = timeout_at(deadline, call.on(&mut connection)).await;
        // A connection that stays silent may lead to a host that is gone.
        if answer.as_ref().map_or(true, |answer| answer.as_ref().is_err_and(breaks)) {
            self.discard(number);
        }
        answer
    }

    async fn open(&self) -> RedisResult<Numbered> {
        if let Some(open) = self.current().clone() {
            return Ok(open);
        }
        let mut opened = self.opening.lock().await;
        if let Some(open) = self.current().clone() {
            return Ok(open);
        }
        let connection = self.client.get_multiplexed_async_connection_with_config(&self.config).await?;
        *opened += 1;
        let open = Numbered { number: *opened, connection };
        *self.current() = Some(open.clone());
        Ok(open)
    }

    /// Those who come late to tell of a broken connection do not close the one that has replaced it.
    fn discard(&self, number: u64) {
        self.current().take_if(|open| open.number == number);
    }

    fn current(&self) -> MutexGuard<'_, Option<Numbered>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether another connection might do better. That to a primary which has become a replica is fine, but useless.
fn breaks(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::AuthenticationFailed => true,
        ErrorKind::Server(kind) => matches!(kind, ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown),
        _ => false,
    }
}
