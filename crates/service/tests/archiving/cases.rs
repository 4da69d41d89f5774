//! What may happen, in a world of any kind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::ready;
use futures_util::{StreamExt as _, stream};
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{
    AppendError, Config, ContentProblem, Contents, Conversations, Lookup, PassOptions, PassReport, Progress, ReadError,
};
use saltern_store::counted::Counted;
use saltern_store::objects::CountedObjects;
use tokio_util::sync::CancellationToken;

use crate::stepping::{At, Steps};
use crate::world::{World, conversation, draft, none, pass, seq, text};

/// A case at each of these steps, until it has no more; so many of them at once.
pub(crate) async fn at<C: Future<Output = bool>>(
    steps: impl Iterator<Item = u64>,
    at_once: usize,
    case: impl Fn(u64) -> C,
) {
    let cases = stream::iter(steps).map(case).buffered(at_once);
    let made = cases.take_while(|reached| ready(*reached)).count().await;
    assert!(made > 5, "{made}");
}

/// However a pass ends, the next one finishes, and nobody notices. Whether the step was reached.
pub(crate) async fn a_pass_crashes(world: World, count: u64, step: u64, what: At) -> bool {
    world.fill(1, 1..=count).await;
    world.days(91);
    let steps = Steps::new(step, what);
    let (server, due) = world.stepping(&steps);
    let ended = pass(&server, &due, false).await;
    server.abort();
    if !steps.reached() {
        assert_eq!(ended.unwrap().messages, count);
        return false;
    }
    world.a_while();
    let next = world.server(8);
    world.all_read(&next, 1, count, &none()).await;
    world.append(&next, 1, count + 1..=count + 2).await;
    let done = world.pass(&next).await.unwrap();
    assert_eq!((done.busy, done.failed), (0, 0), "step {step}");
    world.all_read(&next, 1, count + 2, &none()).await;
    assert_eq!(world.in_rows().await, 2, "step {step}");
    sweep(&world).await;
    assert_eq!(world.object_names().await, world.referred().await, "step {step}");
    world.all_read(&world.server(9), 1, count + 2, &none()).await;
    assert_eq!(world.verify().await, Vec::<String>::new(), "step {step}");
    at_rest(&world, step).await;
    true
}

/// An erasure that crashed is no worse than one that was not asked for; asked for again, it is done.
pub(crate) async fn an_erasure_crashes(world: World, step: u64, what: At) -> bool {
    world.fill(1, 1..=20).await;
    world.days(91);
    world.pass(&world.server(7)).await.unwrap();
    world.fill(1, 21..=25).await;
    let steps = Steps::new(step, what);
    let (server, _) = world.stepping(&steps);
    let archived = server.erase(&conversation(1), seq(9)).await;
    let fresh = server.erase(&conversation(1), seq(22)).await;
    let reached = steps.reached();
    assert_eq!(reached, archived.is_err() || fresh.is_err(), "step {step}");
    server.abort();
    world.a_while();
    let next = world.server(8);
    let erased = BTreeSet::from([9, 22]);
    for n in &erased {
        next.erase(&conversation(1), seq(*n)).await.unwrap();
    }
    world.all_read(&next, 1, 25, &erased).await;
    sweep(&world).await;
    gone(&world, &erased, step).await;
    assert_eq!(world.object_names().await, world.referred().await, "step {step}");
    assert_eq!(world.verify().await, Vec::<String>::new(), "step {step}");
    at_rest(&world, step).await;
    reached
}

/// A pass that stalls is overtaken by another, and by erasures; when it wakes up it does no harm.
pub(crate) async fn a_pass_wakes_up_late(world: World, step: u64) -> bool {
    let erased = BTreeSet::from([1, 9]);
    world.fill(1, 1..=12).await;
    world.days(91);
    let steps = Steps::new(step, At::Held);
    let (server, due) = world.stepping(&steps);
    let late = steps.hold(async move { pass(&server, &due, false).await }).await;
    world.a_while();
    let next = world.server(8);
    for n in &erased {
        next.erase(&conversation(1), seq(*n)).await.unwrap();
    }
    world.pass(&next).await.unwrap();
    world.all_read(&next, 1, 12, &erased).await;
    steps.release();
    // Overtaken, it says so or finds nothing left to do.
    late.await.unwrap().unwrap();
    world.pass(&next).await.unwrap();
    world.all_read(&world.server(9), 1, 12, &erased).await;
    sweep(&world).await;
    world.all_read(&world.server(10), 1, 12, &erased).await;
    gone(&world, &erased, step).await;
    assert_eq!((world.object_names().await, world.in_rows().await), (world.referred().await, 0), "step {step}");
    at_rest(&world, step).await;
    steps.reached()
}

/// The same for an erasure that stalls while a pass and another erasure go by.
pub(crate) async fn an_erasure_wakes_up_late(world: World, step: u64) -> bool {
    let erased = BTreeSet::from([3, 5]);
    world.fill(1, 1..=12).await;
    world.days(91);
    world.pass(&world.server(7)).await.unwrap();
    let steps = Steps::new(step, At::Held);
    let (server, _) = world.stepping(&steps);
    let late = steps.hold(async move { server.erase(&conversation(1), seq(3)).await }).await;
    world.a_while();
    let next = world.server(8);
    next.erase(&conversation(1), seq(5)).await.unwrap();
    next.erase(&conversation(1), seq(3)).await.unwrap();
    steps.release();
    // Late, it may find that it was overtaken, and be asked for again.
    let _ = late.await.unwrap();
    world.all_read(&world.server(9), 1, 12, &erased).await;
    sweep(&world).await;
    world.all_read(&world.server(10), 1, 12, &erased).await;
    gone(&world, &erased, step).await;
    at_rest(&world, step).await;
    steps.reached()
}

async fn sweep(world: &World) {
    world.server(11).archive().sweep(Duration::ZERO, true, &CancellationToken::new()).await.unwrap();
}

/// Nothing that was left behind keeps anybody from erasing, nor from archiving.
pub(crate) async fn at_rest(world: &World, step: u64) {
    world.days(1);
    world.server(12).erase(&conversation(1), seq(2)).await.unwrap();
    assert_eq!(world.moving().await, None, "step {step}");
    world.fill(1, 50..=51).await;
    world.days(91);
    let done = world.pass(&world.server(13)).await.unwrap();
    assert_eq!((done.messages >= 2, done.busy, done.failed), (true, 0, 0), "step {step}");
    assert_eq!((world.moving().await, world.in_rows().await), (None, 0), "step {step}");
}

async fn gone(world: &World, erased: &BTreeSet<u64>, step: u64) {
    for n in erased {
        assert_eq!(world.places_of(*n).await, Vec::<String>::new(), "step {step}, word {n}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    Deleted,
    CutShort,
    Byte,
}

/// Of the one object there is.
async fn damage(world: &World, what: Damage) {
    let name = world.object_names().await.pop_first().unwrap();
    let mut bytes = world.objects.get(&name, None).await.unwrap().to_vec();
    let middle = bytes.len() / 2;
    match what {
        Damage::Deleted => return world.objects.delete(&name).await.unwrap(),
        Damage::CutShort => bytes.truncate(bytes.len() * 3 / 4),
        Damage::Byte => bytes[middle] ^= 0x10,
    }
    world.objects.put(&name, Bytes::from(bytes)).await.unwrap();
}

/// Never an empty content: an error that names the seq_no, and the rest can be had.
pub(crate) async fn an_object_is_damaged(world: World, what: Damage) {
    world.fill(1, 1..=500).await;
    world.days(91);
    world.pass(&world.server(7)).await.unwrap();
    damage(&world, what).await;
    let server = world.server(8);
    let mut bad = BTreeSet::new();
    for n in 1..=500 {
        match server.lookup(&conversation(1), seq(n)).await {
            Ok(Lookup::Message(row)) => assert_eq!(row.text(), Some(text(n).as_str())),
            Err(ReadError::Content { seq: at, problem, .. }) => {
                assert_eq!(at, seq(n));
                assert_eq!(matches!(problem, ContentProblem::Missing), what == Damage::Deleted);
                bad.insert(n);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bad.len() == 500, what == Damage::Deleted, "{}", bad.len());
    let first = *bad.first().unwrap();
    let page = server.newer(&conversation(1), 0, 200).await;
    if first <= 200 {
        assert!(matches!(page, Err(ReadError::Content { seq: at, .. }) if at == seq(first)), "{page:?}");
    }
    let rows =
        server.newer_with(&server.admit_read().unwrap(), &conversation(1), 0, 200, Contents::Refs).await.unwrap();
    assert!(rows.messages.len() == 200 && rows.messages.iter().all(|m| m.value.archived_at().is_some()));
    let faults = world.verify().await;
    assert_eq!(faults.len(), bad.len(), "{faults:?}");
    assert!(faults[0].contains(&format!("seq_no {first} ")), "{}", faults[0]);
}

/// A message that has been archived is still the same message.
pub(crate) async fn archived_messages_are_sent_again(world: World) {
    world.fill(1, 1..=40).await;
    world.days(91);
    let server = world.server(7);
    world.pass(&server).await.unwrap();
    server.erase(&conversation(1), seq(9)).await.unwrap();
    for n in [7, 9] {
        let replayed = server.append(&conversation(1), draft(n)).await.unwrap();
        assert_eq!((replayed.seq, replayed.replayed), (seq(n), true));
        let mut other = draft(n);
        other.body.content.push('!');
        other.digest = other.body.digest();
        let refused = server.append(&conversation(1), other).await;
        assert!(matches!(refused, Err(AppendError::Conflict(at)) if at == seq(n)));
    }
    assert!(server.append(&conversation(1), draft(41)).await.unwrap().seq > seq(40));
}

/// As many requests as it takes to touch what is due, and none for the rest.
pub(crate) async fn the_cost_of_a_pass_is_counted(world: World, due: u64, others: u64) {
    for i in 1..=due {
        world.fill(i, 1..=100).await;
    }
    world.days(91);
    for i in due + 1..=due + others {
        world.fill(i, 1..=10).await;
    }
    world.fill(1, 101..=200).await;
    let store = Arc::new(Counted::new(Arc::clone(&world.table) as _));
    let objects = Arc::new(CountedObjects::new(Arc::clone(&world.objects)));
    let config = Config { objects: Some(Arc::clone(&objects) as _), ..Config::new(world.clock(), 3) };
    let server = Conversations::new(Arc::clone(&store) as _, Arc::new(LocalRegistry::new(100)), config);
    let done = world.pass(&server).await.unwrap();
    assert_eq!((done.conversations, done.messages, done.objects), (due, due * 100, due));
    let (counts, objects_after) = (store.counts(), objects.counts());
    // Each row is read twice, to plan and to carry, and the first that is not due once; written once. Each object is written
    // and read back.
    assert_eq!(counts.rows_read - counts.gets, 2 * due * 100 + 2 * 100);
    assert_eq!(counts.puts, due * 100 + due * 3);
    assert_eq!((objects_after.puts, objects_after.gets, objects_after.deletes, objects_after.lists), (due, due, 0, 0));
    assert_eq!(world.pass(&server).await.unwrap(), PassReport::default());
    assert_eq!((store.counts(), objects.counts()), (counts, objects_after));
}

/// Wherever a page begins, in segments of 512.
pub(crate) async fn the_requests_of_pages_are_counted(world: World) {
    world.fill(1, 1..=1_200).await;
    world.days(91);
    let server = world.server(7);
    world.pass(&server).await.unwrap();
    for before in (21..=1_201).step_by(13) {
        let objects = Arc::new(CountedObjects::new(Arc::clone(&world.objects)));
        let reader = World { objects: Arc::clone(&objects) as _, ..world.clone() }.server(8);
        let page = reader.older(&conversation(1), Some(seq(before)), 20).await.unwrap();
        assert_eq!(page.messages.len(), 20);
        assert!(objects.counts().gets <= 2, "{before}: {:?}", objects.counts());
        let again = reader.older(&conversation(1), Some(seq(before)), 20).await.unwrap();
        assert_eq!((again, objects.counts().gets <= 2), (page, true));
    }
}

/// Nobody writes to or reads the conversation any more, so nobody but the pass can seal what a crash has left.
pub(crate) async fn rows_lie_behind_holes(world: World) {
    world.fill(1, 1..=10).await;
    world.raise(1, 1_000, 1).await;
    world.raise(1, 3_000, 4).await;
    let here = [12, 13, 17, 800, 2_990];
    for n in here {
        world.append_at(1, n).await;
    }
    world.days(91);
    let server = world.server(7);
    let planned = pass(&server, &*world.table, true).await.unwrap();
    let done = world.pass(&server).await.unwrap();
    assert_eq!((done.messages, done.failed, done.busy), (15, 0, 0));
    assert_eq!((planned.messages, planned.objects), (done.messages, done.objects));
    assert_eq!(world.in_rows().await, 0);
    assert_eq!(world.control(1).await.archive.through, seq(2_991));
    assert_eq!(world.pass(&server).await.unwrap(), PassReport::default());
    for n in (1..=10).chain(here) {
        let found = server.lookup(&conversation(1), seq(n)).await.unwrap();
        assert!(matches!(&found, Lookup::Message(row) if row.text() == Some(&text(n))), "{n}: {found:?}");
    }
    for n in [11, 14, 16, 18, 799, 801, 1_000, 2_989] {
        assert_eq!(server.lookup(&conversation(1), seq(n)).await.unwrap(), Lookup::Void, "{n}");
    }
    assert_eq!(world.verify().await, Vec::<String>::new());
}

/// A writer whose neighbours are already there has the time that the sealer would give it. What lies behind stays due.
pub(crate) async fn a_writer_is_waited_for(world: World, far: bool) {
    world.fill(1, 1..=10).await;
    world.raise(1, 3_000, 4).await;
    let behind = if far { 2_500 } else { 12 };
    world.append_at(1, behind).await;
    let server = world.server(7);
    let pass = async || {
        let options = PassOptions { older_than: Duration::ZERO, messages_per_s: None, dry_run: false };
        server.archive().pass(&*world.table, &options, &CancellationToken::new(), |_: Progress<'_>| ()).await.unwrap()
    };
    assert_eq!(pass().await.messages, 10);
    assert_eq!((pass().await.messages, world.in_rows().await), (0, 1));
    world.append_at(1, 11).await;
    assert_eq!((pass().await.messages, world.in_rows().await), if far { (1, 1) } else { (2, 0) });
    world.skip(Duration::from_secs(5));
    assert_eq!((pass().await.messages, world.in_rows().await), (u64::from(far), 0));
    assert_eq!(world.verify().await, Vec::<String>::new());
}

/// What no crash can leave is not for a pass to fill with millions of voids.
pub(crate) async fn a_hole_is_endless(world: World) {
    world.fill(1, 1..=10).await;
    world.raise(1, 1 << 40, 4).await;
    world.append_at(1, (1 << 40) - 1).await;
    world.days(91);
    let server = world.server(7);
    assert_eq!(world.pass(&server).await.unwrap().messages, 10);
    assert_eq!(world.pass(&server).await.unwrap().messages, 0);
    assert_eq!((world.in_rows().await, world.control(1).await.archive.through), (1, seq(11)));
}
