//! Load that does not wait for its answers: so much per second, whatever becomes of it.

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

const TICK: Duration = Duration::from_millis(5);

/// Calls `send` at a steady rate for a while. A late tick is made up for by the next.
pub(crate) async fn offer(per_s: f64, duration: Duration, mut send: impl FnMut()) {
    let started = Instant::now();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut sent = 0.0;
    loop {
        ticks.tick().await;
        let passed = started.elapsed().min(duration);
        while sent + 1.0 <= passed.as_secs_f64() * per_s {
            send();
            sent += 1.0;
        }
        if passed == duration {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn as_many_are_sent_as_were_asked_for() {
        let mut sent = 0;
        offer(1_000.0, Duration::from_millis(100), || sent += 1).await;
        assert_eq!(sent, 100);
    }
}
