//! Standard output and standard error. Either may be closed or a full disk, which is a failure and never a panic.

use std::fmt::Display;
use std::io::{self, Write as _};

use anyhow::{Context as _, Result};

use crate::printable::Printable;

/// A line of a command's result. That nobody reads it is a failure, because the command's job was to say it.
pub(crate) fn line(text: impl Display) -> Result<()> {
    print(format_args!("{text}\n"))
}

/// The same for text that ends its own lines.
pub(crate) fn print(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    written.context("cannot write to standard output")
}

/// A line for people on standard error. That nobody reads it is no reason to stop.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{}", Printable(text));
}
