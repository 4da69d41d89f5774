//! What happens to the servers and the registry, beside the faults of single calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::world::World;

/// Strikes at random times until the run is over.
pub(crate) async fn strike(world: Arc<World>) {
    let mut rng = world.rng(1);
    let mut snapshot = world.registry_state.snapshot();
    while !world.over() {
        sleep(Duration::from_millis(100 + rng.below(1_500))).await;
        match rng.below(6) {
            0 | 1 => {
                let server = usize::try_from(rng.below(world.plan.servers as u64)).unwrap_or(0);
                world.note(format!("crash of s{server}"));
                world.strike("server crash");
                world.kill(server);
                sleep(world.dead_for()).await;
                world.start(server);
            }
            2 => {
                world.note("registry wiped".into());
                world.strike("registry wipe");
                world.registry_state.wipe();
            }
            3 => {
                world.note("registry rolled back".into());
                world.strike("registry rollback");
                world.registry_state.restore(&snapshot);
            }
            4 => snapshot = world.registry_state.snapshot(),
            _ => {
                world.note("registry down".into());
                world.strike("registry down");
                world.registry.set_down(true);
                sleep(Duration::from_millis(rng.below(700))).await;
                world.registry.set_down(false);
            }
        }
    }
}
