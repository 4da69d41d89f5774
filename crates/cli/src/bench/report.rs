//! The outcome, for people and for programs.

use serde::Serialize;

use super::measure::{Comparison, Side};
use crate::out;
use crate::table::{table, thousands};

/// What a measurement of ratios prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) bench: &'static str,
    pub(super) runs: u32,
    pub(super) seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content_bytes: Option<u32>,
    pub(super) debug_build: bool,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) how: String,
}

impl Report {
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            out::line(serde_json::to_string(self)?)?;
            return Ok(());
        }
        let header = [
            "",
            "ratio",
            "min..max",
            "saltern/s",
            "p50 ms",
            "p99 ms",
            "cpu µs",
            "peer/s",
            "p50 ms",
            "p99 ms",
            "cpu µs",
            "errors",
        ];
        let mut rows = vec![header.map(str::to_owned)];
        rows.extend(self.comparisons.iter().map(row));
        out::print(format_args!("{}\n{}\n", table(&rows), self.how))?;
        if self.comparisons.iter().any(|comparison| comparison.saltern.worked_us.is_some()) {
            out::line(format_args!(
                "cpu µs: what all cores worked for one request, for load, server and kernel together."
            ))?;
        }
        Ok(())
    }
}

fn row(comparison: &Comparison) -> [String; 12] {
    let ratio = comparison.ratio;
    let [ours_rate, ours_p50, ours_p99, ours_worked] = side(&comparison.saltern);
    let [peer_rate, peer_p50, peer_p99, peer_worked] = side(&comparison.peer);
    [
        format!("{} / {}", comparison.what, comparison.peer_is),
        format!("{:.2}", ratio.median),
        format!("{:.2}..{:.2}", ratio.min, ratio.max),
        ours_rate,
        ours_p50,
        ours_p99,
        ours_worked,
        peer_rate,
        peer_p50,
        peer_p99,
        peer_worked,
        (comparison.saltern.errors + comparison.peer.errors).to_string(),
    ]
}

fn side(side: &Side) -> [String; 4] {
    let worked = side.worked_us.map_or_else(String::new, |us| format!("{us:.1}"));
    [thousands(side.per_s), format!("{:.2}", side.p50_ms), format!("{:.2}", side.p99_ms), worked]
}
