//! The archive: whatever happens on the way, every content can be read at every moment, and what is erased is gone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod stepping;
mod world;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rstest::rstest;
use saltern_service::conversations::{
    AppendError, ContentProblem, Contents, Conversations, Lookup, ObjectLayout, PassReport, ReadError,
};
use saltern_store::Capabilities;
use saltern_store::counted::Counted;
use saltern_store::objects::{CountedObjects, Objects};
use tokio_util::sync::CancellationToken;

use self::stepping::{At, Steps};
use self::world::{CLOUD, EMBEDDED, World, conversation, days, draft, pass, seq, text};

const SEGMENTS: ObjectLayout = ObjectLayout::Segments;
const SINGLES: ObjectLayout = ObjectLayout::Messages;

fn none() -> BTreeSet<u64> {
    BTreeSet::new()
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn what_is_due_goes_and_reads_the_same(
    #[values(EMBEDDED, CLOUD)] capabilities: Capabilities,
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
) {
    let world = World::new(capabilities, layout);
    world.fill(1, 1..=700).await;
    world.fill(2, 1..=3).await;
    days(91).await;
    world.fill(1, 701..=900).await;
    world.fill(3, 1..=5).await;
    let server = world.server(7);
    let planned = pass(&server, &world.store, true).await.unwrap();
    assert_eq!((world.in_rows(), world.object_names().await.len()), (908, 0));
    let done = world.pass(&server).await.unwrap();
    let objects = if layout == SEGMENTS { 3 } else { 703 };
    assert_eq!((done.conversations, done.messages, done.objects, done.failed, done.busy), (2, 703, objects, 0, 0));
    assert_eq!((planned.messages, planned.objects, planned.content_bytes), (703, objects, done.content_bytes));
    assert_eq!(world.in_rows(), 205);
    assert_eq!(world.object_names().await, world.referred());
    for server in [server, world.server(8)] {
        world.all_read(&server, 1, 900, &none()).await;
        world.all_read(&server, 2, 3, &none()).await;
        assert_eq!(world.pass(&server).await.unwrap(), PassReport::default());
    }
    assert_eq!(world.verify().await, Vec::<String>::new());
}

/// A message that has been archived is still the same message.
#[tokio::test(start_paused = true)]
async fn replays_are_told_from_others() {
    let world = World::new(CLOUD, SEGMENTS);
    world.fill(1, 1..=40).await;
    days(91).await;
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
#[tokio::test(start_paused = true)]
async fn a_pass_costs_what_is_due() {
    let world = World::new(CLOUD, SEGMENTS);
    for i in 1..=20 {
        world.fill(i, 1..=100).await;
    }
    days(91).await;
    for i in 21..=220 {
        world.fill(i, 1..=10).await;
    }
    world.fill(1, 101..=200).await;
    let store = Arc::new(Counted::new(Arc::new(world.store.clone())));
    let objects = Arc::new(CountedObjects::new(Arc::clone(&world.objects)));
    let config = saltern_service::conversations::Config {
        objects: Some(Arc::clone(&objects) as Arc<dyn Objects>),
        ..saltern_service::conversations::Config::new(world.clock(), 3)
    };
    let registry = Arc::new(saltern_registry::local::LocalRegistry::new(100));
    let server = Conversations::new(Arc::clone(&store) as _, registry, config);
    let done = world.pass(&server).await.unwrap();
    assert_eq!((done.conversations, done.messages, done.objects), (20, 2_000, 20));
    let (counts, objects_after) = (store.counts(), objects.counts());
    // Each row is read twice, to plan and to carry, and the first that is not due once; written once. Each object is written
    // and read back.
    assert_eq!(counts.rows_read - counts.gets, 2 * 2_000 + 2 * 100);
    assert_eq!(counts.puts, 2_000 + 20 * 3);
    assert_eq!((objects_after.puts, objects_after.gets, objects_after.deletes, objects_after.lists), (20, 20, 0, 0));
    assert_eq!(world.pass(&server).await.unwrap(), PassReport::default());
    assert_eq!((store.counts(), objects.counts()), (counts, objects_after));
}

#[tokio::test(start_paused = true)]
async fn a_page_takes_two_requests_at_the_most() {
    let world = World::new(EMBEDDED, SEGMENTS);
    world.fill(1, 1..=1_200).await;
    days(91).await;
    let server = world.server(7);
    world.pass(&server).await.unwrap();
    for before in (21..=1_201).step_by(13) {
        let objects = Arc::new(CountedObjects::new(Arc::clone(&world.objects)));
        let counted = World { objects: Arc::clone(&objects) as _, ..World::new(EMBEDDED, SEGMENTS) };
        let reader = World { store: world.store.clone(), ..counted }.server(8);
        let page = reader.older(&conversation(1), Some(seq(before)), 20).await.unwrap();
        assert_eq!(page.messages.len(), 20);
        assert!(objects.counts().gets <= 2, "{before}: {:?}", objects.counts());
        let again = reader.older(&conversation(1), Some(seq(before)), 20).await.unwrap();
        assert_eq!((again, objects.counts().gets <= 2), (page, true));
    }
}

async fn damage(world: &World, what: &str) -> String {
    let name = world.object_names().await.pop_first().unwrap();
    let mut bytes = world.objects.get(&name, None).await.unwrap().to_vec();
    match what {
        "deleted" => world.objects.delete(&name).await.unwrap(),
        "cut short" => {
            bytes.truncate(bytes.len() * 3 / 4);
            world.objects.put(&name, Bytes::from(bytes)).await.unwrap();
        }
        _ => {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x10;
            world.objects.put(&name, Bytes::from(bytes)).await.unwrap();
        }
    }
    name
}

/// Never an empty content: an error that names the seq_no, and the rest can be had.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_missing_or_damaged_object_is_told(#[values("deleted", "cut short", "a byte")] what: &str) {
    let world = World::new(CLOUD, SEGMENTS);
    world.fill(1, 1..=500).await;
    days(91).await;
    world.pass(&world.server(7)).await.unwrap();
    damage(&world, what).await;
    let server = world.server(8);
    let mut bad = BTreeSet::new();
    for n in 1..=500 {
        match server.lookup(&conversation(1), seq(n)).await {
            Ok(Lookup::Message(row)) => assert_eq!(row.text(), Some(text(n).as_str())),
            Err(ReadError::Content { seq: at, problem, .. }) => {
                assert_eq!(at, seq(n));
                assert_eq!(matches!(problem, ContentProblem::Missing), what == "deleted");
                bad.insert(n);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bad.len() == 500, what == "deleted", "{}", bad.len());
    let first = *bad.first().unwrap();
    let page = server.newer(&conversation(1), 0, 200).await;
    if first <= 200 {
        assert!(matches!(page, Err(ReadError::Content { seq: at, .. }) if at == seq(first)), "{page:?}");
    }
    let rows = server.newer_with(&conversation(1), 0, 200, Contents::Refs).await.unwrap();
    assert!(rows.messages.len() == 200 && rows.messages.iter().all(|m| m.value.archived_at().is_some()));
    let faults = world.verify().await;
    assert_eq!(faults.len(), bad.len(), "{faults:?}");
    assert!(faults[0].contains(&format!("seq_no {first} ")), "{}", faults[0]);
}

/// However a pass ends, the next one finishes, and nobody notices.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_step_loses_nothing(
    #[values(EMBEDDED, CLOUD)] capabilities: Capabilities,
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
    #[values(At::CrashBefore, At::CrashAfter)] what: At,
) {
    let count = if layout == SEGMENTS && capabilities == EMBEDDED { 520 } else { 12 };
    for step in 0.. {
        let world = World::new(capabilities, layout);
        world.fill(1, 1..=count).await;
        days(91).await;
        let steps = Steps::new(step, what);
        let (server, due) = world.stepping(&steps);
        let ended = pass(&server, &due, false).await;
        if !steps.reached() {
            assert_eq!(ended.unwrap().messages, count);
            assert!(step > 15);
            break;
        }
        server.abort();
        let next = world.server(8);
        world.all_read(&next, 1, count, &none()).await;
        world.append(&next, 1, count + 1..=count + 2).await;
        let done = world.pass(&next).await.unwrap();
        assert_eq!((done.busy, done.failed), (0, 0), "step {step}");
        world.all_read(&next, 1, count + 2, &none()).await;
        assert_eq!(world.in_rows(), 2, "step {step}");
        next.archive().sweep(Duration::ZERO, true, &CancellationToken::new()).await.unwrap();
        assert_eq!(world.object_names().await, world.referred(), "step {step}");
        world.all_read(&world.server(9), 1, count + 2, &none()).await;
        assert_eq!(world.verify().await, Vec::<String>::new(), "step {step}");
    }
}

/// An erasure that crashed is no worse than one that was not asked for; asked for again, it is done.
#[rstest]
#[tokio::test(start_paused = true)]
async fn an_erasure_can_crash_at_any_step(
    #[values(EMBEDDED, CLOUD)] capabilities: Capabilities,
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
    #[values(At::CrashBefore, At::CrashAfter)] what: At,
) {
    for step in 0.. {
        let world = World::new(capabilities, layout);
        world.fill(1, 1..=20).await;
        days(91).await;
        world.pass(&world.server(7)).await.unwrap();
        world.fill(1, 21..=25).await;
        let steps = Steps::new(step, what);
        let (server, _) = world.stepping(&steps);
        let (archived, fresh) =
            (server.erase(&conversation(1), seq(9)).await, server.erase(&conversation(1), seq(22)).await);
        let reached = steps.reached();
        assert_eq!(reached, archived.is_err() || fresh.is_err(), "step {step}");
        server.abort();
        let next = world.server(8);
        let erased = BTreeSet::from([9, 22]);
        for n in &erased {
            next.erase(&conversation(1), seq(*n)).await.unwrap();
        }
        world.all_read(&next, 1, 25, &erased).await;
        next.archive().sweep(Duration::ZERO, true, &CancellationToken::new()).await.unwrap();
        for n in &erased {
            assert_eq!(world.places_of(*n).await, Vec::<String>::new(), "step {step}, word {n}");
        }
        assert_eq!(world.object_names().await, world.referred(), "step {step}");
        assert_eq!(world.verify().await, Vec::<String>::new(), "step {step}");
        if !reached {
            assert!(step > 15);
            break;
        }
    }
}

/// A pass that stalls anywhere for an hour is overtaken by another, and by erasures; when it wakes up it does no harm.
#[rstest]
#[tokio::test(start_paused = true)]
async fn a_pass_that_wakes_up_late_does_no_harm(#[values(SEGMENTS, SINGLES)] layout: ObjectLayout) {
    let erased = BTreeSet::from([1, 9]);
    for step in 0.. {
        let world = World::new(CLOUD, layout);
        world.fill(1, 1..=12).await;
        days(91).await;
        let steps = Steps::new(step, At::Stall(3_600));
        let (server, due) = world.stepping(&steps);
        let late = tokio::spawn(async move { pass(&server, &due, false).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let next = world.server(8);
        for n in &erased {
            next.erase(&conversation(1), seq(*n)).await.unwrap();
        }
        world.pass(&next).await.unwrap();
        world.all_read(&next, 1, 12, &erased).await;
        let reached = steps.reached();
        // Overtaken, it says so or finds nothing left to do.
        late.await.unwrap().unwrap();
        world.pass(&next).await.unwrap();
        let last = world.server(9);
        world.all_read(&last, 1, 12, &erased).await;
        last.archive().sweep(Duration::ZERO, true, &CancellationToken::new()).await.unwrap();
        world.all_read(&world.server(10), 1, 12, &erased).await;
        for n in &erased {
            assert_eq!(world.places_of(*n).await, Vec::<String>::new(), "step {step}, word {n}");
        }
        assert_eq!((world.object_names().await, world.in_rows()), (world.referred(), 0), "step {step}");
        if !reached {
            assert!(step > 15);
            break;
        }
    }
}

/// A pass wakes up while another, which has taken over, is in the middle, and dies some steps later; then the other goes on.
#[tokio::test(start_paused = true)]
async fn passes_that_overtake_each_other_lose_nothing() {
    for (first, last, second) in (4..10).flat_map(|a| (a..a + 12).flat_map(move |b| (6..20).map(move |c| (a, b, c)))) {
        let world = World::new(CLOUD, SEGMENTS);
        world.fill(1, 1..=3).await;
        days(91).await;
        let mut passes = Vec::new();
        for steps in [Steps::new(first, At::StallAndCrashAfter(last)), Steps::new(second, At::Stall(120))] {
            let (server, due) = world.stepping(&steps);
            let late = async move {
                let done = pass(&server, &due, false).await;
                server.abort();
                done
            };
            passes.push(tokio::spawn(late));
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
        let reader = world.server(8);
        let overtaking = passes.pop().unwrap();
        let _ = passes.pop().unwrap().await.unwrap();
        world.all_read(&reader, 1, 3, &none()).await;
        overtaking.await.unwrap().unwrap();
        world.all_read(&world.server(9), 1, 3, &none()).await;
        world.pass(&reader).await.unwrap();
        reader.archive().sweep(Duration::ZERO, true, &CancellationToken::new()).await.unwrap();
        assert_eq!((world.object_names().await, world.in_rows()), (world.referred(), 0), "{first}, {last}, {second}");
        assert_eq!(world.verify().await, Vec::<String>::new(), "{first}, {last}, {second}");
        reader.abort();
    }
}

/// A message that is erased between a pass's look at it and its object is not in use afterwards.
#[rstest]
#[tokio::test(start_paused = true)]
async fn an_erasure_in_the_middle_of_a_pass_is_noticed(#[values(SEGMENTS, SINGLES)] layout: ObjectLayout) {
    for (erasing, passing) in (0..10).flat_map(|a| (0..20).map(move |b| (a, b))) {
        let world = World::new(CLOUD, layout);
        world.fill(1, 1..=3).await;
        days(91).await;
        let (eraser, _) = world.stepping(&Steps::new(erasing, At::Stall(4)));
        let erase = async move {
            let done = eraser.erase(&conversation(1), seq(2)).await;
            eraser.abort();
            done
        };
        let erase = tokio::spawn(erase);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (server, due) = world.stepping(&Steps::new(passing, At::Stall(8)));
        pass(&server, &due, false).await.unwrap();
        erase.await.unwrap().unwrap();
        server.abort();
        // Without another pass, and without a sweep.
        assert_eq!(world.places_of(2).await, Vec::<String>::new(), "{erasing}, {passing}");
        let last = world.server(9);
        world.all_read(&last, 1, 3, &BTreeSet::from([2])).await;
        last.abort();
    }
}

/// The same for an erasure that stalls while a pass and another erasure go by.
#[tokio::test(start_paused = true)]
async fn an_erasure_that_wakes_up_late_does_no_harm() {
    for step in 0.. {
        let world = World::new(CLOUD, SEGMENTS);
        world.fill(1, 1..=12).await;
        days(91).await;
        world.pass(&world.server(7)).await.unwrap();
        let steps = Steps::new(step, At::Stall(3_600));
        let (server, _) = world.stepping(&steps);
        let late = tokio::spawn(async move { server.erase(&conversation(1), seq(3)).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let next = world.server(8);
        next.erase(&conversation(1), seq(5)).await.unwrap();
        next.erase(&conversation(1), seq(3)).await.unwrap();
        let reached = steps.reached();
        // Late, it may find that it was overtaken, and be asked for again.
        let _ = late.await.unwrap();
        let erased = BTreeSet::from([3, 5]);
        world.all_read(&world.server(9), 1, 12, &erased).await;
        next.archive().sweep(Duration::ZERO, true, &CancellationToken::new()).await.unwrap();
        world.all_read(&world.server(10), 1, 12, &erased).await;
        for n in &erased {
            assert_eq!(world.places_of(*n).await, Vec::<String>::new(), "step {step}, word {n}");
        }
        if !reached {
            assert!(step > 10);
            break;
        }
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn whole_conversations_can_be_erased(
    #[values(EMBEDDED, CLOUD)] capabilities: Capabilities,
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
) {
    let world = World::new(capabilities, layout);
    world.fill(1, 1..=1_100).await;
    world.fill(2, 1..=10).await;
    days(91).await;
    let server = world.server(7);
    world.pass(&server).await.unwrap();
    world.append(&server, 1, 1_101..=1_150).await;
    server.erase(&conversation(1), seq(700)).await.unwrap();
    assert_eq!(server.erase_all(&conversation(1)).await.unwrap(), 1_149);
    world.all_read(&server, 1, 1_150, &(1..=1_150).collect()).await;
    world.all_read(&server, 2, 10, &none()).await;
    assert!(world.object_names().await.iter().all(|name| name.contains("talk=232/")));
    for n in [1, 512, 513, 700, 1_024, 1_100, 1_150] {
        let places = world.places_of(n).await;
        assert!(places.iter().all(|place| place.contains("talk=232") || place.contains("talk%232")), "{places:?}");
    }
    assert_eq!(server.erase_all(&conversation(1)).await.unwrap(), 0);
    assert_eq!(server.append(&conversation(1), draft(1_151)).await.unwrap().seq, seq(1_151));
    days(91).await;
    assert_eq!(world.pass(&server).await.unwrap().messages, 1);
    assert_eq!(world.verify().await, Vec::<String>::new());
}

/// Two passes at once move everything once, and leave nothing.
#[tokio::test(start_paused = true)]
async fn several_passes_do_no_harm() {
    let world = World::new(CLOUD, SEGMENTS);
    for i in 1..=5 {
        world.fill(i, 1..=600).await;
    }
    days(91).await;
    let servers: Vec<_> = (20..23).map(|seed| world.server(seed)).collect();
    let mut passes = Vec::new();
    for server in &servers {
        passes.push(world.pass(server));
    }
    let done = futures_util::future::join_all(passes).await;
    assert!(done.iter().all(|done| done.as_ref().is_ok_and(|done| done.busy == 0 && done.failed == 0)), "{done:?}");
    assert_eq!(world.in_rows(), 0);
    assert_eq!(world.object_names().await, world.referred());
    for i in 1..=5 {
        world.all_read(&world.server(9), i, 600, &none()).await;
    }
    assert_eq!(world.pass(&servers[0]).await.unwrap(), PassReport::default());
}

fn options() -> saltern_service::conversations::PassOptions {
    let older_than = Duration::from_secs(90 * 86_400);
    saltern_service::conversations::PassOptions { older_than, messages_per_s: None, dry_run: false }
}

/// It stops between two objects, and the next one goes on.
#[tokio::test(start_paused = true)]
async fn a_pass_can_be_stopped_and_slowed_down() {
    let world = World::new(EMBEDDED, SEGMENTS);
    world.fill(1, 1..=2_000).await;
    days(91).await;
    let server = world.server(7);
    let (stop, mut told) = (CancellationToken::new(), 0);
    let options = saltern_service::conversations::PassOptions { messages_per_s: Some(100.0), ..options() };
    let began = tokio::time::Instant::now();
    let token = stop.clone();
    let stopped = server.archive().pass(&world.store, &options, &token, |progress| {
        if let saltern_service::conversations::Progress::Moved(report, _) = progress {
            told = report.messages;
            if told > 1_000 {
                stop.cancel();
            }
        }
    });
    let stopped = stopped.await.unwrap();
    assert_eq!((stopped.messages, stopped.stopped, told), (1_024, true, 1_024));
    assert!(began.elapsed() >= Duration::from_secs(5), "{:?}", began.elapsed());
    world.all_read(&server, 1, 2_000, &none()).await;
    assert_eq!(world.pass(&server).await.unwrap().messages, 976);
}

/// What is read in one moment may have moved on in the next: readers never notice.
#[tokio::test(start_paused = true)]
async fn readers_follow_contents_that_move_on() {
    let world = World::new(CLOUD, SEGMENTS);
    world.fill(1, 1..=100).await;
    days(91).await;
    let server = world.server(7);
    world.pass(&server).await.unwrap();
    let reader = world.server(8);
    world.all_read(&reader, 1, 100, &none()).await;
    // The reader remembers where contents were; these objects are gone now.
    server.erase(&conversation(1), seq(50)).await.unwrap();
    let fresh = world.server(9);
    let stale = fresh.older_with(&conversation(1), Some(seq(60)), 20, Contents::Refs).await.unwrap();
    assert_eq!(stale.messages.len(), 20);
    server.erase(&conversation(1), seq(51)).await.unwrap();
    world.all_read(&fresh, 1, 100, &BTreeSet::from([50, 51])).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    world.all_read(&reader, 1, 100, &BTreeSet::from([50, 51])).await;
}

/// An object that only a crash can have left goes after its time; one that is in use, or not ours, stays.
#[tokio::test(start_paused = true)]
async fn the_sweep_takes_what_nothing_refers_to() {
    let world = World::new(EMBEDDED, SEGMENTS);
    world.fill(1, 1..=30).await;
    days(91).await;
    let server = world.server(7);
    world.pass(&server).await.unwrap();
    let used = world.object_names().await.pop_first().unwrap();
    let bytes = world.objects.get(&used, None).await.unwrap();
    let orphan = format!("{}{:016x}", &used[..used.len() - 16], 7);
    world.objects.put(&orphan, bytes).await.unwrap();
    world.objects.put("notes/readme", Bytes::from_static(b"ours")).await.unwrap();
    let stop = CancellationToken::new();
    let (day, age) = (Duration::from_secs(86_400), Duration::from_secs(200 * 365 * 86_400));
    let all = world.object_names().await;
    assert_eq!(server.archive().sweep(age, false, &stop).await.unwrap().looked_at, 0);
    assert_eq!(world.object_names().await, all);
    let swept = server.archive().sweep(day, false, &stop).await.unwrap();
    assert_eq!((swept.looked_at, swept.removed), (2, 1));
    assert_eq!(world.object_names().await, BTreeSet::from([used, "notes/readme".into()]));
    assert_eq!(server.archive().sweep(day, false, &stop).await.unwrap().looked_at, 0);
}
