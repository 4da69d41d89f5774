//! `saltern serve`: opens, listens, and ends in order.

use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow};
use prometheus_client::registry::Registry;
use saltern_server::{Server, ServerConfig, Services};
use saltern_service::upkeep::Upkeep;
use saltern_store::embedded::EngineFailure;
use tokio_util::sync::CancellationToken;

use crate::archive::{self, Schedule};
use crate::config::Config;
use crate::open_files;
use crate::out;
use crate::service::{Service, millis};
use crate::stop::Stop;

/// Serves until a signal, or until the store fails.
pub(crate) async fn serve(config: &Config) -> Result<()> {
    let mut stop = Stop::listen()?;
    let open_files = open_files::raise_limit();
    let service = Service::open(config).await?;
    let failure = Arc::new(OnceLock::new());
    let upkeep = Arc::new(service.upkeep(config));
    let server = match bind(config, &service, open_files, Arc::clone(&upkeep), Arc::clone(&failure)).await {
        Ok(server) => server,
        Err(e) => {
            service.close().await;
            return Err(e);
        }
    };
    let shutdown = async {
        tokio::select! {
            () = stop.requested() => {}
            failed = service.failure() => {
                // What is under way cannot succeed any more. Its outcome is unknown, and is answered so.
                service.conversations.abort();
                service.campaigns.abort();
                let _ = failure.set(failed);
            }
        }
    };
    let no_more_passes = CancellationToken::new();
    let passes = tokio::spawn(archive::on_schedule(upkeep, Schedule::of(config), no_more_passes.clone()));
    server.run(shutdown).await;
    no_more_passes.cancel();
    if let Err(error) = passes.await {
        tracing::error!(%error, "passes of the archive have failed");
    }
    service.close().await;
    failure.get().map_or(Ok(()), |failed| Err(explained(failed, config)))
}

/// What to do about a store that has failed for good.
pub(crate) fn explained(failed: &EngineFailure, config: &Config) -> anyhow::Error {
    match failed {
        EngineFailure::Full(_) => {
            anyhow!("the disk of {} is full; free space and start again", config.data.value.display())
        }
        failed => anyhow::Error::new(failed.clone()).context("the store has failed; start again"),
    }
}

async fn bind(
    config: &Config,
    service: &Service,
    open_files: u64,
    upkeep: Arc<Upkeep>,
    failure: Arc<OnceLock<EngineFailure>>,
) -> Result<Server> {
    let usual = ServerConfig::new(config.listen.value);
    let server_config = ServerConfig {
        connections_max: usual.connections_max.min(open_files::connections_max(open_files)),
        api_keys: config.api_keys.clone(),
        requests_max: config.limits.requests_max.value.get() as usize,
        shutdown_grace: millis(config.timeouts.shutdown_ms.value.get()),
        ..usual
    };
    let mut metrics = Registry::with_prefix("saltern");
    service.register_metrics(&mut metrics);
    let missing = service.watch_readiness();
    let disk = service.watch_disk().context("cannot watch the disk")?;
    let ready = Arc::new(move || match (failure.get(), &*missing.borrow()) {
        (Some(failed), _) => Err(failed.to_string()),
        (None, Some(missing)) => Err(missing.clone()),
        (None, None) => disk.answers(),
    });
    let (conversations, campaigns) = (service.conversations.clone(), service.campaigns.clone());
    let services = Services { conversations, campaigns, upkeep };
    let server = Server::bind(server_config, services, ready, metrics).await?;
    let url = format!("http://{}", server.local_addr());
    service.announce(&url).context("cannot write into the data folder")?;
    // That nobody reads the line is no reason not to serve.
    let _ = out::line(format_args!("saltern is ready on {url} (data in {})", service.place(config)));
    Ok(server)
}
