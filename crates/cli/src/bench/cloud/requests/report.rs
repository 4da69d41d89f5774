//! The outcome, for people and for programs.

use anyhow::Result;
use saltern_core::limits::PAGE_LIMIT_DEFAULT;
use serde::Serialize;

use super::subject::BATCH;
use super::tally::Tally;
use crate::args::RequestsArgs;
use crate::out;
use crate::table::{table, thousands};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operation {
    Append,
    AppendBatch,
    /// By a server that has not seen the conversation before.
    FirstNewestPage,
    NewestPage,
    OlderPage,
}

impl Operation {
    fn name(self) -> String {
        match self {
            Self::Append => "append".into(),
            Self::AppendBatch => format!("append, batch of {BATCH}"),
            Self::FirstNewestPage => "newest page, first on a server".into(),
            Self::NewestPage => "newest page".into(),
            Self::OlderPage => "older page".into(),
        }
    }
}

/// All that so many operations of one kind have asked for.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    pub(super) operation: Operation,
    pub(super) n: u16,
    pub(super) operations: u32,
    /// Control records written to move the horizon on.
    pub(super) leases: u64,
    #[serde(flatten)]
    pub(super) asked: Tally,
}

#[derive(Debug, Serialize)]
pub(super) struct Report {
    bench: &'static str,
    lines: Vec<Line>,
    how: String,
}

impl Report {
    pub(super) fn new(args: &RequestsArgs, lines: Vec<Line>) -> Self {
        let messages = thousands(args.messages.into());
        let how = format!(
            "Means per operation, as DynamoDB tells them; messages of 100 bytes of content, pages of {PAGE_LIMIT_DEFAULT}, \
             no rows from memory. Appends: {messages} messages by a server from its start, with its one look for the head \
             and all of its leases. Pages: {} of each kind by a server that knows the layout, and the first of servers \
             that do not.",
            thousands(args.pages.into())
        );
        Self { bench: "requests", lines, how }
    }

    pub(super) fn print(&self, json: bool) -> Result<()> {
        if json {
            out::line(serde_json::to_string(self)?)?;
            return Ok(());
        }
        let header = ["", "N", "requests", "PutItem", "GetItem", "Query", "WCU", "RCU", "leases"];
        let mut rows = vec![header.map(str::to_owned)];
        rows.extend(self.lines.iter().map(row));
        out::print(format_args!("{}\n{}\n", table(&rows), self.how))?;
        Ok(())
    }
}

fn row(line: &Line) -> [String; 9] {
    let Tally { puts, gets, queries, write_units, read_units } = line.asked;
    let each = |total: f64| format!("{:.2}", total / f64::from(line.operations.max(1)));
    let count = |total: u64| each(total as f64);
    [
        line.operation.name(),
        line.n.to_string(),
        count(line.asked.calls()),
        count(puts),
        count(gets),
        count(queries),
        each(write_units),
        each(read_units),
        count(line.leases),
    ]
}
