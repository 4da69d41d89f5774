//! The outcome, for people and for programs.

use anyhow::Result;
use serde::Serialize;

use super::hot::Hot;
use super::reads::{Figure, Line as PagesLine, Page, Ratio, Reads};
use super::setup::CHUNK;
use super::writes::{Line as WritesLine, Writes};
use crate::out;
use crate::table::{table, thousands};

#[derive(Debug, Serialize)]
pub(super) struct Report {
    bench: &'static str,
    debug_build: bool,
    pub(super) writes: Option<Writes>,
    pub(super) reads: Option<Reads>,
    pub(super) hot: Option<Hot>,
}

impl Default for Report {
    fn default() -> Self {
        Self { bench: "partitions", debug_build: cfg!(debug_assertions), writes: None, reads: None, hot: None }
    }
}

impl Report {
    pub(super) fn print(&self, json: bool) -> Result<()> {
        if json {
            out::line(serde_json::to_string(self)?)?;
            return Ok(());
        }
        let parts = [
            self.writes.as_ref().map(writes),
            self.reads.as_ref().map(pages),
            self.reads.as_ref().map(latency),
            self.hot.as_ref().map(hot),
        ];
        out::line(parts.into_iter().flatten().collect::<Vec<_>>().join("\n"))?;
        Ok(())
    }
}

fn titles<const N: usize>(titles: [&str; N]) -> Vec<[String; N]> {
    vec![titles.map(str::to_owned)]
}

fn or_dash(figure: Option<impl ToString>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| figure.to_string())
}

fn writes(writes: &Writes) -> String {
    let header = titles([
        "writes",
        "P",
        "n",
        "on one",
        "acked/s",
        "throttled",
        "p50 ms",
        "p99 ms",
        "refused/s",
        "busiest WCU/s",
    ]);
    let row = |line: &WritesLine| {
        [
            line.design.name().to_owned(),
            line.physical_partitions.to_string(),
            or_dash(line.n),
            or_dash(line.salts_on_one),
            thousands(line.acked_per_s),
            format!("{:.1} %", line.load.throttled_share * 100.0),
            format!("{:.2}", line.p50_ms),
            format!("{:.2}", line.p99_ms),
            thousands(line.refused_per_s + line.failed_per_s),
            thousands(line.load.busiest_wcu_per_s),
        ]
    };
    let rows: Vec<_> = header.into_iter().chain(writes.lines.iter().map(row)).collect();
    format!(
        "{}\n{} messages of 1 WCU per second to the conversation {}, whatever becomes of them, over a store in memory with P \
         physical partitions of 1,000 WCU/s and nothing saved up. Measured for {} s, after {} s at that rate. What is \
         throttled is tried again on the same key, with the same pauses by all (4 ms doubling to 400 ms, for 10 s); at most \
         4,096 are under way, others are refused. Throttled: of all attempts to write. n: at the end; on one: how \
         many of these salts the fullest physical partition holds. The \
         name decides which salts meet on one physical partition, for all designs alike. Saltern writes a claim beside each row: \
         2 WCU per message in all, the claims spread over all partitions. The others write the row alone, and so a retry of \
         theirs can become a second message. Chunk keys: {CHUNK} seq_nos each.\n",
        table(&rows),
        thousands(writes.offered_wcu_per_s.into()),
        writes.conversation,
        writes.seconds,
        writes.settle_s
    )
}

fn pages(reads: &Reads) -> String {
    let header = titles(["pages of 20", "N", "partitions", "at most", "keys", "rows", "at most"]);
    let mean = |figure: Figure| format!("{:.2}", figure.mean);
    let row = |line: &PagesLine| {
        let asked = line.asked;
        [
            format!("{}, {}", line.design.name(), name(line.page)),
            or_dash(line.n),
            mean(asked.partitions),
            asked.partitions.max.to_string(),
            mean(asked.keys),
            mean(asked.rows),
            asked.rows.max.to_string(),
        ]
    };
    let rows: Vec<_> = header.into_iter().chain(reads.counts.iter().map(row)).collect();
    format!(
        "{}\nPer page, counted at the store port: partitions queried, keys asked for, rows that came back. {} messages, {} \
         pages each, older ones at a random place; no cache of history. Newest: by the server that wrote, which knows about \
         where the end is; without a hint: the first page of a server that has only read the control record. One key and \
         one row of Saltern's newest pages are the control record. After cool-down: N of new messages is back at 1 for more than a page, \
         for which Saltern's server was told to shrink at once instead of after five minutes; the classic N never \
         falls. Chunk keys: {CHUNK} seq_nos each; the newest page needs whoever issued the last ticket.\n",
        table(&rows),
        thousands(reads.messages.into()),
        thousands(reads.pages.into())
    )
}

fn name(page: Page) -> &'static str {
    match page {
        Page::Newest => "newest",
        Page::NewestWithoutHint => "newest without a hint",
        Page::Older => "older",
        Page::NewestAfterCoolDown => "newest after cool-down",
    }
}

fn latency(reads: &Reads) -> String {
    let header = titles(["latency of older pages", "mean", "min..max", "median", "min..max", "mean ms", "mean ms"]);
    let row = |ratio: &Ratio| {
        let (means, medians) = (ratio.of_means, ratio.of_medians);
        [
            ratio.what.clone(),
            format!("{:.2}", means.median),
            format!("{:.2}..{:.2}", means.min, means.max),
            format!("{:.2}", medians.median),
            format!("{:.2}..{:.2}", medians.min, medians.max),
            format!("{:.3}", ratio.above.mean_ms),
            format!("{:.3}", ratio.below.mean_ms),
        ]
    };
    let rows: Vec<_> = header.into_iter().chain(reads.latency.iter().map(row)).collect();
    let classic = reads.rows_ratio_classic_to_saltern;
    let classic = classic.map(|ratio| format!(" The classic design reads {ratio:.1} rows for each of Saltern's."));
    format!(
        "{}\nLatency of the first over the second: of means and of medians, medians of {} interleaved runs of {} pages one \
         after the other. Embedded store on disk, {} messages per conversation, without HTTP and without a cache of \
         history.{}\n",
        table(&rows),
        reads.runs,
        thousands(reads.pages.into()),
        thousands(reads.messages.into()),
        classic.unwrap_or_default()
    )
}

fn hot(hot: &Hot) -> String {
    let mut rows = titles(["appends", "ratio", "min..max", "one/s", "p99 ms", "many/s", "p99 ms", "errors"]);
    let (ratio, one, many) = (hot.comparison.ratio, &hot.comparison.saltern, &hot.comparison.peer);
    rows.push([
        format!("{} / {}", hot.comparison.what, hot.comparison.peer_is),
        format!("{:.2}", ratio.median),
        format!("{:.2}..{:.2}", ratio.min, ratio.max),
        thousands(one.per_s),
        format!("{:.2}", one.p99_ms),
        thousands(many.per_s),
        format!("{:.2}", many.p99_ms),
        (one.errors + many.errors).to_string(),
    ]);
    format!(
        "{}\nMedians of {} interleaved runs of {} s per side. Embedded stores on disk without limits, the service without \
         HTTP; each of the {} writers appends one message after the other, durably.\n",
        table(&rows),
        hot.runs,
        hot.seconds,
        hot.writers
    )
}
