//! What a run takes of the machine's processors, whoever takes it: load, server, and the kernel for both. Unlike a rate, it leaves
//! out what idles because the threads of both did not find their way onto the cores.

use std::time::{Duration, Instant};

/// The machine's clocks of work, where it has them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processors {
    ticks: Ticks,
    read: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    /// With idle time, of all cores together.
    all: u64,
    cores: u32,
}

impl Processors {
    pub(super) fn read() -> Option<Self> {
        let ticks = Ticks::parse(&std::fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { ticks, read: Instant::now() })
    }

    /// Processor time since then.
    pub(super) fn busy_since(&self) -> Option<Duration> {
        let now = Self::read()?;
        now.ticks.share_since(self.ticks).map(|share| (now.read - self.read).mul_f64(share))
    }
}

impl Ticks {
    /// `cpu user nice system idle iowait irq softirq steal …` for all cores, and a line like it for each.
    fn parse(stat: &str) -> Option<Self> {
        let mut lines = stat.lines().take_while(|line| line.starts_with("cpu"));
        let ticks: Vec<u64> = lines.next()?.split_whitespace().skip(1).take(8).map_while(|n| n.parse().ok()).collect();
        let [user, nice, system, idle, io, irq, softirq, stolen] = *ticks else { return None };
        let busy = user + nice + system + irq + softirq;
        Some(Self { busy, all: busy + idle + io + stolen, cores: u32::try_from(lines.count()).ok()? })
    }

    /// How many cores were busy on average.
    fn share_since(self, before: Self) -> Option<f64> {
        let (busy, all) = (self.busy.checked_sub(before.busy)?, self.all.checked_sub(before.all)?);
        (all > 0).then(|| f64::from(self.cores) * busy as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_waiting_and_stolen_time_is_no_work() {
        let before = "cpu  10 1 10 100 5 1 3 7 0 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 7 cpu\n";
        let after = "cpu  70 2 30 150 25 2 12 17 9 9\ncpu0 1 2 3\ncpu1 1 2 3\nintr 7 cpu\n";
        let [before, after] = [before, after].map(|stat| Ticks::parse(stat).unwrap());
        assert_eq!(before, Ticks { busy: 25, all: 137, cores: 2 });
        let share = after.share_since(before).unwrap();
        assert!((share - 2.0 * 91.0 / 171.0).abs() < 1e-9, "{share}");
        assert_eq!(before.share_since(before), None);
        assert_eq!(Ticks::parse("cpu 1 2\n"), None);
    }
}
