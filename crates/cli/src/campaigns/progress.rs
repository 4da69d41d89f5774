//! How a load goes: a bar, the rate, and the time left.

use std::time::{Duration, Instant};

use super::source::Meter;
use crate::status::{StatusLine, bar, left};
use crate::table::thousands;

pub(super) struct Progress {
    meter: Meter,
    began: Instant,
    first_line: u64,
    status: StatusLine,
}

impl Progress {
    pub(super) fn new(meter: Meter, first_line: u64) -> Self {
        Self { meter, began: Instant::now(), first_line, status: StatusLine::new() }
    }

    pub(super) fn show(&mut self, lines: u64) {
        let Self { meter, began, first_line, status } = self;
        status.show(|| line(meter.read(), meter.total, lines, lines - *first_line, began.elapsed()));
    }

    /// Makes room for lines of text.
    pub(super) fn clear_for(&mut self, lines: usize) {
        if lines > 0 {
            self.end();
        }
    }

    pub(super) fn end(&mut self) {
        self.status.clear();
    }
}

fn line(read: u64, total: u64, lines: u64, lines_now: u64, elapsed: Duration) -> String {
    let part = if total == 0 { 1.0 } else { (read as f64 / total as f64).min(1.0) };
    let seconds = elapsed.as_secs_f64().max(0.001);
    let rate = thousands(lines_now as f64 / seconds);
    format!("{}  {} lines  {rate}/s  {}", bar(part), thousands(lines as f64), left(part, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_share_rate_and_time_left() {
        let shown = line(250, 1_000, 60_000, 50_000, Duration::from_secs(25));
        assert!(shown.ends_with(" 25 %  60,000 lines  2,000/s  1:15 left"), "{shown}");
        assert_eq!(shown.chars().filter(|c| *c == '█').count(), 30 / 4);
        assert!(line(0, 0, 0, 0, Duration::ZERO).contains("100 %"));
    }
}
