//! Measurements, each as a ratio against a peer in the same run.
//!
//! Over HTTP both sides have the same shape: the load in this process, the server in a child process, loopback between.
//! Runs of the two sides take turns, so that whatever else the machine does falls on both.

mod append;
mod archive;
mod boosts;
mod child;
#[cfg(feature = "cloud")]
mod cloud;
mod history;
mod load;
mod measure;
mod messages;
mod partitions;
mod plain_file;
mod pour;
mod processors;
mod report;
mod trivial;
mod volume;
mod without_http;

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

pub(crate) use self::boosts::serve_redis_boosts;
use anyhow::Result;
pub(crate) use trivial::serve_trivial;

use self::measure::Measured;
use crate::args::BenchCommand;
use crate::out;
use crate::stop::droppable;

/// Load on each side before anything is measured: connections, caches and conversations exist by then.
const WARM_UP: Duration = Duration::from_millis(500);
/// Between runs, for what the side before may still have to do.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) async fn bench(command: &BenchCommand) -> Result<()> {
    if cfg!(debug_assertions) {
        out::note(format_args!("warning: this is a debug build; its figures say nothing. Use cargo run --release"));
    }
    let work = async {
        match command {
            BenchCommand::Append(args) => append::append(args).await,
            BenchCommand::Archive(args) => archive::archive(args).await,
            BenchCommand::History(args) => history::history(args).await,
            BenchCommand::Volume(args) => volume::volume(args).await,
            BenchCommand::Partitions(args) => partitions::partitions(args).await,
            #[cfg(feature = "cloud")]
            BenchCommand::Tickets(args) => cloud::tickets(args).await,
            #[cfg(feature = "cloud")]
            BenchCommand::Requests(args) => cloud::requests(args).await,
            BenchCommand::Boosts(args) => boosts::boosts(args).await,
            BenchCommand::ServeRedisBoosts(args) => serve_redis_boosts(args).await,
            BenchCommand::ServeTrivial(args) => serve_trivial(args).await,
        }
    };
    droppable(work).await
}

/// Runs two sides in turns; who begins changes from run to run.
async fn take_turns(
    runs: u32,
    what: &str,
    mut ours: impl AsyncFnMut() -> Result<Measured>,
    mut peer: impl AsyncFnMut() -> Result<Measured>,
) -> Result<Vec<(Measured, Measured)>> {
    let mut all = Vec::new();
    for run in 0..runs {
        progress(&format!("{what}: run {} of {runs}", run + 1));
        let pair = if run % 2 == 0 {
            let ours = ours().await?;
            tokio::time::sleep(PAUSE).await;
            (ours, peer().await?)
        } else {
            let peer = peer().await?;
            tokio::time::sleep(PAUSE).await;
            (ours().await?, peer)
        };
        tokio::time::sleep(PAUSE).await;
        all.push(pair);
    }
    progress("");
    Ok(all)
}

/// A line on the terminal that the next one replaces; nothing where no one watches.
fn progress(line: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
        let _ = std::io::stderr().flush();
    }
}
