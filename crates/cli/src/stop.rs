//! Signals that tell a command to end.

use anyhow::{Context, Result, bail};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// From now on these signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    pub(crate) async fn requested(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => info!("interrupted: finishing requests in flight"),
            _ = self.terminate.recv() => info!("terminated: finishing requests in flight"),
        }
    }
}

/// Drops the work when a signal tells the command to end, and with it the servers and folders that it made.
pub(crate) async fn droppable(work: impl Future<Output = Result<()>>) -> Result<()> {
    let Stop { mut interrupt, mut terminate } = Stop::listen()?;
    tokio::select! {
        done = work => done,
        _ = interrupt.recv() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}
