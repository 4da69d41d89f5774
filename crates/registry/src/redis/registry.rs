//! The port, call by call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use saltern_core::heat::Sample;
use saltern_core::ids::ConversationId;
use saltern_core::limits::SEQ_NO_END;
use saltern_core::meter::WINDOW_MS;
use saltern_core::seq::SeqNo;

use super::connection::{Call, CallError, Connection};
use super::hot::{HotList, Report};
use super::keys::Keys;
use super::options::RedisOptions;
use super::scripts::{Look, Scripts, Ticketed};
use crate::port::{Hot, Registry, RegistryError, ThrottledRow, TicketRequest, Tickets};

/// A cheap handle: clones share one connection.
#[derive(Clone)]
pub struct RedisRegistry {
    shared: Arc<Shared>,
    hot: HotList,
}

pub(super) struct Shared {
    pub(super) connection: Connection,
    pub(super) keys: Keys,
    scripts: Scripts,
    idle_ms: u64,
    patience: Duration,
}

impl RedisRegistry {
    /// Fails on options that can never work. A server that is not there makes calls fail until it is: connections are
    /// opened when they are needed.
    pub async fn connect(options: RedisOptions) -> Result<Self, RegistryError> {
        options.check().map_err(|error| RegistryError(Arc::new(error)))?;
        let idle_ms = u64::try_from(options.idle_expiry.as_millis()).unwrap_or(u64::MAX).min(IDLE_MS_MAX);
        let shared = Arc::new(Shared {
            connection: Connection::new(&options).map_err(CallError::Redis)?,
            keys: Keys::new(&options.prefix),
            scripts: Scripts::new(idle_ms),
            idle_ms,
            patience: options.timeout,
        });
        Ok(Self { hot: HotList::start(&shared), shared })
    }
}

/// Redis adds it to its clock, and refuses what overflows: 100 years.
const IDLE_MS_MAX: u64 = 100 * 365 * 86_400_000;

impl Shared {
    pub(super) async fn look(&self, conversation: &ConversationId) -> Result<Option<Look>, CallError> {
        let script = self.scripts.look.key(self.keys.conversation(conversation));
        Ok(self.connection.call::<Option<_>>(Call::Script(&script)).await?.map(Look::read))
    }

    async fn tickets(
        &self,
        conversation: &ConversationId,
        request: TicketRequest,
    ) -> Result<Option<Ticketed>, CallError> {
        let count = number(request.count);
        let mut script = self.scripts.tickets.key(self.keys.conversation(conversation));
        script.arg(count).arg(number(request.wcu));
        let answer = self.connection.call::<Option<Vec<u64>>>(Call::Script(&script)).await?;
        answer.map(|answer| Ticketed::read(&answer, count)).transpose()
    }
}

/// A script's numbers are exact up to 2^53, and no run nor load is as large.
fn number(n: u64) -> u64 {
    n.min(SEQ_NO_END)
}

// As in the registry of one process, only `tickets` and `install` count as use.
#[async_trait]
impl Registry for RedisRegistry {
    async fn tickets(&self, conversation: &ConversationId, request: TicketRequest) -> Result<Tickets, RegistryError> {
        let Some(done) = self.shared.tickets(conversation, request).await? else { return Ok(Tickets::Absent) };
        if let Some(load) = done.first_of_window {
            self.hot.tell(Report::new(conversation, load));
        }
        Ok(done.tickets)
    }

    async fn install(&self, conversation: &ConversationId, next: SeqNo, horizon: SeqNo) -> Result<(), RegistryError> {
        let mut script = self.shared.scripts.install.key(self.shared.keys.conversation(conversation));
        script.arg(next.get()).arg(horizon.get()).arg(self.shared.idle_ms);
        Ok(self.shared.connection.call(Call::Script(&script)).await?)
    }

    async fn raise(&self, conversation: &ConversationId, horizon: SeqNo) -> Result<(), RegistryError> {
        let mut script = self.shared.scripts.raise.key(self.shared.keys.conversation(conversation));
        script.arg(horizon.get());
        Ok(self.shared.connection.call(Call::Script(&script)).await?)
    }

    async fn sample(&self, conversation: &ConversationId, epoch: SeqNo) -> Result<Sample, RegistryError> {
        Ok(self.shared.look(conversation).await?.map_or_else(Sample::default, |look| Sample {
            rate_wcu_per_s: look.load.rate_wcu_per_s(),
            throttled_wcu_per_s: match look.throttled_epoch == epoch.get() {
                true => look.throttled.rate_wcu_per_s(),
                false => 0.0,
            },
        }))
    }

    async fn throttled(&self, conversation: &ConversationId, row: ThrottledRow) -> Result<(), RegistryError> {
        let mut script = self.shared.scripts.throttled.key(self.shared.keys.conversation(conversation));
        script.arg(number(row.wcu)).arg(row.epoch.get()).arg(WINDOW_MS);
        Ok(self.shared.connection.call(Call::Script(&script)).await?)
    }

    async fn rate_wcu_per_s(&self, conversation: &ConversationId) -> Result<f64, RegistryError> {
        Ok(self.shared.look(conversation).await?.map_or(0.0, |look| look.load.rate_wcu_per_s()))
    }

    async fn hot(&self, limit: usize) -> Result<Vec<Hot>, RegistryError> {
        self.hot.flushed(self.shared.patience).await;
        Ok(super::hot::hottest(&self.shared, limit).await?)
    }
}
