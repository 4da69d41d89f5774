//! The same on real servers, in real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rstest::rstest;
use saltern_backends::Moto;
use saltern_service::conversations::{ObjectLayout, PassReport};
use saltern_store::objects::{ObjectRoot, S3Options};

use crate::cases::{self, Damage, at};
use crate::stepping::At;
use crate::tables::table;
use crate::world::{SEGMENTS, SINGLES, World, none};

/// Most of the time they wait for others.
const AT_ONCE: usize = 16;

/// Each costs a table and a bucket: of two kinds one is tried at every even step, and the other at every odd one.
fn every_other(first: bool) -> impl Iterator<Item = u64> {
    (u64::from(!first)..).step_by(2)
}

/// A table and a bucket of its own.
async fn world(layout: ObjectLayout) -> World {
    static BUCKETS: AtomicU32 = AtomicU32::new(0);
    let bucket = format!("archive-{}", BUCKETS.fetch_add(1, Ordering::Relaxed));
    Moto::shared().create_bucket(&bucket);
    let endpoint = Some(Moto::shared().endpoint());
    let options = S3Options { bucket, prefix: None, endpoint, region: None, timeout: Duration::from_secs(30) };
    let objects = Arc::new(ObjectRoot::s3(options).await.unwrap());
    World { real: true, ..World::on(Arc::new(table().await), objects, layout) }
}

#[rstest]
#[tokio::test]
async fn what_is_due_goes_and_reads_the_same(#[values(SEGMENTS, SINGLES)] layout: ObjectLayout) {
    let world = world(layout).await;
    world.fill(1, 1..=600).await;
    world.days(91);
    world.fill(1, 601..=620).await;
    let server = world.server(7);
    let done = world.pass(&server).await.unwrap();
    assert_eq!((done.messages, done.objects), (600, if layout == SEGMENTS { 2 } else { 600 }));
    assert_eq!(world.object_names().await, world.referred().await);
    world.all_read(&world.server(8), 1, 620, &none()).await;
    assert_eq!(world.pass(&server).await.unwrap(), PassReport::default());
    assert_eq!(world.verify().await, Vec::<String>::new());
}

#[tokio::test]
async fn replays_are_told_from_others() {
    cases::archived_messages_are_sent_again(world(SEGMENTS).await).await;
}

#[tokio::test]
async fn a_pass_costs_what_is_due() {
    cases::the_cost_of_a_pass_is_counted(world(SEGMENTS).await, 5, 20).await;
}

#[tokio::test]
async fn a_page_takes_two_requests_at_the_most() {
    cases::the_requests_of_pages_are_counted(world(SEGMENTS).await).await;
}

#[tokio::test]
async fn holes_keep_nothing_from_going() {
    cases::rows_lie_behind_holes(world(SEGMENTS).await).await;
}

#[rstest]
#[tokio::test]
async fn a_missing_or_damaged_object_is_told(#[values(Damage::Deleted, Damage::CutShort, Damage::Byte)] what: Damage) {
    cases::an_object_is_damaged(world(SEGMENTS).await, what).await;
}

#[rstest]
#[tokio::test]
async fn a_crash_at_any_step_loses_nothing(
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
    #[values(At::CrashBefore, At::CrashAfter)] what: At,
) {
    at(every_other(what == At::CrashBefore), AT_ONCE, |step| async move {
        cases::a_pass_crashes(world(layout).await, 4, step, what).await
    })
    .await;
}

#[rstest]
#[tokio::test]
async fn an_erasure_can_crash_at_any_step(
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
    #[values(At::CrashBefore, At::CrashAfter)] what: At,
) {
    at(every_other(what == At::CrashBefore), AT_ONCE, |step| async move {
        cases::an_erasure_crashes(world(layout).await, step, what).await
    })
    .await;
}

#[rstest]
#[tokio::test]
async fn a_pass_that_wakes_up_late_does_no_harm(#[values(SEGMENTS, SINGLES)] layout: ObjectLayout) {
    at(every_other(layout == SEGMENTS), AT_ONCE, |step| async move {
        cases::a_pass_wakes_up_late(world(layout).await, step).await
    })
    .await;
}

#[tokio::test]
async fn an_erasure_that_wakes_up_late_does_no_harm() {
    at(0.., AT_ONCE, |step| async move { cases::an_erasure_wakes_up_late(world(SEGMENTS).await, step).await }).await;
}
