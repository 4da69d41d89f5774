//! How a pass goes, and what came of it.

use std::time::Instant;

use anyhow::Result;
use saltern_service::conversations::PassReport;
use serde::Serialize;

use crate::args::ArchiveArgs;
use crate::out;
use crate::status::{StatusLine, bar, left};
use crate::table::thousands;

pub(super) struct Report {
    /// Conversations that were due when it began.
    pub(super) due: Option<u64>,
    pub(super) total: PassReport,
    pub(super) orphans: u64,
    dry_run: bool,
    json: bool,
    began: Instant,
    status: StatusLine,
}

#[derive(Serialize)]
struct Summary {
    dry_run: bool,
    conversations: u64,
    messages: u64,
    content_bytes: u64,
    objects: u64,
    object_bytes: u64,
    busy: u64,
    failed: u64,
    orphans_removed: u64,
    stopped: bool,
    dollars_once: f64,
    dollars_saved_per_month: f64,
    seconds: f64,
}

impl Report {
    pub(super) fn new(args: &ArchiveArgs) -> Self {
        Self {
            due: None,
            total: PassReport::default(),
            orphans: 0,
            dry_run: args.dry_run,
            json: args.json,
            began: Instant::now(),
            status: StatusLine::new(),
        }
    }

    /// `part`: how much of the conversation at hand is done.
    pub(super) fn progress(&mut self, so_far: &PassReport, part: f64) {
        let (due, seconds) = (self.due, self.began.elapsed().as_secs_f64().max(0.001));
        self.status.show(|| {
            let [messages, rate] = [so_far.messages as f64, so_far.messages as f64 / seconds].map(thousands);
            match due.filter(|due| *due > 0) {
                Some(due) => {
                    let part = ((so_far.conversations as f64 + part) / due as f64).min(1.0);
                    format!("{}  {messages} messages  {rate}/s  {}", bar(part), left(part, seconds))
                }
                None => format!("{messages} messages  {rate}/s"),
            }
        });
    }

    pub(super) fn failed(&mut self, line: &str) {
        self.status.clear();
        out::note(format_args!("failed: {line}"));
    }

    pub(super) fn end(&mut self) -> Result<()> {
        self.status.clear();
        let (total, estimate) = (self.total, self.total.estimate());
        let seconds = self.began.elapsed().as_secs_f64();
        if self.json {
            let summary = Summary {
                dry_run: self.dry_run,
                conversations: total.conversations,
                messages: total.messages,
                content_bytes: total.content_bytes,
                objects: total.objects,
                object_bytes: total.object_bytes,
                busy: total.busy,
                failed: total.failed,
                orphans_removed: self.orphans,
                stopped: total.stopped,
                dollars_once: estimate.dollars_once,
                dollars_saved_per_month: estimate.dollars_per_month,
                seconds,
            };
            out::line(serde_json::to_string(&summary)?)?;
            return Ok(());
        }
        let [messages, bytes, objects, packed] =
            [total.messages, total.content_bytes, total.objects, total.object_bytes].map(|n| thousands(n as f64));
        let what =
            format!("{messages} messages with {bytes} bytes of content, into {objects} objects of {packed} bytes");
        if self.dry_run {
            out::line(format_args!("would archive {what}"))?;
            out::line(worth(estimate.dollars_once, estimate.dollars_per_month))?;
        } else {
            let rate = thousands(total.messages as f64 / seconds.max(0.001));
            out::line(format_args!("archived {what} ({seconds:.1} s, {rate} messages/s)"))?;
        }
        if self.orphans > 0 {
            out::line(format_args!("removed {} objects that nothing referred to", thousands(self.orphans as f64)))?;
        }
        if total.busy > 0 {
            out::line(format_args!(
                "left {} conversations to the processes that are archiving them",
                thousands(total.busy as f64)
            ))?;
        }
        Ok(())
    }
}

fn worth(once: f64, per_month: f64) -> String {
    let prices = "at AWS's list prices, on demand in us-east-1,";
    if per_month <= 0.0 {
        return format!("{prices} it would cost ${once:.2} and save nothing");
    }
    let months = (once / per_month).ceil();
    format!(
        "{prices} it would cost ${once:.2} once and save ${per_month:.2} a month: paid off after {months:.0} months"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_is_worth_is_told_plainly() {
        assert!(worth(10.0, 4.0).ends_with("cost $10.00 once and save $4.00 a month: paid off after 3 months"));
        assert!(worth(0.5, -1.0).ends_with("it would cost $0.50 and save nothing"));
    }
}
