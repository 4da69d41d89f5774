//! Those who use the service: writers that retry, disconnect and repeat themselves, and readers of every kind.

use std::sync::Arc;
use std::time::Duration;

use saltern_core::page::Placed;
use saltern_core::record::MessageRow;
use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use saltern_service::conversations::{AppendError, Appended, ReadError};
use tokio::time::{sleep, timeout};

use crate::world::{World, draft, impostor};
use crate::{Broken, archivist, chaos};

/// Lets clients and chaos loose until the plan's time is over.
pub(crate) async fn play(world: &Arc<World>) {
    let mut actors = Vec::new();
    for writer in 0..world.plan.writers {
        actors.push(tokio::spawn(write(Arc::clone(world), writer)));
    }
    for reader in 0..world.plan.readers {
        actors.push(tokio::spawn(read(Arc::clone(world), reader)));
    }
    for conversation in 0..world.plan.conversations {
        actors.push(tokio::spawn(tail(Arc::clone(world), conversation)));
    }
    actors.push(tokio::spawn(chaos::strike(Arc::clone(world))));
    actors.push(tokio::spawn(archivist::archive(Arc::clone(world))));
    for actor in actors {
        if let Err(error) = actor.await {
            world.fail(Broken::NeverHealed(format!("an actor died: {error}")));
        }
    }
}

fn pick(rng: &mut SplitMix64, below: usize) -> usize {
    usize::try_from(rng.below(below as u64)).unwrap_or(0)
}

async fn rest(rng: &mut SplitMix64, max_ms: u64) {
    sleep(Duration::from_millis(rng.below(max_ms))).await;
}

async fn write(world: Arc<World>, writer: usize) {
    let mut rng = world.rng(100 + writer as u64);
    let mut message = 0;
    while message < world.plan.messages_each && !world.over() {
        let conversation = pick(&mut rng, world.plan.conversations);
        let size = if rng.chance_per_mille(150) { 1 + rng.below(5) } else { 1 };
        let names: Vec<_> = (message..message + size).map(|m| format!("{conversation}w{writer}m{m}")).collect();
        message += size;
        deliver(&world, &mut rng, conversation, &names).await;
        // Bursts and lulls, so that n grows and shrinks.
        let lull = if rng.chance_per_mille(100) { 2_500 } else { 120 };
        rest(&mut rng, lull).await;
    }
}

/// Sends messages again and again, to any server, until they are acknowledged or the client loses patience.
async fn deliver(world: &Arc<World>, rng: &mut SplitMix64, conversation: usize, names: &[String]) {
    for _ in 0..12 {
        let server = pick(rng, world.plan.servers);
        if rng.chance_per_mille(80) {
            // A copy, at once, to some server: nobody waits for its answer.
            let (world, names, server) = (Arc::clone(world), names.to_vec(), pick(rng, world.plan.servers));
            tokio::spawn(async move { send(&world, server, conversation, &names).await });
        }
        let patience = Duration::from_millis(if rng.chance_per_mille(150) { 40 } else { 8_000 });
        let sent = timeout(patience, send(world, server, conversation, names)).await;
        if sent == Ok(true) {
            if rng.chance_per_mille(100) {
                contradict(world, conversation, server, &names[0]).await;
            }
            return;
        }
        if world.broken().is_some() {
            return;
        }
        rest(rng, 400).await;
    }
    world.note(format!("gave up on {names:?}"));
}

/// One request; `true` if all its messages were acknowledged.
pub(crate) async fn send(world: &Arc<World>, server: usize, conversation: usize, names: &[String]) -> bool {
    let id = world.conversation(conversation);
    let service = world.server(server);
    let results = match names {
        [name] => vec![service.append(&id, draft(name)).await],
        names => service.append_batch(&id, names.iter().map(|n| draft(n)).collect()).await,
    };
    let mut all = true;
    for (name, result) in names.iter().zip(results) {
        all &= result.is_ok();
        match result {
            Ok(Appended { seq, replayed }) => {
                world.note(format!("s{server} c{conversation} {name} -> {seq} replayed={replayed}"));
                world.judge(conversation, |h| h.acknowledge(seq, &draft(name).message_id));
            }
            Err(AppendError::Conflict(_)) => world.fail(Broken::FalseConflict(name.clone())),
            Err(AppendError::Damaged(error)) => world.fail(Broken::ReadSaysLost(format!("{name}: {error:?}"))),
            Err(error) => world.note(format!("s{server} c{conversation} {name} -> {error}")),
        }
    }
    all
}

/// An acknowledged message_id with another body must be refused.
async fn contradict(world: &Arc<World>, conversation: usize, server: usize, name: &str) {
    let result = world.server(server).append(&world.conversation(conversation), impostor(name)).await;
    world.note(format!("s{server} c{conversation} impostor of {name} -> {}", describe(&result)));
    if result.is_ok() {
        world.fail(Broken::AcceptedConflict(name.to_owned()));
    }
}

fn describe(result: &Result<Appended, AppendError>) -> String {
    match result {
        Ok(appended) => format!("{appended:?}"),
        Err(error) => error.to_string(),
    }
}

async fn read(world: Arc<World>, reader: usize) {
    let mut rng = world.rng(200 + reader as u64);
    while !world.over() {
        let conversation = pick(&mut rng, world.plan.conversations);
        let server = pick(&mut rng, world.plan.servers);
        // Few shapes, so that reads meet and are coalesced.
        let limit = [3, 20][pick(&mut rng, 2)];
        match rng.below(5) {
            0 | 1 => {
                older(&world, server, conversation, None, limit).await;
            }
            2 => {
                let before = SeqNo::clamped(1 + rng.below(120));
                older(&world, server, conversation, Some(before), limit).await;
            }
            3 => {
                newer(&world, server, conversation, rng.below(100), limit).await;
            }
            _ => look_up(&world, server, conversation, SeqNo::clamped(1 + rng.below(80))).await,
        }
        rest(&mut rng, 60).await;
    }
}

/// Reads and judges a page; answers with its cursor.
pub(crate) async fn older(
    world: &Arc<World>,
    server: usize,
    conversation: usize,
    before: Option<SeqNo>,
    limit: usize,
) -> Option<Option<SeqNo>> {
    let start = world.history(conversation, |h| h.begin_read());
    let page = world.server(server).older(&world.conversation(conversation), before, limit).await;
    match page {
        Ok(page) => {
            let shown = page.messages.iter().map(|m| m.seq).collect::<Vec<_>>();
            let (next, stable) = (page.next_before, page.stable_through);
            world.note(format!(
                "s{server} c{conversation} older {before:?} -> {shown:?} {:?} next={next:?} stable={stable}",
                page.gaps
            ));
            world.judge(conversation, |h| h.older(start, before, &page));
            check_bodies(world, &page.messages);
            Some(next)
        }
        Err(error) => {
            judge_error(world, &error);
            None
        }
    }
}

/// Reads and judges a page; answers with its cursor, its end, and its message ids.
pub(crate) async fn newer(
    world: &Arc<World>,
    server: usize,
    conversation: usize,
    after: u64,
    limit: usize,
) -> Option<(u64, bool, Vec<String>)> {
    let start = world.history(conversation, |h| h.begin_read());
    match world.server(server).newer(&world.conversation(conversation), after, limit).await {
        Ok(page) => {
            let shown = page.messages.iter().map(|m| m.seq).collect::<Vec<_>>();
            let (next, at_end) = (page.next_after, page.at_end);
            world.note(format!(
                "s{server} c{conversation} newer {after} -> {shown:?} {:?} next={next} end={at_end}",
                page.gaps
            ));
            world.judge(conversation, |h| h.newer(start, after, &page));
            check_bodies(world, &page.messages);
            let names = page.messages.iter().map(|m| m.value.message_id.to_string()).collect();
            Some((next, at_end, names))
        }
        Err(error) => {
            judge_error(world, &error);
            None
        }
    }
}

async fn look_up(world: &Arc<World>, server: usize, conversation: usize, seq: SeqNo) {
    use saltern_core::history::Holder;
    use saltern_service::conversations::Lookup;

    match world.server(server).lookup(&world.conversation(conversation), seq).await {
        Ok(Lookup::Message(row)) => {
            world.judge(conversation, |h| h.holds(seq, Holder::Message(row.message_id.clone())));
            check_bodies(world, &[Placed { seq, value: row }]);
        }
        Ok(Lookup::Void) => world.judge(conversation, |h| h.holds(seq, Holder::Void)),
        Ok(Lookup::Pending | Lookup::BeyondHead) => {}
        Err(error) => judge_error(world, &error),
    }
}

fn check_bodies(world: &World, messages: &[Placed<Arc<MessageRow>>]) {
    for message in messages {
        let name = message.value.message_id.as_str();
        let sent = draft(name);
        if message.value.text() != Some(&sent.body.content) || message.value.digest != sent.digest {
            world.fail(Broken::WrongBody(name.to_owned()));
        }
    }
}

fn judge_error(world: &World, error: &ReadError) {
    match error {
        ReadError::Lost { .. } | ReadError::Damaged(_) | ReadError::Content { .. } => {
            world.fail(Broken::ReadSaysLost(format!("{error:?}")));
        }
        ReadError::Overloaded | ReadError::Unavailable(_) => world.note(format!("read -> {error}")),
    }
}

/// A client that follows a conversation by `after_seq`. What it has passed must be all there ever is.
async fn tail(world: Arc<World>, conversation: usize) {
    let mut rng = world.rng(300 + conversation as u64);
    let (mut after, mut seen) = (0, Vec::new());
    while !world.over() {
        let server = pick(&mut rng, world.plan.servers);
        if let Some((next, _, names)) = newer(&world, server, conversation, after, 5).await {
            after = next;
            seen.extend(names);
        }
        rest(&mut rng, 150).await;
    }
    world.tailed(conversation, after, seen);
}
