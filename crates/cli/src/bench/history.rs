//! `bench history`: pages of 20, newest and older.

use std::time::Duration;

use anyhow::{Result, bail};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, StatusCode, Uri};
use saltern_core::limits::{BATCH_MESSAGES_MAX, PAGE_LIMIT_DEFAULT};
use saltern_core::rng::SplitMix64;

use super::child::Server;
use super::load::Load;
use super::measure::Comparison;
use super::messages::{Messages, Paths};
use super::pour::Pour;
use super::report::Report;
use super::{WARM_UP, progress, take_turns};
use crate::args::HistoryArgs;
use crate::http;
use crate::scratch::Scratch;

const PRELOAD_CONNECTIONS: u32 = 8;

pub(super) async fn history(args: &HistoryArgs) -> Result<()> {
    let measure = &args.measure;
    let scratch = Scratch::create(measure.scratch.data.as_deref())?;
    let saltern = Server::saltern(scratch.path())?;
    preload(args, &saltern).await?;
    let pages = Pages { newest: Paths::new(args.conversations, "")?, messages: args.messages.into() };
    let response_bytes = pages.probe(&saltern).await?;
    let trivial = Server::trivial(scratch.path(), StatusCode::OK.as_u16(), response_bytes)?;
    let mut comparisons = Vec::new();
    for &connections in &args.connections {
        let mixed = format!("{}% newest", args.newest);
        for (kind, newest) in [("newest", 100), ("older", 0), (mixed.as_str(), args.newest)] {
            let load = |server: &Server, duration| {
                let load = Load { addr: server.addr, connections, duration, expect: StatusCode::OK };
                load.run(|connection| pages.requests(newest, connection.into()))
            };
            let what = format!("{kind} pages of {PAGE_LIMIT_DEFAULT}, {connections} connections");
            let duration = Duration::from_secs(measure.seconds.into());
            load(&saltern, WARM_UP).await?;
            load(&trivial, WARM_UP).await?;
            let runs = take_turns(
                measure.runs,
                &what,
                async || load(&saltern, duration).await,
                async || load(&trivial, duration).await,
            );
            comparisons.push(Comparison::of(what.clone(), "trivial endpoint", &runs.await?));
        }
    }
    let how = format!(
        "Medians of {} interleaved runs of {} s per side; {} conversations of {} messages with {} bytes of content, chosen \
         at random, older pages at a random place. Load and server are two processes on loopback, one request at a time \
         per connection; the trivial endpoint answers with as many bytes ({response_bytes}).",
        measure.runs, measure.seconds, args.conversations, args.messages, measure.scratch.content_bytes
    );
    let report = Report {
        bench: "history",
        runs: measure.runs,
        seconds: measure.seconds,
        content_bytes: Some(measure.scratch.content_bytes),
        debug_build: cfg!(debug_assertions),
        comparisons,
        how,
    };
    report.print(measure.scratch.json)
}

async fn preload(args: &HistoryArgs, saltern: &Server) -> Result<()> {
    progress("filling the conversations");
    let paths = Paths::new(args.conversations, "/batch")?;
    let messages = Messages::new(args.measure.scratch.content_bytes);
    let each = u64::from(args.messages);
    let batch = each.min(BATCH_MESSAGES_MAX as u64 / 5);
    let per_conversation = each.div_ceil(batch);
    let conversations = u64::from(args.conversations);
    let pour = Pour {
        addr: saltern.addr,
        connections: PRELOAD_CONNECTIONS,
        requests: per_conversation * conversations,
        make: move |n| {
            let left = each - n / conversations * batch;
            http::post(paths.nth(n), messages.batch(batch.min(left)))
        },
        done: |_| {},
    };
    pour.run().await?;
    progress("");
    Ok(())
}

struct Pages {
    newest: Paths,
    messages: u64,
}

impl Pages {
    /// An endless supply of page requests, `newest` of 100 for the newest page.
    fn requests(&self, newest: u32, seed: u64) -> impl FnMut() -> Request<Full<Bytes>> + use<> {
        let (paths, messages, mut rng) = (self.newest.clone(), self.messages, SplitMix64::new(seed));
        let full = PAGE_LIMIT_DEFAULT as u64;
        move || {
            let path = paths.any(&mut rng);
            if rng.below(100) < u64::from(newest) {
                return http::get(path);
            }
            // Anywhere that leaves a full page.
            let before = full + 1 + rng.below(messages - full);
            http::get(format!("{path}?before_seq={before}").parse::<Uri>().unwrap_or(path))
        }
    }

    /// How long is the answer with a full page?
    async fn probe(&self, saltern: &Server) -> Result<usize> {
        let request = http::get(self.newest.nth(0));
        let answer =
            http::over(http::connect(saltern.addr).await?, async |mut sender| http::send(&mut sender, request).await);
        let (status, body) = answer.await?;
        let page: serde_json::Value = serde_json::from_slice(&body)?;
        match page["messages"].as_array() {
            Some(messages) if messages.len() == PAGE_LIMIT_DEFAULT => Ok(body.len()),
            _ => bail!("the server answered {status}, not with a full page: {}", String::from_utf8_lossy(&body)),
        }
    }
}
