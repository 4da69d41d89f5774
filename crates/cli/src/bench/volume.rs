//! `bench volume`: does the rate hold, and does memory stay bounded, when there is a lot?

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use saltern_core::rng::SplitMix64;
use serde::Serialize;

use super::child::{Memory, Server};
use super::messages::{Messages, Paths};
use super::pour::Pour;
use super::progress;
use crate::args::VolumeArgs;
use crate::http;
use crate::out;
use crate::scratch::Scratch;
use crate::table::{table, thousands};

const STEP: u64 = 1_000_000;

/// A stretch of the way.
#[derive(Debug, Clone, Serialize)]
struct Stretch {
    /// Messages by its end.
    messages: u64,
    per_s: f64,
    resident_kib: u64,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    bench: &'static str,
    messages: u64,
    conversations: u32,
    batch: u32,
    connections: u32,
    content_bytes: u32,
    debug_build: bool,
    stretches: &'a [Stretch],
    /// The last stretch's rate over the first's.
    ratio_last_to_first: f64,
    per_s: f64,
    resident_highest_kib: u64,
    /// Requests that the server turned away for a moment.
    retries: u64,
}

pub(super) async fn volume(args: &VolumeArgs) -> Result<()> {
    let scratch = Scratch::create(args.scratch.data.as_deref())?;
    let server = Server::saltern(scratch.path())?;
    let batch = u64::from(args.batch);
    let (paths, messages) = (paths(args)?, Messages::new(args.scratch.content_bytes));
    let conversations = u64::from(args.conversations);
    let way = Arc::new(Way::new(args.messages, server.memory()));
    let (total, marks) = (args.messages, Arc::clone(&way));
    let size_of = move |n: u64| batch.min(total - n * batch);
    let pour = Pour {
        addr: server.addr,
        connections: args.connections,
        requests: total.div_ceil(batch),
        make: move |n| {
            let path = paths.nth(SplitMix64::new(n).below(conversations));
            let body = if batch == 1 { messages.one() } else { messages.batch(size_of(n)) };
            http::post(path, body)
        },
        done: move |n| marks.passed(size_of(n)),
    };
    let retries = pour.run().await?;
    progress("");
    let stretches = way.stretches();
    let (Some(first), Some(last)) = (stretches.first(), stretches.last()) else { bail!("nothing was appended") };
    let report = Report {
        bench: "volume",
        messages: total,
        conversations: args.conversations,
        batch: args.batch,
        connections: args.connections,
        content_bytes: args.scratch.content_bytes,
        debug_build: cfg!(debug_assertions),
        ratio_last_to_first: last.per_s / first.per_s,
        per_s: total as f64 / way.elapsed().as_secs_f64(),
        resident_highest_kib: server.memory().resident_kib()?.highest,
        stretches: &stretches,
        retries,
    };
    report.print(args.scratch.json)
}

fn paths(args: &VolumeArgs) -> Result<Paths> {
    Paths::new(args.conversations, if args.batch == 1 { "" } else { "/batch" })
}

/// How far it has come, and when it passed its marks.
struct Way {
    started: Instant,
    total: u64,
    step: u64,
    done: AtomicU64,
    /// Not the server itself: aborted tasks drop this some time later, when the folder of the server is already gone.
    memory: Memory,
    marks: Mutex<Vec<(u64, Duration, u64)>>,
}

impl Way {
    fn new(total: u64, memory: Memory) -> Self {
        let step = if total >= 2 * STEP { STEP } else { (total / 10).max(1) };
        Self { started: Instant::now(), total, step, done: AtomicU64::new(0), memory, marks: Mutex::default() }
    }

    fn passed(&self, messages: u64) {
        let before = self.done.fetch_add(messages, Ordering::Relaxed);
        let now = before + messages;
        if now / self.step == before / self.step {
            return;
        }
        let resident = self.memory.resident_kib().map_or(0, |resident| resident.now);
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.push((now, self.started.elapsed(), resident));
        progress(&format!(
            "{} of {} messages, {} MiB",
            thousands(now as f64),
            thousands(self.total as f64),
            resident / 1024
        ));
    }

    fn elapsed(&self) -> Duration {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        marks.last().map_or_else(|| self.started.elapsed(), |(_, at, _)| *at)
    }

    fn stretches(&self) -> Vec<Stretch> {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        marks.sort_by_key(|(messages, ..)| *messages);
        let (mut from, mut since) = (0, Duration::ZERO);
        let mut stretches = Vec::new();
        for (messages, at, resident_kib) in marks {
            let seconds = at.saturating_sub(since).as_secs_f64().max(1e-6);
            stretches.push(Stretch { messages, per_s: (messages - from) as f64 / seconds, resident_kib });
            (from, since) = (messages, at);
        }
        stretches
    }
}

impl Report<'_> {
    fn print(&self, json: bool) -> Result<()> {
        if json {
            out::line(serde_json::to_string(self)?)?;
            return Ok(());
        }
        let mut rows = vec![["messages", "per s", "resident MiB"].map(str::to_owned)];
        for stretch in self.stretches {
            let resident = thousands(stretch.resident_kib as f64 / 1_024.0);
            rows.push([thousands(stretch.messages as f64), thousands(stretch.per_s), resident]);
        }
        out::line(table(&rows))?;
        out::line(format_args!("last stretch / first: {:.2}", self.ratio_last_to_first))?;
        out::line(format_args!("overall: {} messages/s", thousands(self.per_s)))?;
        out::line(format_args!("resident at most: {} MiB", thousands(self.resident_highest_kib as f64 / 1_024.0)))?;
        out::line(format_args!("turned away for a moment: {} requests\n", self.retries))?;
        out::line(format_args!(
            "{} messages of {} bytes of content, {} per request, over {} connections into {} conversations chosen at \
             random; every message durable before its request is answered. Load and server are two processes.",
            thousands(self.messages as f64),
            self.content_bytes,
            self.batch,
            self.connections,
            thousands(self.conversations.into())
        ))?;
        Ok(())
    }
}
