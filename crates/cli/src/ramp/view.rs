//! The ramp as it goes: on a terminal a picture that is drawn anew, elsewhere a plain line every second.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use saltern_core::key::PartitionKey;

use super::plan::Plan;
use crate::out;
use crate::table::thousands;

/// Columns for 1,000 WCU/s; half as many again are drawn before a bar ends. A line fits 80 columns: one that wraps would
/// make the next picture start in the wrong place.
const BAR: usize = 32;
const BAR_MAX: usize = BAR * 3 / 2;
const LIMIT_WCU_PER_S: f64 = 1_000.0;
/// Salts that are drawn; the rest is told in a line.
const SALTS_SHOWN: usize = 16;
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// What is to be seen at one moment.
pub(super) struct Frame {
    pub(super) n: u16,
    pub(super) acked_per_s: f64,
    pub(super) busiest_wcu_per_s: f64,
    /// Since the start.
    pub(super) throttled: u64,
    pub(super) p99_ms: f64,
    pub(super) salts: Vec<SaltLoad>,
}

/// A salt, and the load of the physical partition that it lives in.
pub(super) struct SaltLoad {
    pub(super) partition: PartitionKey,
    pub(super) physical: usize,
    pub(super) wcu_per_s: f64,
}

pub(super) struct View {
    offered: Vec<f64>,
    duration: Duration,
    terminal: bool,
    /// Lines of the picture that stands on the terminal.
    drawn: usize,
    last_line_s: Option<u64>,
}

impl View {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            offered: plan.steps.iter().map(|step| step.offered_wcu_per_s).collect(),
            duration: plan.duration(),
            terminal: std::io::stderr().is_terminal(),
            drawn: 0,
            last_line_s: None,
        }
    }

    pub(super) fn show(&mut self, frame: &Frame, step: usize, elapsed: Duration) {
        if self.terminal {
            let picture = self.picture(frame, step, elapsed);
            self.draw(&picture);
        } else if self.last_line_s != Some(elapsed.as_secs()) {
            self.last_line_s = Some(elapsed.as_secs());
            out::note(self.line(frame, step, elapsed));
        }
    }

    /// Takes the picture away; what comes is said in a line.
    pub(super) fn end(&mut self, what_comes: &str) {
        if self.terminal {
            self.draw("");
        }
        out::note(what_comes);
    }

    /// Replaces the picture before: up to its first line, and each line to its end.
    fn draw(&mut self, picture: &str) {
        let mut out = String::new();
        if self.drawn > 0 {
            let _ = write!(out, "\x1b[{}A", self.drawn);
        }
        out.push_str("\x1b[J");
        out.push_str(picture);
        self.drawn = picture.lines().count();
        let mut stderr = std::io::stderr().lock();
        // Nobody there to look: no reason to stop.
        let _ = stderr.write_all(out.as_bytes()).and_then(|()| stderr.flush());
    }

    fn line(&self, frame: &Frame, step: usize, elapsed: Duration) -> String {
        format!(
            "{:>3} s  offered {:>6} WCU/s  n {:>3}  acked {:>6}/s  busiest partition {:>5} WCU/s  throttled {:>7}  p99 {:>7.1} ms",
            elapsed.as_secs(),
            thousands(self.offered[step]),
            frame.n,
            thousands(frame.acked_per_s),
            thousands(frame.busiest_wcu_per_s),
            thousands(frame.throttled as f64),
            frame.p99_ms,
        )
    }

    fn picture(&self, frame: &Frame, step: usize, elapsed: Duration) -> String {
        let mut out = format!(
            "step {} of {}: {} WCU/s offered, {} of {} s\n",
            step + 1,
            self.offered.len(),
            thousands(self.offered[step]),
            elapsed.as_secs(),
            self.duration.as_secs(),
        );
        let _ = writeln!(
            out,
            "n = {}   acknowledged {}/s   p99 {:.1} ms   throttled {}\n",
            frame.n,
            thousands(frame.acked_per_s),
            frame.p99_ms,
            thousands(frame.throttled as f64),
        );
        let width = frame.salts.iter().map(|salt| salt.partition.as_str().len()).max().unwrap_or(0);
        for salt in frame.salts.iter().take(SALTS_SHOWN) {
            let (name, bar) = (salt.partition.as_str(), bar(salt.wcu_per_s));
            let _ = writeln!(out, "{name:<width$}  p{:<5} {bar} {:>6}", salt.physical, thousands(salt.wcu_per_s));
        }
        if frame.salts.len() > SALTS_SHOWN {
            let _ = writeln!(out, "… and {} more", frame.salts.len() - SALTS_SHOWN);
        }
        let _ = writeln!(out, "{:width$}         {:>BAR$}", "", "1,000 WCU/s ┘");
        out
    }
}

/// A bar to an eighth of a column, with a mark at the limit.
fn bar(wcu_per_s: f64) -> String {
    let eighths = (wcu_per_s / LIMIT_WCU_PER_S).clamp(0.0, 1.5) * (BAR * 8) as f64;
    let mut bar = String::new();
    for column in 0..BAR_MAX {
        let filled = (eighths - (column * 8) as f64).clamp(0.0, 8.0);
        let eighth = (1..=8).rev().find(|eighth| f64::from(*eighth) <= filled).unwrap_or(0);
        bar.push(match eighth {
            8 => '█',
            0 if column + 1 == BAR => '│',
            eighth => EIGHTHS[usize::try_from(eighth).unwrap_or(0)],
        });
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_load_and_limit() {
        assert_eq!(bar(0.0).trim(), "│");
        let half = bar(500.0);
        assert_eq!((half.chars().filter(|c| *c == '█').count(), half.chars().count()), (BAR / 2, BAR_MAX));
        assert_eq!(bar(1_000.0).trim_end(), "█".repeat(BAR));
        assert_eq!(bar(99_999.0), "█".repeat(BAR_MAX));
        assert!(bar(515.625).contains("█▌"));
    }
}
