//! Whatever goes wrong at whatever step, in memory.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use rstest::rstest;
use saltern_service::conversations::ObjectLayout;
use saltern_store::Capabilities;
use saltern_store::objects::{ObjectError, ObjectPage, Objects};
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

/// Object storage that once says of an object that it is not there, though it is.
struct Forgetful {
    objects: Arc<dyn Objects>,
    gets: AtomicU64,
    forgotten: u64,
}

#[async_trait]
impl Objects for Forgetful {
    fn root(&self) -> &str {
        self.objects.root()
    }

    async fn put(&self, name: &str, bytes: Bytes) -> Result<(), ObjectError> {
        self.objects.put(name, bytes).await
    }

    async fn get(&self, name: &str, range: Option<Range<u64>>) -> Result<Bytes, ObjectError> {
        if self.gets.fetch_add(1, Ordering::SeqCst) == self.forgotten {
            return Err(ObjectError::Missing);
        }
        self.objects.get(name, range).await
    }

    async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        self.objects.delete(name).await
    }

    async fn list(&self, folder: &str, behind: Option<&str>, limit: usize) -> Result<ObjectPage, ObjectError> {
        self.objects.list(folder, behind, limit).await
    }
}

/// One wrong answer of object storage during an erasure takes no other content with it, whichever answer it is.
#[rstest]
#[tokio::test(start_paused = true)]
async fn an_object_that_is_not_found_once_loses_nothing(#[values(EMBEDDED, CLOUD)] capabilities: Capabilities) {
    for forgotten in 0.. {
        let world = World::new(capabilities, SEGMENTS);
        world.fill(1, 1..=40).await;
        world.days(91);
        world.pass(&world.server(7)).await.unwrap();
        let gets = AtomicU64::new(0);
        let forgetful = Arc::new(Forgetful { objects: Arc::clone(&world.objects), gets, forgotten });
        let beneath = World { objects: Arc::clone(&forgetful) as _, ..world.clone() };
        let outcome = beneath.server(8).erase(&conversation(1), seq(7)).await;
        let server = world.server(9);
        if outcome.is_ok() {
            world.all_read(&server, 1, 40, &BTreeSet::from([7])).await;
        }
        server.erase(&conversation(1), seq(7)).await.unwrap();
        world.all_read(&world.server(10), 1, 40, &BTreeSet::from([7])).await;
        assert_eq!(world.verify().await, Vec::<String>::new(), "{forgotten}");
        assert_eq!(world.places_of(7).await, Vec::<String>::new(), "{forgotten}");
        if forgetful.gets.load(Ordering::SeqCst) <= forgotten {
            assert!(forgotten > 2, "an erasure asks for the object more often");
            break;
        }
    }
}
