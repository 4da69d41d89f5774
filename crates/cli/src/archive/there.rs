//! A pass at a running server, part by part.

use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use hyper::StatusCode;
use saltern_service::conversations::PassReport;
use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::args::ArchiveArgs;
use crate::http::{self, ServerUrl};
use crate::stop::Stop;

#[derive(Serialize)]
struct Order {
    older_than_s: Option<u64>,
    messages_per_s: Option<u32>,
    dry_run: bool,
    sweep_all: bool,
    compact: bool,
}

#[derive(Deserialize)]
struct Answer {
    done: bool,
    due: Option<u64>,
    conversations: u64,
    messages: u64,
    content_bytes: u64,
    objects: u64,
    object_bytes: u64,
    busy: u64,
    failed: Vec<String>,
    orphans_removed: u64,
}

pub(super) async fn archive(url: &str, args: &ArchiveArgs, report: &mut Report) -> Result<()> {
    let mut stop = Stop::listen()?;
    let address = ServerUrl::parse(url)?;
    let order = Order {
        older_than_s: args.older_than.map(|age| age.as_secs()),
        messages_per_s: args.rate,
        dry_run: args.dry_run,
        sweep_all: args.sweep_all,
        compact: args.compact,
    };
    let order = Bytes::from(serde_json::to_vec(&order)?);
    loop {
        let answer = tokio::select! {
            answer = part(&address, args.target.key.as_deref(), order.clone()) => {
                answer.with_context(|| format!("request to {url} failed"))?
            }
            () = stop.requested() => {
                report.total.stopped = true;
                return Ok(());
            }
        };
        report.due = report.due.or(answer.due);
        answer.failed.iter().for_each(|failed| report.failed(failed));
        let PassReport { conversations, messages, content_bytes, objects, object_bytes, .. } = report.total;
        report.total = PassReport {
            // One that a part has not finished is due again in the next.
            conversations: conversations + answer.conversations,
            messages: messages + answer.messages,
            content_bytes: content_bytes + answer.content_bytes,
            objects: objects + answer.objects,
            object_bytes: object_bytes + answer.object_bytes,
            busy: answer.busy,
            failed: answer.failed.len() as u64,
            stopped: false,
        };
        report.orphans += answer.orphans_removed;
        if answer.done {
            return Ok(());
        }
        let so_far = report.total;
        report.progress(&so_far, 0.0);
    }
}

async fn part(address: &ServerUrl, key: Option<&str>, order: Bytes) -> Result<Answer> {
    let stream = address.connect().await?;
    http::over(stream, async |mut sender| {
        let mut request = http::post("/v1/archive".parse()?, order);
        address.address(&mut request, key)?;
        match http::send(&mut sender, request).await? {
            (StatusCode::OK, body) => {
                serde_json::from_slice(&body).context("the answer is not JSON that a Saltern server sends; check --url")
            }
            (status, body) => bail!("{status}: {}", http::reason(&body)),
        }
    })
    .await
}
