//! What a run yields, and what several runs of two sides amount to.

use std::time::Duration;

use serde::Serialize;

use crate::histogram::Histogram;

/// One side of one run.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    pub(super) done: u64,
    pub(super) errors: u64,
    pub(super) elapsed: Duration,
    pub(super) latency: Histogram,
    /// What the whole machine worked meanwhile, if that was measured.
    pub(super) worked: Option<Duration>,
}

impl Measured {
    /// Processor time for each, all of the machine's taken together.
    fn worked_us(&self) -> Option<f64> {
        self.worked.map(|worked| worked.as_secs_f64() * 1e6 / (self.done.max(1) as f64))
    }

    pub(super) fn per_s(&self) -> f64 {
        self.done as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Joins what another connection did at the same time.
    pub(super) fn add(&mut self, other: &Self) {
        self.done += other.done;
        self.errors += other.errors;
        self.elapsed = self.elapsed.max(other.elapsed);
        self.latency.add(&other.latency);
    }
}

/// The runs of one side: medians.
#[derive(Debug, Serialize)]
pub(super) struct Side {
    pub(super) per_s: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// Processor time of load, server and kernel for each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) worked_us: Option<f64>,
    pub(super) errors: u64,
}

impl Side {
    pub(super) fn of<'a>(runs: impl Iterator<Item = &'a Measured> + Clone) -> Self {
        let of = |figure: &dyn Fn(&Measured) -> f64| Spread::of(runs.clone().map(figure)).median;
        Self {
            per_s: of(&Measured::per_s),
            p50_ms: of(&|run| run.latency.percentile_ms(0.5)),
            p99_ms: of(&|run| run.latency.percentile_ms(0.99)),
            worked_us: runs
                .clone()
                .map(Measured::worked_us)
                .collect::<Option<Vec<_>>>()
                .map(|us| Spread::of(us.into_iter()).median),
            errors: runs.clone().map(|run| run.errors).sum(),
        }
    }
}

/// A figure over several runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    pub(super) fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (values.first(), values.last()) else {
            return Self { median: 0.0, min: 0.0, max: 0.0 };
        };
        let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
        Self { median, min: *min, max: *max }
    }
}

/// Ours beside a peer's, run by run.
#[derive(Debug, Serialize)]
pub(super) struct Comparison {
    pub(super) what: String,
    pub(super) peer_is: &'static str,
    /// Our rate over the peer's of the same run.
    pub(super) ratio: Spread,
    pub(super) saltern: Side,
    pub(super) peer: Side,
}

impl Comparison {
    pub(super) fn of(what: String, peer_is: &'static str, runs: &[(Measured, Measured)]) -> Self {
        Self {
            what,
            peer_is,
            ratio: Spread::of(runs.iter().map(|(ours, peer)| ours.per_s() / peer.per_s().max(f64::MIN_POSITIVE))),
            saltern: Side::of(runs.iter().map(|(ours, _)| ours)),
            peer: Side::of(runs.iter().map(|(_, peer)| peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_taken_run_by_run() {
        let run = |done| Measured { done, elapsed: Duration::from_secs(1), ..Measured::default() };
        let runs = [(run(10), run(20)), (run(90), run(100)), (run(30), run(40))];
        let comparison = Comparison::of("x".into(), "y", &runs);
        assert_eq!(comparison.ratio, Spread { median: 0.75, min: 0.5, max: 0.9 });
        assert_eq!((comparison.saltern.per_s, comparison.peer.per_s), (30.0, 40.0));
    }

    #[test]
    fn an_even_number_of_runs_has_its_median_in_the_middle() {
        assert_eq!(Spread::of([4.0, 1.0, 3.0, 2.0].into_iter()).median, 2.5);
    }
}
