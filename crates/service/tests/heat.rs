//! Dynamic n from end to end: traffic, meter, decision, layout, partition limits. On a virtual clock.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod traffic;

use std::time::Duration;

use traffic::{Second, Traffic};

/// Enough that no two of the few salts here meet.
const MANY: u32 = 1_000;

fn throttled(seconds: &[Second]) -> u64 {
    seconds.iter().map(|second| second.throttled).sum()
}

/// The documents' ramp: 1, 2, 3, 5 partitions, and none of them ever too hot.
#[tokio::test(start_paused = true)]
async fn a_ramp_takes_one_two_three_five_partitions_without_a_throttle() {
    let mut traffic = Traffic::on(MANY, "ramp");
    assert_eq!(traffic.collisions(5), 1);
    for (wcu_per_s, n) in [(200, 1), (900, 2), (2_200, 3), (4_000, 5)] {
        let seconds = traffic.steady(wcu_per_s, 8).await;
        let settled = &seconds[2..];
        assert!(settled.iter().all(|second| second.n == n), "{wcu_per_s}: {seconds:?}");
        assert!(settled.iter().all(|second| second.busiest_wcu <= 1_000), "{wcu_per_s}: {seconds:?}");
        assert_eq!(throttled(&seconds), 0, "{wcu_per_s}: {seconds:?}");
    }
    let spreads = traffic.spreads().await;
    assert!(spreads.is_sorted() && spreads.len() <= 6, "{spreads:?}");
    assert_eq!(traffic.settle().await, (8 * (200 + 900 + 2_200 + 4_000), 0));
}

/// Forty times the traffic from one second to the next: what piles up before n has grown is late, not lost. It may make n
/// double once, if it takes long to drain.
#[tokio::test(start_paused = true)]
async fn a_spike_is_delayed_not_lost() {
    let mut traffic = Traffic::on(MANY, "spike");
    assert_eq!(traffic.collisions(10), 1);
    traffic.steady(200, 4).await;
    let spike = traffic.steady(8_000, 8).await;
    assert!(throttled(&spike[5..]) == 0, "{spike:?}");
    assert!((10..=20).contains(&spike[7].n), "{spike:?}");
    traffic.steady(200, 4).await;
    assert_eq!(traffic.settle().await.1, 0);
}

/// Five minutes of calm, and the spread goes back: once, and all the way.
#[tokio::test(start_paused = true)]
async fn a_cliff_shrinks_once() {
    let mut traffic = Traffic::on(MANY, "cliff");
    traffic.steady(4_000, 4).await;
    let calm = traffic.steady(50, 700).await;
    assert!(calm[..300].iter().all(|second| second.n == 5));
    assert_eq!(calm[699].n, 1);
    let spreads = traffic.spreads().await;
    assert_eq!(&spreads[spreads.len() - 2..], [5, 1], "{spreads:?}");
    traffic.settle().await;
}

/// Peaks that come back within five minutes find the spread that they left.
#[tokio::test(start_paused = true)]
async fn a_saw_does_not_flap() {
    let mut traffic = Traffic::on(MANY, "saw");
    traffic.steady(4_000, 3).await;
    let grown = traffic.spreads().await;
    for _ in 0..4 {
        traffic.steady(60, 200).await;
        let tooth = traffic.steady(4_000, 3).await;
        assert_eq!(throttled(&tooth), 0, "{tooth:?}");
    }
    assert_eq!(traffic.spreads().await, grown);
    assert_eq!(grown.last(), Some(&5));
    traffic.settle().await;
}

/// A rate that wobbles around a threshold takes one step, not many.
#[tokio::test(start_paused = true)]
async fn a_wobble_does_not_flap() {
    let mut traffic = Traffic::on(MANY, "wobble");
    for _ in 0..20 {
        traffic.steady(780, 1).await;
        traffic.steady(860, 1).await;
    }
    let spreads = traffic.spreads().await;
    assert!(spreads.len() <= 2, "{spreads:?}");
    traffic.settle().await;
}

/// After a silence the rest of the lease still has its old place; from then on one partition is enough, for readers too.
#[tokio::test(start_paused = true)]
async fn an_idle_conversation_cools_down_to_one_partition() {
    let mut traffic = Traffic::on(MANY, "idle");
    traffic.steady(4_000, 4).await;
    traffic.silence(Duration::from_secs(3_600)).await;
    let lease_at_most = 2 * 4_096;
    let again = traffic.steady(400, lease_at_most / 400).await;
    assert_eq!(again.last().unwrap().n, 1);
    let last_epoch = traffic.layout().await.unwrap().newest_epoch();
    assert_eq!(last_epoch.n, 1);
    traffic.steady(400, 6).await;
    let asked = traffic.service.metrics().read_partitions.get();
    let page = traffic.service.older(&traffic.conversation, None, 20).await.unwrap();
    assert!(page.messages.last().unwrap().seq >= last_epoch.from, "the page reaches back into the hot time");
    assert_eq!(traffic.service.metrics().read_partitions.get() - asked, 1);
    traffic.settle().await;
}

/// Salts that meet on one physical partition: n rises beyond what the rate needs, until they are thin enough.
#[tokio::test(start_paused = true)]
async fn colliding_salts_are_spread_wider_within_ten_seconds() {
    for name in ["collision-a", "collision-b", "collision-c"] {
        let mut traffic = Traffic::on(50, name);
        for wcu_per_s in [1_000, 2_000, 4_000] {
            traffic.steady(wcu_per_s, 3).await;
        }
        traffic.steady(8_000, 10).await;
        let then = traffic.steady(8_000, 5).await;
        assert_eq!(throttled(&then), 0, "{name}: {} on one, {:?}", traffic.collisions(10), traffic.seconds);
        let widened = then[0].n > 10;
        assert_eq!(widened, traffic.collisions(10) > 1, "{name}: {:?}", traffic.spreads().await);
        assert_eq!(traffic.settle().await.1, 0);
    }
}
