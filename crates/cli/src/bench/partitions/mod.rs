//! `bench partitions`: one hot conversation, Saltern beside the designs that others build, over the same stores.

pub(super) mod drafts;
mod hot;
mod reads;
mod report;
pub(super) mod setup;
mod writes;

use anyhow::Result;

use self::report::Report;
use crate::args::{Part, PartitionsArgs};
use crate::scratch::Scratch;

pub(super) async fn partitions(args: &PartitionsArgs) -> Result<()> {
    let wanted = |part| args.only.is_none_or(|only| only == part);
    let mut report = Report::default();
    if wanted(Part::Writes) {
        report.writes = Some(writes::measure(args).await?);
    }
    if wanted(Part::Reads) || wanted(Part::Hot) {
        let scratch = Scratch::create(args.data.as_deref())?;
        if wanted(Part::Reads) {
            report.reads = Some(reads::measure(args, &scratch).await?);
        }
        if wanted(Part::Hot) {
            report.hot = Some(hot::measure(args, &scratch).await?);
        }
    }
    report.print(args.json)
}
