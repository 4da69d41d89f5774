//! Whatever goes wrong at whatever step, in memory.

use std::collections::BTreeSet;
use std::time::Duration;

use rstest::rstest;
use saltern_service::conversations::ObjectLayout;
use saltern_store::Capabilities;
use tokio_util::sync::CancellationToken;

use crate::cases::{self, Damage, at};
use crate::stepping::{At, Steps};
use crate::world::{CLOUD, EMBEDDED, SEGMENTS, SINGLES, World, conversation, none, pass, seq};

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_missing_or_damaged_object_is_told(#[values(Damage::Deleted, Damage::CutShort, Damage::Byte)] what: Damage) {
    cases::an_object_is_damaged(World::new(CLOUD, SEGMENTS), what).await;
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_crash_at_any_step_loses_nothing(
    #[values(EMBEDDED, CLOUD)] capabilities: Capabilities,
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
    #[values(At::CrashBefore, At::CrashAfter)] what: At,
) {
    let count = if layout == SEGMENTS && capabilities == EMBEDDED { 520 } else { 12 };
    let world = || World::new(capabilities, layout);
    at(0.., 1, |step| cases::a_pass_crashes(world(), count, step, what)).await;
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn an_erasure_can_crash_at_any_step(
    #[values(EMBEDDED, CLOUD)] capabilities: Capabilities,
    #[values(SEGMENTS, SINGLES)] layout: ObjectLayout,
    #[values(At::CrashBefore, At::CrashAfter)] what: At,
) {
    let world = || World::new(capabilities, layout);
    at(0.., 1, |step| cases::an_erasure_crashes(world(), step, what)).await;
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_pass_that_wakes_up_late_does_no_harm(#[values(SEGMENTS, SINGLES)] layout: ObjectLayout) {
    at(0.., 1, |step| cases::a_pass_wakes_up_late(World::new(CLOUD, layout), step)).await;
}

#[tokio::test(start_paused = true)]
async fn an_erasure_that_wakes_up_late_does_no_harm() {
    at(0.., 1, |step| cases::an_erasure_wakes_up_late(World::new(CLOUD, SEGMENTS), step)).await;
}

/// A pass wakes up while another, which has taken over, is in the middle, and dies some steps later; then the other goes on.
#[tokio::test(start_paused = true)]
async fn passes_that_overtake_each_other_lose_nothing() {
    for (first, last, second) in (0..16).flat_map(|a| (a..a + 12).flat_map(move |b| (0..24).map(move |c| (a, b, c)))) {
        let world = World::new(CLOUD, SEGMENTS);
        world.fill(1, 1..=3).await;
        world.days(91);
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
        assert_eq!(
            (world.object_names().await, world.in_rows().await),
            (world.referred().await, 0),
            "{first}, {last}, {second}"
        );
        assert_eq!(world.verify().await, Vec::<String>::new(), "{first}, {last}, {second}");
        reader.abort();
        cases::at_rest(&world, first).await;
    }
}

/// A message that is erased between a pass's look at it and its object is not in use afterwards.
#[rstest]
#[tokio::test(start_paused = true)]
async fn an_erasure_in_the_middle_of_a_pass_is_noticed(#[values(SEGMENTS, SINGLES)] layout: ObjectLayout) {
    for (erasing, passing) in (0..30).flat_map(|a| (0..30).map(move |b| (a, b))) {
        let world = World::new(CLOUD, layout);
        world.fill(1, 1..=3).await;
        world.days(91);
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
        cases::at_rest(&world, erasing).await;
    }
}
