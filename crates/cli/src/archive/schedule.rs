//! A server's own passes.

use std::sync::Arc;
use std::time::Duration;

use saltern_service::conversations::{ArchiveError, PassOptions, Progress};
use saltern_service::upkeep::{Upkeep, chain};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::config::Config;

/// The first pass comes soon, since servers are started anew more often than passes are due; but not in the rush of a start.
const FIRST_AFTER_MAX: Duration = Duration::from_secs(300);

pub(crate) struct Schedule {
    /// `None`: never.
    every: Option<Duration>,
    messages_per_s: Option<f64>,
}

impl Schedule {
    pub(crate) fn of(config: &Config) -> Self {
        let given = |value: u32| (value > 0).then_some(value);
        Self {
            every: given(config.archive.every_s.value).map(|s| Duration::from_secs(s.into())),
            messages_per_s: given(config.archive.messages_per_s.value).map(f64::from),
        }
    }
}

/// Passes, one after the other, until it is told to stop.
pub(crate) async fn on_schedule(upkeep: Arc<Upkeep>, schedule: Schedule, stop: CancellationToken) {
    let Some(every) = schedule.every.filter(|_| upkeep.conversations.archive().is_present()) else { return };
    let options =
        PassOptions { older_than: upkeep.older_than, messages_per_s: schedule.messages_per_s, dry_run: false };
    let mut pause = every.min(FIRST_AFTER_MAX);
    while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
        match pass(&upkeep, &options, &stop).await {
            Ok(()) => {}
            Err(ArchiveError::Busy) => debug!("another pass is under way"),
            Err(error) => warn!(error = chain(&error), "a pass of the archive has stopped; the next one goes on"),
        }
        pause = every;
    }
}

async fn pass(upkeep: &Upkeep, options: &PassOptions, stop: &CancellationToken) -> Result<(), ArchiveError> {
    let archive = upkeep.conversations.archive();
    let done = archive.pass(&*upkeep.due, options, stop, |progress| {
        if let Progress::Failed(conversation, error) = progress {
            warn!(conversation = conversation.as_str(), error = chain(error), "not archived to the end");
        }
    });
    let done = done.await?;
    if done.messages > 0 {
        info!(messages = done.messages, objects = done.objects, bytes = done.object_bytes, "archived");
    }
    let swept = archive.sweep(upkeep.orphans_after, false, stop).await?;
    if swept.removed > 0 {
        info!(objects = swept.removed, "removed objects that nothing referred to");
    }
    Ok(())
}
