//! `saltern archive`: one pass, here or at a server; and a server's own.

mod here;
mod report;
mod schedule;
mod there;

use anyhow::{Result, bail};

use self::report::Report;
pub(crate) use self::schedule::{Schedule, on_schedule};
use crate::args::ArchiveArgs;
use crate::table::thousands;

pub(crate) async fn archive(args: &ArchiveArgs) -> Result<()> {
    let mut report = Report::new(args);
    match &args.target.url {
        Some(url) => there::archive(url, args, &mut report).await?,
        None => here::archive(args, &mut report).await?,
    }
    report.end()?;
    if report.total.stopped {
        bail!("stopped before the end; the next pass resumes there");
    }
    if report.total.failed > 0 {
        bail!("{} conversations could not be archived to the end", thousands(report.total.failed as f64));
    }
    Ok(())
}
