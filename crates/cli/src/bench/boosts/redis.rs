//! A redis-server of our own, with a row for each partner.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use saltern_baseline::boost_text;
use saltern_core::campaigns::{Boost, Market, Moment, Score, Standing};
use saltern_core::ids::PartnerId;

use super::resp::{Connection, Reply};

/// One hash for the market, with a field for each partner.
const HASH: &str = "de#*";
const FIELDS_PER_COMMAND: usize = 1_000;
const LOOKS: u32 = 500;
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Keeps nothing on the disk. Killed when dropped.
pub(super) struct RedisServer {
    process: Child,
    pub(super) port: u16,
}

impl RedisServer {
    /// `None` if there is no redis-server on this machine.
    pub(super) async fn start(folder: &Path) -> Result<Option<Self>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(folder);
        let process = match command.spawn() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            process => process.context("cannot start redis-server")?,
        };
        let server = Self { process, port };
        for _ in 0..LOOKS {
            if let Ok(mut connection) = Connection::open(port).await
                && connection.ask(&["PING"]).await.is_ok()
            {
                return Ok(Some(server));
            }
            tokio::time::sleep(LOOK_PAUSE).await;
        }
        bail!("redis-server does not answer")
    }

    pub(super) async fn fill(&self, rows: &[(PartnerId, Boost)]) -> Result<()> {
        let mut connection = Connection::open(self.port).await?;
        for rows in rows.chunks(FIELDS_PER_COMMAND) {
            let texts: Vec<_> = rows.iter().map(|(_, boost)| boost_text::encode(boost)).collect();
            let fields = rows.iter().zip(&texts).flat_map(|((partner, _), text)| [partner.as_str(), text.as_str()]);
            connection.ask(&["HSET", HASH].into_iter().chain(fields).collect::<Vec<_>>()).await?;
        }
        Ok(())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Lookups in Redis, with a connection for each that is under way.
pub(super) struct RedisRows {
    port: u16,
    market: Market,
    idle: Mutex<Vec<Connection>>,
}

impl RedisRows {
    pub(super) fn new(port: u16, market: Market) -> Self {
        Self { port, market, idle: Mutex::default() }
    }

    /// All rows by one command, filtered as Saltern filters its own.
    pub(super) async fn search<'a>(
        &self,
        partners: &'a [PartnerId],
        at: Moment,
    ) -> Result<Vec<(&'a PartnerId, Score)>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => Connection::open(self.port).await?,
        };
        let words = ["HMGET", HASH].into_iter().chain(partners.iter().map(PartnerId::as_str));
        let Reply::Texts(texts) = connection.ask(&words.collect::<Vec<_>>()).await? else { bail!("not a list") };
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        let now = self.market.local_time(at);
        let mut found = Vec::with_capacity(partners.len());
        for (partner, text) in partners.iter().zip(texts) {
            let Some(text) = text else { continue };
            if let Standing::Active(score) = boost_text::decode(&text).context("not a boost")?.standing(&now) {
                found.push((partner, score));
            }
        }
        Ok(found)
    }
}
