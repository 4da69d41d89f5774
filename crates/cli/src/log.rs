//! Structured logs on standard error.

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;

use crate::config::LogFormat;
use crate::printable::Printable;

/// Which log lines are wanted, e.g. `debug` or `saltern_store=trace,info`.
pub(crate) const FILTER_ENV: &str = "SALTERN_LOG";
/// The engine's own progress interests only whoever asks for it.
const FILTER_DEFAULT: &str = "info,fjall=warn,lsm_tree=warn";

pub(crate) fn start(format: LogFormat) -> Result<()> {
    let filter = match std::env::var(FILTER_ENV) {
        Ok(text) => EnvFilter::try_new(&text).with_context(|| format!("{FILTER_ENV}: not a log filter: {text}"))?,
        Err(_) => EnvFilter::new(FILTER_DEFAULT),
    };
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A log that cannot be written must not end the process, as the panic of a failed report about it would.
    let logs = logs.log_internal_errors(false);
    match format {
        LogFormat::Text => {
            logs.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).fmt_fields(escaped()).init();
        }
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(())
}

/// Clients choose ids, and other servers the texts of their errors: neither may forge a line or steer a terminal.
fn escaped() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    let fields = debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{}", Printable(format_args!("{value:?}"))),
        name => write!(writer, "{name}={}", Printable(format_args!("{value:?}"))),
    });
    fields.delimited(" ")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn no_value_forges_a_line() {
        let (lines, hostile) = (Lines::default(), "tea\n2026-11-15 ERROR forged\u{1b}[2J");
        let writer = lines.clone();
        let logs = tracing_subscriber::fmt().with_ansi(false).fmt_fields(escaped()).with_writer(move || writer.clone());
        tracing::subscriber::with_default(logs.finish(), || {
            tracing::info!(conversation = hostile, n = 2, "spread changed");
            tracing::warn!(error = %hostile, "{hostile}");
        });
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.contains(r#"spread changed conversation="tea\n2026-11-15 ERROR forged\u{1b}[2J" n=2"#), "{text}");
    }
}
