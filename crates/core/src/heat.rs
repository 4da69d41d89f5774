//! How wide a conversation spreads: `n = ceil(rate / 800)`, with a little slack; up at once, down slowly.

use crate::limits::{N_MAX, TARGET_WCU_PER_S};

/// The knobs of the decision. The defaults are the product's; tests and simulations scale them down.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatPolicy {
    /// Load that one salt is planned to carry.
    pub target_wcu_per_s: f64,
    /// How far above the target a rate must be before n grows, as a part of the target: a steady rate is never measured
    /// quite steadily, and 4,000 WCU/s must not become 6 salts because a second once held 4,010.
    pub growth_slack: f64,
    /// `n_min == n_max` fixes n.
    pub n_min: u16,
    pub n_max: u16,
    /// A rate counts as low while it would fit a smaller n at this fraction of the target.
    pub shrink_fill: f64,
    /// How long a rate must stay low before n shrinks.
    pub shrink_after_ms: u64,
    /// Rows that must be throttled before n widens. Salts that overload a physical partition by themselves meet this at
    /// once; what merely waits behind them for the partition to drain does not, so a widening comes to its end.
    pub widen_from_wcu_per_s: f64,
    /// Time from a growth of n, for whatever reason, to a widening: the growth must be able to show its effect.
    pub widen_cooldown_ms: u64,
    /// How many times as wide as the rate needs throttles may make n. Salts as thin as that cannot overload a partition
    /// by meeting there: it is the table that is full, and a wider spread would only cost readers.
    pub widen_max: u16,
    /// How long a widened n is kept, though the rate alone would not need it.
    pub widen_hold_ms: u64,
}

impl Default for HeatPolicy {
    fn default() -> Self {
        Self {
            target_wcu_per_s: TARGET_WCU_PER_S,
            growth_slack: 0.025,
            n_min: 1,
            n_max: N_MAX,
            shrink_fill: 0.75,
            shrink_after_ms: 5 * 60_000,
            widen_from_wcu_per_s: 0.3 * TARGET_WCU_PER_S,
            widen_cooldown_ms: 1_000,
            widen_max: 8,
            widen_hold_ms: 60 * 60_000,
        }
    }
}

/// What the registry measures.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    pub rate_wcu_per_s: f64,
    /// Rows of the newest epoch that the store throttled at their first attempt.
    pub throttled_wcu_per_s: f64,
}

/// What a decision has to remember; part of the control record, so that any server can go on from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeatState {
    /// Since when the rate has been low without a break.
    pub low_since_ms: Option<u64>,
    /// When throttles last widened the spread.
    pub widened_at_ms: Option<u64>,
    /// When the rate last made n grow.
    pub grown_at_ms: Option<u64>,
}

/// The next n, given the present one.
///
/// - A rate that needs more salts gets them at once.
/// - Throttles though the rate should fit mean that salts collide on a physical partition: n doubles, once
///   per cooldown, and is held for a while.
/// - A rate that has been low for long enough gets what it needs with headroom, never below.
#[must_use]
pub fn decide(policy: &HeatPolicy, state: HeatState, n: u16, sample: Sample, now_ms: u64) -> (u16, HeatState) {
    let since = |then: u64| now_ms.saturating_sub(then);
    let wanted = policy.needed(sample.rate_wcu_per_s, 1.0 + policy.growth_slack);
    if wanted > n {
        return (wanted, HeatState { low_since_ms: None, grown_at_ms: Some(now_ms), ..state });
    }
    let cooling = state.grown_at_ms.max(state.widened_at_ms).is_some_and(|at| since(at) < policy.widen_cooldown_ms);
    let widest = wanted.saturating_mul(policy.widen_max).min(policy.n_max);
    if sample.throttled_wcu_per_s >= policy.widen_from_wcu_per_s && !cooling && n < widest {
        let doubled = n.saturating_mul(2).min(widest);
        return (doubled, HeatState { low_since_ms: None, widened_at_ms: Some(now_ms), ..state });
    }
    let roomy = policy.needed(sample.rate_wcu_per_s, policy.shrink_fill);
    let held = state.widened_at_ms.is_some_and(|at| since(at) < policy.widen_hold_ms);
    if roomy >= n || held {
        return (n, HeatState { low_since_ms: None, ..state });
    }
    let low_since = state.low_since_ms.unwrap_or(now_ms);
    if since(low_since) < policy.shrink_after_ms {
        return (n, HeatState { low_since_ms: Some(low_since), ..state });
    }
    (roomy, HeatState::default())
}

impl HeatPolicy {
    /// Salts for a rate when each is filled to this part of its target.
    fn needed(&self, rate_wcu_per_s: f64, fill: f64) -> u16 {
        let salts = (rate_wcu_per_s / (self.target_wcu_per_s * fill)).ceil();
        (self.n_min..self.n_max).find(|&n| f64::from(n) >= salts).unwrap_or(self.n_max)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const MINUTE_MS: u64 = 60_000;

    fn rate(rate_wcu_per_s: f64) -> Sample {
        Sample { rate_wcu_per_s, throttled_wcu_per_s: 0.0 }
    }

    /// The documents' figures.
    #[rstest]
    #[case(0.0, 1)]
    #[case(200.0, 1)]
    #[case(800.0, 1)]
    #[case(819.0, 1)]
    #[case(821.0, 2)]
    #[case(900.0, 2)]
    #[case(2_200.0, 3)]
    #[case(4_000.0, 5)]
    #[case(4_099.0, 5)]
    #[case(1e9, 256)]
    fn growth_is_exact_and_immediate(#[case] wcu_per_s: f64, #[case] n: u16) {
        let (decided, _) = decide(&HeatPolicy::default(), HeatState::default(), 1, rate(wcu_per_s), 0);
        assert_eq!(decided, n);
    }

    /// Plays a trace of one sample per second; answers every change of n with its second.
    fn play(trace: impl IntoIterator<Item = Sample>) -> Vec<(u64, u16)> {
        let (mut n, mut state, mut changes) = (1, HeatState::default(), Vec::new());
        for (second, sample) in (0..).zip(trace) {
            let (next, then) = decide(&HeatPolicy::default(), state, n, sample, second * 1_000);
            if next != n {
                changes.push((second, next));
            }
            (n, state) = (next, then);
        }
        changes
    }

    fn steady(wcu_per_s: f64, seconds: usize) -> impl Iterator<Item = Sample> {
        std::iter::repeat_n(rate(wcu_per_s), seconds)
    }

    #[test]
    fn ramp_goes_one_two_three_five() {
        let ramp = [200.0, 900.0, 2_200.0, 4_000.0].into_iter().flat_map(|r| steady(r, 10));
        assert_eq!(play(ramp), [(10, 2), (20, 3), (30, 5)]);
    }

    #[test]
    fn a_cliff_shrinks_once_after_five_minutes() {
        let trace = steady(4_000.0, 10).chain(steady(100.0, 1_000));
        assert_eq!(play(trace), [(0, 5), (310, 1)]);
    }

    #[test]
    fn a_saw_with_peaks_inside_five_minutes_does_not_flap() {
        let tooth = || steady(4_000.0, 20).chain(steady(100.0, 240));
        assert_eq!(play(std::iter::repeat_with(tooth).take(20).flatten()), [(0, 5)]);
    }

    #[test]
    fn a_rate_that_wobbles_around_a_threshold_does_not_flap() {
        let wobble = |by: f64| (0..5_000).map(move |i| rate(800.0 + if i % 2 == 0 { -by } else { by }));
        assert_eq!(play(wobble(15.0)), []);
        assert_eq!(play(wobble(50.0)), [(1, 2)]);
    }

    #[test]
    fn a_spike_grows_at_once_and_is_forgotten_once() {
        let trace = steady(100.0, 5).chain(steady(8_000.0, 1)).chain(steady(100.0, 1_000));
        assert_eq!(play(trace), [(5, 10), (306, 1)]);
    }

    #[test]
    fn throttles_double_once_per_cooldown_up_to_eight_times_the_need() {
        let colliding = std::iter::repeat_n(Sample { rate_wcu_per_s: 1_500.0, throttled_wcu_per_s: 300.0 }, 10);
        let trace = colliding.chain(steady(1_500.0, 200));
        assert_eq!(play(trace), [(0, 2), (1, 4), (2, 8), (3, 16)]);
    }

    #[test]
    fn a_widened_spread_is_held_and_then_let_go() {
        let throttled = std::iter::once(Sample { rate_wcu_per_s: 700.0, throttled_wcu_per_s: 400.0 });
        let trace = throttled.chain(steady(700.0, 2 * 3_600));
        let hold_s = HeatPolicy::default().widen_hold_ms / 1_000;
        // 700 WCU/s fits one salt, but not with the headroom that shrinking asks for.
        assert_eq!(play(trace), [(0, 2)]);
        let trace = std::iter::once(Sample { rate_wcu_per_s: 500.0, throttled_wcu_per_s: 400.0 })
            .chain(steady(500.0, 2 * 3_600));
        assert_eq!(play(trace), [(0, 2), (hold_s + 5 * MINUTE_MS / 1_000, 1)]);
    }

    #[test]
    fn a_few_throttles_are_what_waits_for_a_partition_to_drain() {
        assert_eq!(play(std::iter::repeat_n(Sample { rate_wcu_per_s: 700.0, throttled_wcu_per_s: 200.0 }, 100)), []);
    }

    #[test]
    fn a_growth_is_given_time_to_show_its_effect() {
        let policy = HeatPolicy::default();
        let sample = Sample { rate_wcu_per_s: 3_900.0, throttled_wcu_per_s: 900.0 };
        let (n, state) = decide(&policy, HeatState::default(), 1, sample, 0);
        let (at_once, _) = decide(&policy, state, n, sample, policy.widen_cooldown_ms - 1);
        let (later, _) = decide(&policy, state, n, sample, policy.widen_cooldown_ms);
        assert_eq!((n, at_once, later), (5, 5, 10));
    }

    #[rstest]
    #[case(1)]
    #[case(7)]
    fn a_fixed_n_stays(#[case] n: u16) {
        let policy = HeatPolicy { n_min: n, n_max: n, ..HeatPolicy::default() };
        let mut state = HeatState::default();
        for (second, wcu_per_s) in (0..).zip([0.0, 5_000.0, 100.0, 0.0]) {
            let sample = Sample { rate_wcu_per_s: wcu_per_s, throttled_wcu_per_s: 999.0 };
            let (decided, next) = decide(&policy, state, n, sample, second * 1_000_000);
            assert_eq!(decided, n);
            state = next;
        }
    }

    #[test]
    fn n_never_leaves_its_bounds() {
        let endless = std::iter::repeat_n(Sample { rate_wcu_per_s: f64::MAX, throttled_wcu_per_s: f64::MAX }, 100);
        assert_eq!(play(endless), [(0, N_MAX)]);
    }
}
