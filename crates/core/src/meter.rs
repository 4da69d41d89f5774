//! The rate of a conversation, from two counters.

/// The length of a window.
pub const WINDOW_MS: u64 = 1_000;

/// A sliding window of one second, approximated by the full window before and the part of the present one.
///
/// Its parts are open to those who count elsewhere, and have the rate computed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meter {
    /// Windows since the clock began, up to the present one.
    pub window: u64,
    /// WCU counted in the window before.
    pub before: u64,
    /// WCU counted in the present one so far.
    pub present: u64,
}

impl Meter {
    pub fn add(&mut self, now_ms: u64, wcu: u64) {
        self.turn(now_ms);
        self.present = self.present.saturating_add(wcu);
    }

    #[must_use]
    pub fn rate_per_s(mut self, now_ms: u64) -> f64 {
        self.turn(now_ms);
        let passed = as_f64(now_ms % WINDOW_MS) / as_f64(WINDOW_MS);
        as_f64(self.before) * (1.0 - passed) + as_f64(self.present)
    }

    fn turn(&mut self, now_ms: u64) {
        let window = now_ms / WINDOW_MS;
        if window <= self.window {
            return;
        }
        self.before = if window == self.window + 1 { self.present } else { 0 };
        self.present = 0;
        self.window = window;
    }
}

fn as_f64(n: u64) -> f64 {
    // Rates are far below 2^53.
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_is_read_steadily() {
        let mut meter = Meter::default();
        for ms in 0..10_000 {
            meter.add(ms, 4);
            if ms > 1_000 {
                assert!((meter.rate_per_s(ms) - 4_000.0).abs() < 10.0, "at {ms}: {}", meter.rate_per_s(ms));
            }
        }
    }

    #[test]
    fn silence_is_noticed_within_two_seconds() {
        let mut meter = Meter::default();
        meter.add(500, 1_000);
        assert_eq!(meter.rate_per_s(999), 1_000.0);
        assert_eq!(meter.rate_per_s(1_500), 500.0);
        assert_eq!(meter.rate_per_s(2_000), 0.0);
    }

    #[test]
    fn a_meter_goes_on_from_its_parts() {
        let mut whole = Meter::default();
        whole.add(1_200, 30);
        whole.add(2_100, 5);
        let parts = Meter { window: 2, before: 30, present: 5 };
        assert_eq!(whole, parts);
        assert_eq!(parts.rate_per_s(2_500), 20.0);
    }

    #[test]
    fn a_clock_that_steps_back_loses_nothing() {
        let mut meter = Meter::default();
        meter.add(5_000, 10);
        meter.add(4_000, 5);
        assert_eq!(meter.rate_per_s(5_000), 15.0);
    }
}
