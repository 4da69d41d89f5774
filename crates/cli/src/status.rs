//! How long work goes: on a terminal one line that is drawn anew, elsewhere a line now and then.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::out;

const DRAW_EVERY: Duration = Duration::from_millis(200);
const TELL_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct StatusLine {
    terminal: bool,
    last: Instant,
    drawn: bool,
}

impl StatusLine {
    pub(crate) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), last: Instant::now(), drawn: false }
    }

    /// Shows the line if it is time for one.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        let every = if self.terminal { DRAW_EVERY } else { TELL_EVERY };
        if self.last.elapsed() < every {
            return;
        }
        self.last = Instant::now();
        if self.terminal {
            self.drawn = true;
            write(&format!("\r\x1b[K{}", line()));
        } else {
            out::note(line());
        }
    }

    /// Makes room for lines of text.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            write("\r\x1b[K");
        }
    }
}

const BAR: usize = 30;

/// How much of the whole is done.
pub(crate) fn bar(part: f64) -> String {
    let filled = (1..=BAR).filter(|column| *column as f64 <= part * BAR as f64).count();
    format!("{}{} {:>3.0} %", "█".repeat(filled), "░".repeat(BAR - filled), part * 100.0)
}

/// How long the rest takes, if it takes as long as what is done.
pub(crate) fn left(part: f64, seconds: f64) -> String {
    let left = seconds * (1.0 - part) / part.max(0.001);
    let minutes = (left / 60.0).floor();
    format!("{minutes:.0}:{:02.0} left", (left - minutes * 60.0).floor())
}

fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // Nobody there to look: no reason to stop.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
