use std::time::Duration;

/// How often each fault strikes. Without any by default. Probabilities are in parts per thousand of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultPlan {
    pub writes: WriteFaults,
    pub reads: ReadFaults,
    /// The call takes its time before its effect, after it, or both.
    pub slow: u32,
    /// The longest of those pauses.
    pub slow_max: Duration,
    /// The longest that a late write is on its way.
    pub late_max: Duration,
    /// How far an eventual read may lag behind.
    pub stale_max: Duration,
}

/// At most one of these strikes a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteFaults {
    /// Nothing happens; the answer is `Unknown`.
    pub lost: u32,
    /// It happens; the answer is `Unknown`.
    pub unknown: u32,
    /// The answer is `Unknown`; it happens later.
    pub late: u32,
    pub throttled: u32,
    pub unavailable: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadFaults {
    pub throttled: u32,
    pub unavailable: u32,
    /// A page ends early, sometimes before its first row, and says where to go on.
    pub partial_page: u32,
    /// An eventual read answers from the past.
    pub stale: u32,
}

/// What struck a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    Lost,
    Unknown,
    Late,
    Throttled,
    Unavailable,
    PartialPage,
    Stale,
    Slow,
}

impl WriteFaults {
    /// The fault that a draw of `0..1000` stands for.
    pub(crate) fn at(self, draw: u64) -> Option<Fault> {
        strike(
            draw,
            [
                (self.lost, Fault::Lost),
                (self.unknown, Fault::Unknown),
                (self.late, Fault::Late),
                (self.throttled, Fault::Throttled),
                (self.unavailable, Fault::Unavailable),
            ],
        )
    }
}

impl ReadFaults {
    pub(crate) fn at(self, draw: u64) -> Option<Fault> {
        strike(draw, [(self.throttled, Fault::Throttled), (self.unavailable, Fault::Unavailable)])
    }
}

fn strike<const N: usize>(draw: u64, odds: [(u32, Fault); N]) -> Option<Fault> {
    let mut bound = 0;
    odds.into_iter().find_map(|(per_mille, fault)| {
        bound += u64::from(per_mille);
        (draw < bound).then_some(fault)
    })
}
