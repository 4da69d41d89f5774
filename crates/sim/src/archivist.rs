//! Passes of the archive, on any server, each of which may end with it or at whatever it is waiting for.

use std::sync::Arc;
use std::time::Duration;

use saltern_service::conversations::{PassOptions, PassReport};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::world::World;

/// Everything is old enough.
const OPTIONS: PassOptions = PassOptions { older_than: Duration::ZERO, messages_per_s: None, dry_run: false };

/// Passes until the run is over.
pub(crate) async fn archive(world: Arc<World>) {
    let mut rng = world.rng(2);
    while !world.over() {
        sleep(Duration::from_millis(rng.below(1_200))).await;
        let server = usize::try_from(rng.below(world.plan.servers as u64)).unwrap_or(0);
        let patience = Duration::from_millis(if rng.chance_per_mille(400) { rng.below(300) } else { 4_000 });
        let killed = world.killed();
        // In this order always: the same seed is the same run.
        let ended = tokio::select! {
            biased;
            () = killed => None,
            ended = timeout(patience, pass(&world, server)) => ended.ok(),
        };
        match ended {
            Some(Ok(done)) => {
                world.note(format!("s{server} archived {}", done.messages));
                world.strike(if done.messages > 0 { "archive pass" } else { "archive pass in vain" });
            }
            Some(Err(error)) => world.note(format!("s{server} archive: {error}")),
            None => {
                world.note(format!("pass of s{server} ends in the middle"));
                world.strike("archive pass cut off");
            }
        }
    }
}

pub(crate) async fn pass(world: &World, server: usize) -> Result<PassReport, String> {
    let service = world.server(server);
    let done = service.archive().pass(&world.memory, &OPTIONS, &CancellationToken::new(), |_| ()).await;
    done.map_err(|error| format!("{error:?}"))
}
