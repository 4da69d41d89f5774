//! Where the answer comes from: a running server, or the folder itself.

use anyhow::{Context, Result, bail};
use hyper::StatusCode;
use saltern_core::ids::ConversationId;
use saltern_core::layout::Epoch;
use saltern_core::page::{Gap, GapState};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_service::conversations::View;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::args::{ConfigArgs, InspectArgs};
use crate::config::{Config, Mode};
use crate::http::{self, Sender, ServerUrl};
use crate::service::Service;

#[derive(Deserialize)]
struct WireView {
    head_seq: u64,
    stable_through: u64,
    n: u16,
    max_n: u16,
    rate_wcu_per_s: Option<f64>,
    horizon: u64,
    epochs: Vec<WireEpoch>,
}

#[derive(Deserialize)]
struct WireEpoch {
    from_seq: u64,
    n: u16,
}

#[derive(Deserialize)]
struct WirePage {
    gaps: Vec<WireGap>,
}

#[derive(Deserialize)]
struct WireGap {
    from_seq: u64,
    to_seq: u64,
    state: WireState,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WireState {
    Void,
    Pending,
}

pub(super) async fn server(url: &str, key: Option<&str>, conversation: &ConversationId) -> Result<Option<View>> {
    let server = Server { address: ServerUrl::parse(url)?, key };
    let stream = server.address.connect().await?;
    let path = http::conversation_path(conversation.as_str());
    http::over(stream, async |mut sender| {
        let view = server.ask::<WireView>(&mut sender, &path).await?;
        // A conversation that was never written to has no epoch.
        let Some(view) = view.filter(|view| !view.epochs.is_empty()) else { return Ok(None) };
        let page = server.ask::<WirePage>(&mut sender, &format!("{path}/messages")).await?;
        let gaps = page.map(|page| page.gaps).unwrap_or_default();
        Ok(Some(view.understood(gaps)))
    })
    .await
    .with_context(|| format!("request to {url} failed"))
}

struct Server<'a> {
    address: ServerUrl,
    key: Option<&'a str>,
}

impl Server<'_> {
    async fn ask<T: DeserializeOwned>(&self, sender: &mut Sender, path: &str) -> Result<Option<T>> {
        let mut request = http::get(path.parse()?);
        self.address.address(&mut request, self.key)?;
        let (status, body) = http::send(sender, request).await?;
        match status {
            StatusCode::OK => Ok(Some(
                serde_json::from_slice(&body)
                    .context("the answer is not JSON that a Saltern server sends; check --url")?,
            )),
            StatusCode::NOT_FOUND => Ok(None),
            _ => bail!("{status}: {}", http::reason(&body)),
        }
    }
}

impl WireView {
    fn understood(self, gaps: Vec<WireGap>) -> View {
        let epoch = |e: WireEpoch| Epoch { from: SeqNo::clamped(e.from_seq), n: e.n };
        View {
            head_seq: self.head_seq,
            stable_through: self.stable_through,
            n: self.n,
            max_n: self.max_n,
            rate_wcu_per_s: self.rate_wcu_per_s,
            horizon: SeqNo::clamped(self.horizon),
            epochs: self.epochs.into_iter().map(epoch).collect(),
            recent_gaps: gaps.into_iter().filter_map(WireGap::understood).collect(),
        }
    }
}

impl WireGap {
    fn understood(self) -> Option<Gap> {
        let range = SeqRange::new(SeqNo::clamped(self.from_seq), SeqNo::clamped(self.to_seq))?;
        let state = match self.state {
            WireState::Void => GapState::Void,
            WireState::Pending => GapState::Pending,
        };
        Some(Gap { range, state })
    }
}

/// Opens the folder that a server here would use; never makes one.
pub(super) async fn folder(args: &InspectArgs, conversation: &ConversationId) -> Result<Option<View>> {
    let (config, data) = (args.target.config.clone(), args.target.data.clone());
    let config = Config::load(&ConfigArgs { config, data, ..ConfigArgs::default() })?;
    let folder = &config.data.value;
    if config.mode.value == Mode::Embedded
        && std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
    {
        bail!("no data in {}; name the data folder with --data, or a server with --url", folder.display());
    }
    let service = Service::open_unserved(&config).await?;
    let view = service.conversations.view(conversation).await;
    service.close().await;
    Ok(view?)
}
