//! Where events go: a running server, or the folder itself.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use hyper::{StatusCode, Uri};
use saltern_core::limits::BULK_BODY_BYTES_MAX;
use serde::Deserialize;
use tokio::time::sleep;

use super::Counts;
use super::source::Piece;
use crate::args::{ConfigArgs, LoadArgs};
use crate::config::Config;
use crate::http::{self, ServerUrl};
use crate::service::Service;

const EVENTS: &str = "/v1/campaign-events";
/// A server that is busy, down or being restarted is tried again this often, with a pause in between.
const ATTEMPTS_MAX: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

pub(super) enum Target {
    Server { url: String, address: ServerUrl, key: Option<String> },
    Folder { name: String, service: Box<Service> },
}

/// What became of a piece.
pub(super) struct Done {
    pub(super) counts: Counts,
    /// Lines of the file, counted from 0, with the reason; the first of many.
    pub(super) rejected: Vec<(u64, String)>,
}

#[derive(Deserialize)]
struct WireDone {
    applied: u64,
    stale: u64,
    rejected: Vec<WireRejected>,
    #[serde(default)]
    rejected_total: Option<u64>,
}

#[derive(Deserialize)]
struct WireRejected {
    index: u64,
    reason: String,
}

impl Target {
    pub(super) async fn open(args: &LoadArgs) -> Result<Self> {
        if let Some(url) = &args.url {
            let address = ServerUrl::parse(url)?;
            return Ok(Self::Server { url: url.clone(), address, key: args.key.clone() });
        }
        let (config, data) = (args.config.clone(), args.data.clone());
        let config = Config::load(&ConfigArgs { config, data, ..ConfigArgs::default() })?;
        let service = Service::open_unserved(&config).await?;
        Ok(Self::Folder { name: service.place(&config), service: Box::new(service) })
    }

    /// What tells one target from another when a load is taken up again.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Server { url, .. } => url.trim_end_matches('/').to_owned(),
            Self::Folder { name, .. } => name.clone(),
        }
    }

    pub(super) async fn close(self) {
        if let Self::Folder { service, .. } = self {
            service.close().await;
        }
    }

    pub(super) async fn send(&self, piece: &Piece) -> Result<Done> {
        let mut done = match self {
            Self::Server { address, key, .. } => post_until_taken(address, key.as_deref(), piece).await?,
            Self::Folder { service, .. } => apply(service, piece).await?,
        };
        for (line, _) in &mut done.rejected {
            *line += piece.first_line;
        }
        Ok(done)
    }
}

/// Events may be sent again whatever has become of them.
async fn post_until_taken(address: &ServerUrl, key: Option<&str>, piece: &Piece) -> Result<Done> {
    let lines = Bytes::from(piece.text.clone());
    for attempt in 1.. {
        let failed = match post(address, key, lines.clone()).await {
            Ok((StatusCode::OK, body)) => return understood(&body),
            Ok((StatusCode::SERVICE_UNAVAILABLE, body)) => format!("the server is not ready: {}", http::reason(&body)),
            Ok((status, body)) => bail!("{status}: {}", http::reason(&body)),
            Err(error) => format!("{error:#}"),
        };
        if attempt >= ATTEMPTS_MAX {
            bail!("{failed}");
        }
        sleep(PAUSE).await;
    }
    bail!("the server did not answer")
}

async fn post(address: &ServerUrl, key: Option<&str>, lines: Bytes) -> Result<(StatusCode, Bytes)> {
    let mut request = http::post_lines(Uri::from_static(EVENTS), lines);
    http::authorize(&mut request, key)?;
    http::over(address.connect().await?, async |mut sender| http::send(&mut sender, request).await).await
}

fn understood(body: &[u8]) -> Result<Done> {
    let done: WireDone = serde_json::from_slice(body).context("not an answer of a Saltern server")?;
    let rejected = done.rejected_total.unwrap_or(done.rejected.len() as u64);
    Ok(Done {
        counts: Counts { applied: done.applied, stale: done.stale, rejected },
        rejected: done.rejected.into_iter().map(|rejected| (rejected.index, rejected.reason)).collect(),
    })
}

async fn apply(service: &Service, piece: &Piece) -> Result<Done> {
    let lines = (0..).zip(piece.text.split(|byte| *byte == b'\n'));
    let lines: Vec<(u64, &[u8])> = lines.filter(|(_, line)| !line.trim_ascii().is_empty()).collect();
    let (too_long, events): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|(_, line)| line.len() > BULK_BODY_BYTES_MAX);
    let texts: Vec<_> = events.iter().map(|(_, line)| *line).collect();
    let applied = service.campaigns.apply(&texts).await?;
    let mut rejected: Vec<_> = applied.rejected.into_iter().map(|r| (events[r.index].0, r.reason)).collect();
    for (index, line) in too_long {
        let reason = format!("longer than {BULK_BODY_BYTES_MAX} bytes");
        service.campaigns.reject(line, &reason).await?;
        rejected.push((index, reason));
    }
    rejected.sort_unstable();
    let counts = Counts { applied: applied.applied, stale: applied.stale, rejected: rejected.len() as u64 };
    Ok(Done { counts, rejected })
}
