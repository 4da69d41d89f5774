//! Reads: what pages of 20 ask of a store, counted; then how long they take, timed.

mod counting;
mod fill;
mod latency;
mod reader;
mod tally;

use anyhow::Result;
use serde::Serialize;

pub(super) use self::counting::{Line, Page};
pub(super) use self::latency::Ratio;
pub(super) use self::reader::Design;
pub(super) use self::tally::Figure;
use super::super::progress;
use crate::args::PartitionsArgs;
use crate::scratch::Scratch;

#[derive(Debug, Serialize)]
pub(super) struct Reads {
    pub(super) messages: u32,
    pub(super) pages: u32,
    pub(super) runs: u32,
    pub(super) counts: Vec<Line>,
    pub(super) latency: Vec<Ratio>,
    /// Rows that an older page of the classic design reads for each that Saltern reads, at the n of the timed reads.
    pub(super) rows_ratio_classic_to_saltern: Option<f64>,
}

pub(super) async fn measure(args: &PartitionsArgs, scratch: &Scratch) -> Result<Reads> {
    let counts = counting::measure(args).await?;
    let latency = latency::measure(args, scratch).await?;
    progress("");
    Ok(Reads {
        messages: args.messages,
        pages: args.pages,
        runs: args.runs,
        rows_ratio_classic_to_saltern: rows_ratio(&counts),
        counts,
        latency,
    })
}

fn rows_ratio(counts: &[Line]) -> Option<f64> {
    let rows = |design| {
        let is_it = |line: &&Line| (line.design, line.n, line.page) == (design, Some(latency::N), Page::Older);
        counts.iter().find(is_it).map(|line| line.asked.rows.mean)
    };
    Some(rows(Design::Classic)? / rows(Design::Saltern)?)
}
