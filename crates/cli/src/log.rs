//! Structured logs on standard error.

use anyhow::{Context, Result};
use tracing_subscriber::EnvFilter;

use crate::config::LogFormat;

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
    match format {
        LogFormat::Text => logs.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
    Ok(())
}
