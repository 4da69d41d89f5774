//! `bench append`: durable appends over HTTP, and the store alone.

use std::time::Duration;

use anyhow::{Result, bail};
use hyper::StatusCode;

use super::child::Server;
use super::load::Load;
use super::measure::Comparison;
use super::messages::{Messages, Paths, appends};
use super::report::Report;
use super::{WARM_UP, take_turns, without_http};
use crate::args::{AppendArgs, MeasureArgs};
use crate::http;
use crate::scratch::Scratch;

pub(super) async fn append(args: &AppendArgs) -> Result<()> {
    let measure = &args.measure;
    let scratch = Scratch::create(measure.scratch.data.as_deref())?;
    let messages = Messages::new(measure.scratch.content_bytes);
    let mut comparisons = over_http(args, &scratch, &messages).await?;
    if args.writers > 0 {
        comparisons.push(without_http::compare(args, &scratch).await?);
    }
    let report = Report {
        bench: "append",
        runs: measure.runs,
        seconds: measure.seconds,
        content_bytes: Some(measure.scratch.content_bytes),
        debug_build: cfg!(debug_assertions),
        comparisons,
        how: how(args),
    };
    report.print(measure.scratch.json)
}

fn how(args: &AppendArgs) -> String {
    let MeasureArgs { runs, seconds, scratch } = &args.measure;
    let mut how = format!(
        "Medians of {runs} interleaved runs of {seconds} s per side; messages of {} bytes of content over {} conversations. \
         HTTP: load and server are two processes on loopback, one request at a time per connection; the trivial endpoint \
         reads the same request and answers with as many bytes.",
        scratch.content_bytes, args.conversations
    );
    if args.writers > 0 {
        how.push_str(
            " Without HTTP: the writers put claim and row into the store; the plain file gets the same bytes, batched by \
             one thread with fdatasync.",
        );
    }
    how
}

async fn over_http(args: &AppendArgs, scratch: &Scratch, messages: &Messages) -> Result<Vec<Comparison>> {
    let mut comparisons = Vec::new();
    let paths = Paths::new(args.conversations, "")?;
    let saltern = Server::saltern(scratch.path())?;
    let response_bytes = probe(&saltern, &paths, messages).await?;
    let trivial = Server::trivial(scratch.path(), StatusCode::CREATED.as_u16(), response_bytes)?;
    for &connections in &args.connections {
        let load = |server: &Server, duration| {
            let load = Load { addr: server.addr, connections, duration, expect: StatusCode::CREATED };
            load.run(|connection| appends(&paths, messages, u64::from(connection)))
        };
        let duration = Duration::from_secs(args.measure.seconds.into());
        let what = format!("append over HTTP, {connections} connections");
        load(&saltern, WARM_UP).await?;
        load(&trivial, WARM_UP).await?;
        let runs = take_turns(
            args.measure.runs,
            &what,
            async || load(&saltern, duration).await,
            async || load(&trivial, duration).await,
        );
        comparisons.push(Comparison::of(what.clone(), "trivial endpoint", &runs.await?));
    }
    Ok(comparisons)
}

/// One real append: how long is its answer?
async fn probe(saltern: &Server, paths: &Paths, messages: &Messages) -> Result<usize> {
    let request = http::post(paths.nth(0), messages.one());
    let answer =
        http::over(http::connect(saltern.addr).await?, async |mut sender| http::send(&mut sender, request).await);
    match answer.await? {
        (StatusCode::CREATED, body) => Ok(body.len()),
        (status, body) => bail!("the server answered {status}: {}", String::from_utf8_lossy(&body)),
    }
}
