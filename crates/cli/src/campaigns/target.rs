//! Where events go: a running server, or the store itself.

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use hyper::{StatusCode, Uri};
use saltern_core::limits::BULK_BODY_BYTES_MAX;
use saltern_service::campaigns::CampaignError;
use serde::Deserialize;

use super::Counts;
use super::source::Piece;
use crate::args::{ConfigArgs, TargetArgs};
use crate::config::Config;
use crate::http::{self, ServerUrl};
#[cfg(feature = "kafka")]
use crate::serve;
use crate::service::Service;

const EVENTS: &str = "/v1/campaign-events";

pub(super) enum Target {
    Server { url: String, address: ServerUrl, key: Option<String> },
    Store { config: Box<Config>, service: Box<Service> },
}

/// What became of a piece.
pub(super) struct Done {
    pub(super) counts: Counts,
    /// Lines of the file, counted from 0, with the reason; the first of many.
    pub(super) rejected: Vec<(u64, String)>,
}

/// Events may be sent again whatever has become of them.
pub(super) struct NotTaken {
    pub(super) error: anyhow::Error,
    /// Busy, down or being restarted: worth another attempt, later.
    pub(super) passing: bool,
}

impl NotTaken {
    fn passing(error: anyhow::Error) -> Self {
        Self { error, passing: true }
    }

    fn lasting(error: anyhow::Error) -> Self {
        Self { error, passing: false }
    }
}

impl From<CampaignError> for NotTaken {
    fn from(error: CampaignError) -> Self {
        let passing = matches!(error, CampaignError::Unavailable(_));
        Self { error: error.into(), passing }
    }
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
    pub(super) async fn open(args: &TargetArgs) -> Result<Self> {
        if let Some(url) = &args.url {
            let address = ServerUrl::parse(url)?;
            return Ok(Self::Server { url: url.clone(), address, key: args.key.clone() });
        }
        let (config, data) = (args.config.clone(), args.data.clone());
        let config = Config::load(&ConfigArgs { config, data, ..ConfigArgs::default() })?;
        let service = Service::open_present(&config).await?;
        Ok(Self::Store { config: Box::new(config), service: Box::new(service) })
    }

    /// What tells one target from another when a load is taken up again.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Server { url, .. } => url.trim_end_matches('/').to_owned(),
            Self::Store { config, service } => service.place(config),
        }
    }

    pub(super) async fn close(self) {
        if let Self::Store { service, .. } = self {
            service.close().await;
        }
    }

    pub(super) async fn send(&self, piece: &Piece) -> Result<Done, NotTaken> {
        let mut done = match self {
            Self::Server { address, key, .. } => post(address, key.as_deref(), piece).await?,
            Self::Store { service, .. } => apply(service, piece).await?,
        };
        for (line, _) in &mut done.rejected {
            *line += piece.first_line;
        }
        Ok(done)
    }
}

/// For whoever goes on for as long as it is let.
#[cfg(feature = "kafka")]
impl Target {
    /// Resolves when a store of our own has failed for good.
    pub(super) async fn failure(&self) -> anyhow::Error {
        match self {
            Self::Server { .. } => std::future::pending().await,
            Self::Store { config, service } => serve::explained(&service.failure().await, config),
        }
    }

    pub(super) fn register_metrics(&self, metrics: &mut prometheus_client::registry::Registry) {
        if let Self::Store { service, .. } = self {
            service.register_metrics(metrics);
        }
    }
}

async fn post(address: &ServerUrl, key: Option<&str>, piece: &Piece) -> Result<Done, NotTaken> {
    let mut request = http::post_lines(Uri::from_static(EVENTS), Bytes::from(piece.text.clone()));
    address.address(&mut request, key).map_err(NotTaken::lasting)?;
    let connection = address.connect().await.map_err(NotTaken::passing)?;
    let answer = http::over(connection, async |mut sender| http::send(&mut sender, request).await).await;
    match answer.map_err(NotTaken::passing)? {
        (StatusCode::OK, body) => understood(&body).map_err(NotTaken::lasting),
        (status, body) => {
            Err(NotTaken { error: anyhow!("{status}: {}", http::reason(&body)), passing: may_pass(status) })
        }
    }
}

/// Whether the same request may be taken later: what the server could not do, or a proxy before it.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

fn understood(body: &[u8]) -> Result<Done> {
    let done: WireDone =
        serde_json::from_slice(body).context("the answer is not JSON that a Saltern server sends; check --url")?;
    let rejected = done.rejected_total.unwrap_or(done.rejected.len() as u64);
    Ok(Done {
        counts: Counts { applied: done.applied, stale: done.stale, rejected },
        rejected: done.rejected.into_iter().map(|rejected| (rejected.index, rejected.reason)).collect(),
    })
}

async fn apply(service: &Service, piece: &Piece) -> Result<Done, NotTaken> {
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
