//! After the faults have ended: everything works again, and what is stored is what was promised.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use saltern_core::control::ControlRecord;
use saltern_core::ids::ConversationId;
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::Salt;
use saltern_core::record::Record;
use saltern_registry::faulty::RegistryFaultPlan;
use saltern_service::verify::{Notice, Verifier};
use saltern_store::faulty::FaultPlan;
use tokio::time::sleep;

use crate::world::World;
use crate::{Broken, archivist, clients};

pub(crate) async fn check(world: &Arc<World>) {
    world.note("faults end".into());
    world.store.set_plan(FaultPlan::default());
    world.registry.set_plan(RegistryFaultPlan::default());
    world.registry.set_down(false);
    // Writes that were late land; watched holes are sealed.
    sleep(Duration::from_secs(6)).await;
    match archivist::pass(world, 0).await {
        Ok(done) if done.busy == 0 && done.failed == 0 => {}
        ended => world.fail(Broken::NeverHealed(format!("a pass of the archive: {ended:?}"))),
    }
    for conversation in 0..world.plan.conversations {
        appends_work(world, conversation).await;
        whole_history(world, conversation).await;
        if world.broken().is_some() {
            return;
        }
        note_layout(world, conversation);
    }
    stored_rows(world).await;
}

/// On every server, at once; the second to each is a replay.
async fn appends_work(world: &Arc<World>, conversation: usize) {
    for server in 0..world.plan.servers {
        let name = format!("{conversation}final{server}");
        for _ in 0..2 {
            if !clients::send(world, server, conversation, std::slice::from_ref(&name)).await {
                world.fail(Broken::NeverHealed(format!("append of {name} on s{server} failed")));
            }
        }
    }
}

/// Reads everything, both ways. After the first pass holes are known, and soon sealed.
async fn whole_history(world: &Arc<World>, conversation: usize) {
    let server = world.plan.servers - 1;
    for last in [false, true] {
        let mut before = None;
        while let Some(Some(next)) = clients::older(world, server, conversation, before, 20).await {
            before = Some(next);
        }
        let mut all = Vec::new();
        let mut after = 0;
        loop {
            let Some((next, at_end, names)) = clients::newer(world, server, conversation, after, 20).await else {
                return world.fail(Broken::NeverHealed("reads fail".into()));
            };
            all.extend(names);
            if at_end {
                break;
            }
            if next == after {
                if last {
                    world.fail(Broken::NeverHealed(format!("a gap after {after} stays pending")));
                }
                break;
            }
            after = next;
        }
        if last {
            check_tail(world, conversation, &all);
        }
        sleep(Duration::from_secs(4)).await;
    }
}

/// Whoever followed the conversation has seen exactly its beginning.
fn check_tail(world: &World, conversation: usize, all: &[String]) {
    let (after, seen) = world.tail(conversation);
    if !all.starts_with(&seen) {
        world.fail(Broken::NeverHealed(format!("a tailing client at {after} saw {seen:?}, but there is {all:?}")));
    }
    let missing: Vec<_> =
        world.history(conversation, |h| h.acknowledged().to_vec()).into_iter().map(|(_, id)| id.to_string()).collect();
    if let Some(lost) = missing.iter().find(|id| !all.contains(id)) {
        world.fail(Broken::NeverHealed(format!("{lost} was acknowledged, but is not in the history")));
    }
}

/// I2, I3, I4 in the store itself: each message in one row, each row where the layout says, each claim at its row.
async fn stored_rows(world: &World) {
    let store = Arc::new(world.memory.clone());
    let verifier = Verifier {
        store: store.clone(),
        scan: store,
        objects: Some(world.objects.clone()),
        claims_kept_ms: None,
        wall_clock: Arc::new(|| 0),
        patience: saltern_service::Patience::default(),
    };
    let verified = verifier.run(|notice| {
        if let Notice::Fault(fault) = notice {
            world.fail(Broken::Rows(fault.to_string()));
        }
    });
    if let Err(error) = verified.await {
        world.fail(Broken::Rows(error.to_string()));
    }
}

/// How the conversation was spread, for the report.
fn note_layout(world: &World, conversation: usize) {
    let id = world.conversation(conversation);
    let control = world.memory.rows().into_iter().find(|(key, _)| *key == Key::control(&id));
    let Some((_, Record::Control(control))) = control else {
        return world.fail(Broken::Rows("no control record".into()));
    };
    note_widening(world, &id, &control);
    world.note_spreads(control.layout.epochs().iter().map(|e| e.n));
}

fn note_widening(world: &World, id: &ConversationId, control: &ControlRecord) {
    let Some(limits) = world.limits.as_ref().filter(|_| control.heat.widened_at_ms.is_some()) else { return };
    let place = |salt| limits.physical(&PartitionKey::messages(id, Salt::Of(salt)));
    let places: BTreeSet<_> = (0..control.layout.max_n()).map(place).collect();
    world.note_widened(places.len() < usize::from(control.layout.max_n()));
}
