//! Rates, from counters that only rise.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use saltern_store::throttled::PartitionLoad;

/// Rates are over the last second.
const WINDOW: Duration = Duration::from_secs(1);

/// What the counters showed at one moment.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) acked: usize,
    pub(super) partitions: Vec<PartitionLoad>,
}

impl Reading {
    pub(super) fn throttled(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.throttled_writes).sum()
    }
}

/// The readings of the last second.
#[derive(Debug, Default)]
pub(super) struct Gauge(VecDeque<Reading>);

impl Gauge {
    pub(super) fn read(&mut self, reading: Reading) {
        let at = reading.at;
        self.0.push_back(reading);
        // One that is a whole window old stays, so that a full second can be told.
        while self.0.get(1).is_some_and(|second| at - second.at >= WINDOW) {
            self.0.pop_front();
        }
    }

    pub(super) fn last(&self) -> Option<&Reading> {
        self.0.back()
    }

    /// Since when the present rates are.
    pub(super) fn since(&self) -> Option<Instant> {
        let (first, last) = self.ends()?;
        (last.at - first.at >= WINDOW).then_some(first.at)
    }

    pub(super) fn acked_per_s(&self) -> f64 {
        self.ends().map_or(0.0, |(first, last)| rate(first, last, (last.acked - first.acked) as f64))
    }

    /// Write units per second of each physical partition.
    pub(super) fn wcu_per_s(&self) -> Vec<f64> {
        let Some((first, last)) = self.ends() else { return Vec::new() };
        let pairs = first.partitions.iter().zip(&last.partitions);
        pairs.map(|(then, now)| rate(first, last, (now.write_units - then.write_units) as f64)).collect()
    }

    fn ends(&self) -> Option<(&Reading, &Reading)> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        (first.at < last.at).then_some((first, last))
    }
}

fn rate(first: &Reading, last: &Reading, gain: f64) -> f64 {
    gain / (last.at - first.at).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_of_the_last_second() {
        let (mut gauge, start) = (Gauge::default(), Instant::now());
        for i in 0..20_u32 {
            let at = start + Duration::from_millis(200) * i;
            let write_units = u64::from(i * 100).min(1_000);
            let partitions = vec![PartitionLoad { write_units, ..PartitionLoad::default() }];
            gauge.read(Reading { at, acked: 10 * i as usize, partitions });
            assert_eq!(gauge.since().is_some(), i >= 5);
            if i == 8 {
                assert_eq!((gauge.wcu_per_s(), gauge.acked_per_s()), (vec![500.0], 50.0));
            }
        }
        assert_eq!(gauge.wcu_per_s(), [0.0]);
    }
}
