//! The peer of `bench tickets`: the least that a script can do for a number that nobody else gets.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult, Script};
use saltern_core::ids::ConversationId;

use super::connection::CallError;
use super::keys::Keys;
use crate::port::RegistryError;

/// Counts with HINCRBY, over one connection that all who ask share, as the registry's. No meter, no horizon, no expiry,
/// no time limit: it is measured against, never used.
#[derive(Clone)]
pub struct BareCounter {
    connection: MultiplexedConnection,
    script: Script,
    keys: Keys,
}

impl BareCounter {
    pub async fn connect(url: &str) -> Result<Self, RegistryError> {
        let connection = connect(url).await.map_err(CallError::Redis)?;
        let script = Script::new("return redis.call('HINCRBY', KEYS[1], 'n', 1)");
        Ok(Self { connection, script, keys: Keys::new("saltern-bare") })
    }

    pub async fn next(&self, conversation: &ConversationId) -> Result<u64, RegistryError> {
        let script = self.script.key(self.keys.conversation(conversation));
        Ok(script.invoke_async(&mut self.connection.clone()).await.map_err(CallError::Redis)?)
    }
}

async fn connect(url: &str) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await
}
