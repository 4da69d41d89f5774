//! What a pass, a sweep and readers do when nothing goes wrong.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rstest::rstest;
use saltern_core::key::Key;
use saltern_service::conversations::{Contents, Conversations, ObjectLayout, PassOptions, PassReport, Progress};
use saltern_store::{Capabilities, Scan, ScanPage, StoreError};
use tokio_util::sync::CancellationToken;

use crate::cases;
use crate::world::{CLOUD, DAY, EMBEDDED, SEGMENTS, SINGLES, World, conversation, draft, none, pass, seq};

#[rstest]
#[tokio::test(start_paused = true)]
async fn what_is_due_goes_and_reads_the_same(
    #[values(EMBEDDED, CLOUD)] capabilities: Capabilities,
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
) {
    let world = World::new(capabilities, layout);
    world.fill(1, 1..=700).await;
    world.fill(2, 1..=3).await;
    world.days(91);
    world.fill(1, 701..=900).await;
    world.fill(3, 1..=5).await;
    let server = world.server(7);
    let planned = pass(&server, &*world.table, true).await.unwrap();
    assert_eq!((world.in_rows().await, world.object_names().await.len()), (908, 0));
    let done = world.pass(&server).await.unwrap();
    let objects = if layout == SEGMENTS { 3 } else { 703 };
    assert_eq!((done.conversations, done.messages, done.objects, done.failed, done.busy), (2, 703, objects, 0, 0));
    assert_eq!((planned.messages, planned.objects, planned.content_bytes), (703, objects, done.content_bytes));
    assert_eq!(world.in_rows().await, 205);
    assert_eq!(world.object_names().await, world.referred().await);
    for server in [server, world.server(8)] {
        world.all_read(&server, 1, 900, &none()).await;
        world.all_read(&server, 2, 3, &none()).await;
        assert_eq!(world.pass(&server).await.unwrap(), PassReport::default());
    }
    assert_eq!(world.verify().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn replays_are_told_from_others() {
    cases::archived_messages_are_sent_again(World::new(CLOUD, SEGMENTS)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pass_costs_what_is_due() {
    cases::the_cost_of_a_pass_is_counted(World::new(CLOUD, SEGMENTS), 20, 200).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_takes_two_requests_at_the_most() {
    cases::the_requests_of_pages_are_counted(World::new(EMBEDDED, SEGMENTS)).await;
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn holes_keep_nothing_from_going(#[values(EMBEDDED, CLOUD)] capabilities: Capabilities) {
    cases::rows_lie_behind_holes(World::new(capabilities, SEGMENTS)).await;
}

#[tokio::test(start_paused = true)]
async fn a_hole_without_end_is_left() {
    cases::a_hole_is_endless(World::new(CLOUD, SEGMENTS)).await;
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_slow_writer_is_given_time(#[values(false, true)] far: bool) {
    cases::a_writer_is_waited_for(World::new(CLOUD, SEGMENTS), far).await;
}

/// Two passes at once move everything once, and leave nothing.
#[tokio::test(start_paused = true)]
async fn several_passes_do_no_harm() {
    let world = World::new(CLOUD, SEGMENTS);
    for i in 1..=5 {
        world.fill(i, 1..=600).await;
    }
    world.days(91);
    let servers: Vec<_> = (20..23).map(|seed| world.server(seed)).collect();
    let mut passes = Vec::new();
    for server in &servers {
        passes.push(world.pass(server));
    }
    let done = futures_util::future::join_all(passes).await;
    assert!(done.iter().all(|done| done.as_ref().is_ok_and(|done| done.busy == 0 && done.failed == 0)), "{done:?}");
    assert_eq!(world.in_rows().await, 0);
    assert_eq!(world.object_names().await, world.referred().await);
    for i in 1..=5 {
        world.all_read(&world.server(9), i, 600, &none()).await;
    }
    assert_eq!(world.pass(&servers[0]).await.unwrap(), PassReport::default());
}

/// It stops between two objects, and the next one goes on.
#[tokio::test(start_paused = true)]
async fn a_pass_can_be_stopped_and_slowed_down() {
    let world = World::new(EMBEDDED, SEGMENTS);
    world.fill(1, 1..=2_000).await;
    world.days(91);
    let server = world.server(7);
    let (stop, mut told) = (CancellationToken::new(), 0);
    let options = PassOptions { older_than: 90 * DAY, messages_per_s: Some(100.0), dry_run: false };
    let began = tokio::time::Instant::now();
    let token = stop.clone();
    let stopped = server.archive().pass(&*world.table, &options, &token, |progress| {
        if let Progress::Moved(report, _) = progress {
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
    world.days(91);
    let server = world.server(7);
    world.pass(&server).await.unwrap();
    let reader = world.server(8);
    world.all_read(&reader, 1, 100, &none()).await;
    // The reader remembers where contents were; these objects are gone now.
    server.erase(&conversation(1), seq(50)).await.unwrap();
    let fresh = world.server(9);
    let stale = fresh
        .older_with(&fresh.admit_read().unwrap(), &conversation(1), Some(seq(60)), 20, Contents::Refs)
        .await
        .unwrap();
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
    world.days(91);
    let server = world.server(7);
    world.pass(&server).await.unwrap();
    let used = world.object_names().await.pop_first().unwrap();
    let bytes = world.objects.get(&used, None).await.unwrap();
    let orphan = format!("{}{:016x}", &used[..used.len() - 16], 7);
    world.objects.put(&orphan, bytes).await.unwrap();
    world.objects.put("notes/readme", Bytes::from_static(b"ours")).await.unwrap();
    let stop = CancellationToken::new();
    let age = 200 * 365 * DAY;
    let all = world.object_names().await;
    assert_eq!(server.archive().sweep(age, false, &stop).await.unwrap().looked_at, 0);
    assert_eq!(world.object_names().await, all);
    let swept = server.archive().sweep(DAY, false, &stop).await.unwrap();
    assert_eq!((swept.looked_at, swept.removed), (2, 1));
    assert_eq!(world.object_names().await, BTreeSet::from([used, "notes/readme".into()]));
    assert_eq!(server.archive().sweep(DAY, false, &stop).await.unwrap().looked_at, 0);
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
    world.days(91);
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
    world.days(91);
    assert_eq!(world.pass(&server).await.unwrap().messages, 1);
    assert_eq!(world.verify().await, Vec::<String>::new());
}

/// Archives everything behind whoever scans.
struct PassesMeanwhile {
    world: World,
    server: Conversations,
}

#[async_trait]
impl Scan for PassesMeanwhile {
    async fn scan(&self, behind: Option<&Key>, limit: usize) -> Result<ScanPage, StoreError> {
        let page = self.world.table.scan(behind, limit).await;
        self.world.pass(&self.server).await.unwrap();
        page
    }
}

/// Between a row and its control record a pass may have gone by.
#[tokio::test(start_paused = true)]
async fn verify_takes_no_pass_for_a_fault() {
    let world = World::new(CLOUD, SEGMENTS);
    world.fill(1, 1..=50).await;
    world.days(91);
    let scan = Arc::new(PassesMeanwhile { server: world.server(7), world: world.clone() });
    assert_eq!(world.verify_through(scan).await, Vec::<String>::new());
    assert_eq!(world.in_rows().await, 0);
}
