//! The summary: what was measured, beside what the documents promise.

use anyhow::Result;
use serde::Serialize;

use super::plan::Documented;
use super::stage::Outcome;
use super::verify::Verified;
use crate::args::RampArgs;
use crate::out;
use crate::table::{table, thousands};

/// One step. All but the last two fields are of the time after it had settled.
#[derive(Debug, Serialize)]
pub(super) struct StepReport {
    pub(super) offered_wcu_per_s: f64,
    pub(super) n: u16,
    pub(super) acked_per_s: f64,
    /// Attempts to write that were refused.
    pub(super) throttled: u64,
    /// Of the busiest second of the busiest physical partition.
    pub(super) max_partition_wcu_per_s: f64,
    pub(super) p99_ms: f64,
    pub(super) throttled_while_settling: u64,
    #[serde(skip)]
    pub(super) documented: Option<Documented>,
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    steps: Vec<StepReport>,
    acked: u64,
    read_back: u64,
    lost: u64,
    doubled: u64,
    /// Neither acknowledged nor lost: their senders were told to send them again.
    refused: u64,
    #[serde(skip)]
    how: String,
}

impl Report {
    pub(super) fn new(args: &RampArgs, steps: Vec<StepReport>, outcome: &Outcome, verified: Verified) -> Self {
        Self {
            steps,
            acked: outcome.tally.acked.len() as u64,
            read_back: verified.read_back,
            lost: verified.lost,
            doubled: verified.doubled,
            refused: outcome.tally.refused,
            how: how(args),
        }
    }

    pub(super) fn print(&self, json: bool) -> Result<()> {
        if json {
            out::line(serde_json::to_string(self)?)?;
            return Ok(());
        }
        let header = [
            "offered WCU/s",
            "partitions",
            "documents",
            "acked/s",
            "busiest WCU/s",
            "documents",
            "throttled",
            "before",
            "p99 ms",
        ];
        let mut rows = vec![header.map(str::to_owned)];
        rows.extend(self.steps.iter().map(row));
        out::print(format_args!("{}\n{}\n\n{}\n", table(&rows), self.verdict(), self.how))?;
        Ok(())
    }

    fn verdict(&self) -> String {
        let [acked, read_back, refused] = [self.acked, self.read_back, self.refused].map(|n| thousands(n as f64));
        let mut verdict = format!(
            "{acked} messages acknowledged, {read_back} of them read back in order; {} lost, {} doubled",
            self.lost, self.doubled
        );
        if self.refused > 0 {
            verdict.push_str(&format!("; {refused} refused, to be sent again"));
        }
        verdict
    }
}

fn row(step: &StepReport) -> [String; 9] {
    let documented = |figure: &dyn Fn(Documented) -> String| step.documented.map_or("-".to_owned(), figure);
    [
        thousands(step.offered_wcu_per_s),
        step.n.to_string(),
        documented(&|d| d.partitions.to_string()),
        thousands(step.acked_per_s),
        thousands(step.max_partition_wcu_per_s),
        documented(&|d| format!("~{}", thousands(d.wcu_per_s_each))),
        thousands(step.throttled as f64),
        thousands(step.throttled_while_settling as f64),
        format!("{:.1}", step.p99_ms),
    ]
}

fn how(args: &RampArgs) -> String {
    let n = match args.fixed_n {
        None => "n follows the traffic".to_owned(),
        Some(n) => format!("n is fixed at {n}"),
    };
    format!(
        "One conversation over {} physical partitions of 1,000 WCU/s, with {} s of unused capacity saved up; {n}. A message \
         costs 1 WCU in its partition and 1 for its claim in another. Figures are those after a step's first seconds, in \
         which n grows; attempts throttled in these are under \"before\".",
        args.physical_partitions,
        args.burst.max(1),
    )
}
