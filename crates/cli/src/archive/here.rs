//! A pass over the store that the configuration names.

use anyhow::{Context as _, Result};
use saltern_service::conversations::{ArchiveError, PassOptions, Progress};
use saltern_service::upkeep::{Upkeep, chain};
use tokio_util::sync::CancellationToken;

use super::report::Report;
use crate::args::{ArchiveArgs, ConfigArgs};
use crate::config::Config;
use crate::service::Service;
use crate::stop::Stop;

pub(super) async fn archive(args: &ArchiveArgs, report: &mut Report) -> Result<()> {
    let mut stop = Stop::listen()?;
    let (config, data) = (args.target.config.clone(), args.target.data.clone());
    let config = Config::load(&ConfigArgs { config, data, ..ConfigArgs::default() })?;
    let service = Service::open_present(&config).await?;
    let token = CancellationToken::new();
    let upkeep = service.upkeep(&config);
    let done = async {
        service.check_archive().await?;
        let pass = pass(&upkeep, args, &token, report);
        tokio::pin!(pass);
        tokio::select! {
            done = &mut pass => done,
            () = stop.requested() => {
                token.cancel();
                pass.await
            }
        }
    };
    let done = done.await;
    service.close().await;
    done
}

async fn pass(upkeep: &Upkeep, args: &ArchiveArgs, stop: &CancellationToken, report: &mut Report) -> Result<()> {
    let options = PassOptions {
        older_than: args.older_than.unwrap_or(upkeep.older_than),
        messages_per_s: args.rate.map(f64::from),
        dry_run: args.dry_run,
    };
    let archive = upkeep.conversations.archive();
    let pass = archive.pass(&*upkeep.due, &options, stop, |progress| match progress {
        Progress::Due(count) => report.due = count,
        Progress::Failed(conversation, error) => report.failed(&format!("{conversation:?}: {}", chain(error))),
        Progress::Moved(so_far, part) => report.progress(so_far, part),
    });
    let done = pass.await.context("the pass stopped before its end; the next one resumes there")?;
    report.total = done;
    if !args.dry_run && !done.stopped {
        let swept = archive.sweep(upkeep.orphans_after, args.sweep_all, stop).await;
        report.orphans = swept.context("the search for orphaned objects failed")?.removed;
        if args.compact {
            upkeep.compact().await.map_err(ArchiveError::from).context("compaction failed")?;
        }
    }
    Ok(())
}
