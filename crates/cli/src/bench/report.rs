//! The outcome, for people and for programs.

use serde::Serialize;

use super::measure::{Comparison, Side};

/// What a measurement of ratios prints.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) bench: &'static str,
    pub(super) runs: u32,
    pub(super) seconds: u32,
    pub(super) content_bytes: u32,
    pub(super) debug_build: bool,
    pub(super) comparisons: Vec<Comparison>,
    pub(super) how: String,
}

impl Report {
    pub(super) fn print(&self, json: bool) -> anyhow::Result<()> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(());
        }
        let header = ["", "ratio", "min..max", "saltern/s", "p50 ms", "p99 ms", "peer/s", "p50 ms", "p99 ms", "errors"];
        let mut rows = vec![header.map(str::to_owned)];
        rows.extend(self.comparisons.iter().map(row));
        print!("{}\n{}\n", table(&rows), self.how);
        Ok(())
    }
}

fn row(comparison: &Comparison) -> [String; 10] {
    let ratio = comparison.ratio;
    let [ours_rate, ours_p50, ours_p99] = side(&comparison.saltern);
    let [peer_rate, peer_p50, peer_p99] = side(&comparison.peer);
    [
        format!("{} / {}", comparison.what, comparison.peer_is),
        format!("{:.2}", ratio.median),
        format!("{:.2}..{:.2}", ratio.min, ratio.max),
        ours_rate,
        ours_p50,
        ours_p99,
        peer_rate,
        peer_p50,
        peer_p99,
        (comparison.saltern.errors + comparison.peer.errors).to_string(),
    ]
}

fn side(side: &Side) -> [String; 3] {
    [thousands(side.per_s), format!("{:.2}", side.p50_ms), format!("{:.2}", side.p99_ms)]
}

/// 1234567.8 as `1,234,568`.
pub(super) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The first column to the left, the others to the right.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        for (i, (cell, width)) in row.iter().zip(widths).enumerate() {
            let cell = if i == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
            out.push_str(&cell);
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped() {
        let grouped = [0.4, 999.0, 1_000.0, 1_234_567.8].map(thousands);
        assert_eq!(grouped, ["0", "999", "1,000", "1,234,568"]);
    }

    #[test]
    fn columns_line_up() {
        let rows = [["", "a"], ["first", "1,000"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "           a\nfirst  1,000\n");
    }
}
