use std::time::Duration;

use crate::args::RampArgs;

/// The documents' figures: writes per second, partitions, writes per second of each.
const DOCUMENTED: [(f64, u16, f64); 4] =
    [(200.0, 1, 200.0), (900.0, 2, 450.0), (2_200.0, 3, 733.0), (4_000.0, 5, 800.0)];

/// A step is measured for this long at least: a whole second, and a look before and after it.
const MEASURED_MIN: Duration = Duration::from_millis(1_500);

/// How long a new rate may take to be met: two leases.
const SETTLES: Duration = Duration::from_secs(2);

pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) step: Duration,
    /// What is measured of a step begins this long after the step.
    pub(super) settles: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) offered_wcu_per_s: f64,
    /// What the documents promise for this rate, if they speak of it.
    pub(super) documented: Option<Documented>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Documented {
    pub(super) partitions: u16,
    pub(super) wcu_per_s_each: f64,
}

impl Plan {
    /// The documents' steps, scaled so that the last is the peak.
    pub(super) fn new(args: &RampArgs) -> Self {
        let (highest, ..) = DOCUMENTED[DOCUMENTED.len() - 1];
        let scale = f64::from(args.peak) / highest;
        let steps = DOCUMENTED.map(|(rate, partitions, wcu_per_s_each)| Step {
            offered_wcu_per_s: (rate * scale).max(1.0),
            documented: (scale == 1.0).then_some(Documented { partitions, wcu_per_s_each }),
        });
        let step = Duration::from_secs(args.duration.into()) / u32::try_from(steps.len()).unwrap_or(1);
        Self { steps: steps.to_vec(), step, settles: SETTLES.min(step.saturating_sub(MEASURED_MIN)) }
    }

    pub(super) fn duration(&self) -> Duration {
        self.step * u32::try_from(self.steps.len()).unwrap_or(1)
    }
}
