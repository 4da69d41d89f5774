//! The control record: the durable truth about a conversation's layout, and the only way it changes.

use crate::archive::ArchiveState;
use crate::heat::{self, HeatPolicy, HeatState, Sample};
use crate::layout::Layout;
use crate::limits::{LEASE_MAX, LEASE_MIN, SEQ_NO_END};
use crate::seq::{SeqNo, SeqRange};
use crate::voids::VoidRuns;

/// Changed only by compare-and-set on `ver`; never deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlRecord {
    pub ver: u64,
    pub layout: Layout,
    /// Every seq_no below has a row. A lazy lower bound.
    pub resolved: SeqNo,
    /// The last step of the horizon.
    pub lease: u64,
    pub extended_at_ms: u64,
    pub heat: HeatState,
    pub voids: VoidRuns,
    pub archive: ArchiveState,
}

/// What an extension goes by.
#[derive(Debug, Clone, Copy)]
pub struct Extension<'a> {
    pub policy: &'a HeatPolicy,
    /// seq_nos that must fit below the new horizon: the next to issue, and how many.
    pub next: SeqNo,
    pub count: u64,
    pub sample: Sample,
    pub resolved: SeqNo,
    pub now_ms: u64,
}

/// A lease is meant to last about a second.
const LEASE_SHORT_MS: u64 = 500;
const LEASE_LONG_MS: u64 = 2_000;

impl ControlRecord {
    /// The record of a new conversation, with room for the first `count` messages.
    #[must_use]
    pub fn create(count: u64, now_ms: u64) -> Self {
        let lease = count.clamp(LEASE_MIN, LEASE_MAX);
        Self {
            ver: 1,
            layout: Layout::new(lease),
            resolved: SeqNo::FIRST,
            lease,
            extended_at_ms: now_ms,
            heat: HeatState::default(),
            voids: VoidRuns::default(),
            archive: ArchiveState::new(now_ms),
        }
    }

    /// The record with a further horizon and, if the heat asks for it, an epoch from the present one on.
    /// `None` when the conversation has used up its seq_nos.
    #[must_use]
    pub fn extended(&self, by: Extension<'_>) -> Option<Self> {
        let lease = self.next_lease(by.now_ms);
        let wanted = self.layout.horizon().plus(lease).max(by.next.plus(by.count));
        if wanted <= self.layout.horizon() || by.next.get() + by.count > SEQ_NO_END {
            return None;
        }
        let (n, heat) = heat::decide(by.policy, self.heat_before(&by), self.layout.n(), by.sample, by.now_ms);
        Some(Self {
            ver: self.ver + 1,
            layout: self.layout.raised(wanted, n),
            resolved: self.resolved.max(by.resolved),
            lease,
            extended_at_ms: by.now_ms,
            heat,
            voids: self.voids.clone(),
            archive: self.archive.indexed(),
        })
    }

    /// A lease that lasted as long as n takes to shrink has been a quiet time all along, though nobody was there to see.
    fn heat_before(&self, by: &Extension<'_>) -> HeatState {
        let quiet = by.now_ms.saturating_sub(self.extended_at_ms) >= by.policy.shrink_after_ms;
        let low_since_ms = self.heat.low_since_ms.or(quiet.then_some(self.extended_at_ms));
        HeatState { low_since_ms, ..self.heat }
    }

    /// The record with what sealing found out.
    #[must_use]
    pub fn sealed(&self, resolved: SeqNo, voids: impl IntoIterator<Item = SeqRange>) -> Self {
        let mut next = Self { ver: self.ver + 1, resolved: self.resolved.max(resolved), ..self.clone() };
        voids.into_iter().for_each(|run| next.voids.add(run));
        next
    }

    /// The record with what is known of the archive now.
    #[must_use]
    pub fn with_archive(&self, archive: ArchiveState) -> Self {
        Self { ver: self.ver + 1, archive, ..self.clone() }
    }

    fn next_lease(&self, now_ms: u64) -> u64 {
        let lasted = now_ms.saturating_sub(self.extended_at_ms);
        let lease = match lasted {
            0..LEASE_SHORT_MS => self.lease * 2,
            LEASE_SHORT_MS..=LEASE_LONG_MS => self.lease,
            _ => self.lease / 2,
        };
        lease.clamp(LEASE_MIN, LEASE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extend(record: &ControlRecord, next: u64, count: u64, rate: f64, now_ms: u64) -> Option<ControlRecord> {
        record.extended(Extension {
            policy: &HeatPolicy::default(),
            next: SeqNo::clamped(next),
            count,
            sample: Sample { rate_wcu_per_s: rate, throttled_wcu_per_s: 0.0 },
            resolved: SeqNo::FIRST,
            now_ms,
        })
    }

    #[test]
    fn leases_double_while_busy_and_halve_when_idle() {
        let mut record = ControlRecord::create(1, 0);
        assert_eq!(record.layout.horizon().get(), 9);
        let mut leases = Vec::new();
        for step in 1..=10 {
            record = extend(&record, record.layout.horizon().get(), 1, 0.0, step * 100).unwrap();
            leases.push(record.lease);
        }
        assert_eq!(leases, [16, 32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 4_096]);
        for (step, lease) in [(1, 2_048), (2, 1_024), (3, 512)] {
            record = extend(&record, record.layout.horizon().get(), 1, 0.0, 1_000 + step * 10_000).unwrap();
            assert_eq!(record.lease, lease);
        }
        let steady = extend(&record, record.layout.horizon().get(), 1, 0.0, 32_000).unwrap();
        assert_eq!(steady.lease, 512);
    }

    #[test]
    fn a_large_batch_fits_at_once() {
        assert_eq!(ControlRecord::create(500, 0).layout.horizon().get(), 501);
        let record = extend(&ControlRecord::create(1, 0), 9, 500, 0.0, 100).unwrap();
        assert_eq!(record.layout.horizon().get(), 509);
        assert_eq!(record.lease, 16);
    }

    #[test]
    fn heat_opens_an_epoch_at_the_old_horizon() {
        let record = extend(&ControlRecord::create(1, 0), 9, 1, 4_000.0, 100).unwrap();
        let last = record.layout.epochs().last().unwrap();
        assert_eq!((last.from.get(), last.n), (9, 5));
        assert_eq!(record.ver, 2);
    }

    #[test]
    fn a_long_silence_counts_as_a_low_rate() {
        let hot = extend(&ControlRecord::create(1, 0), 9, 1, 4_000.0, 100).unwrap();
        let soon = extend(&hot, 10, 1, 1.0, 60_000).unwrap();
        assert_eq!(soon.layout.n(), 5);
        let later = extend(&hot, 10, 1, 1.0, 100 + HeatPolicy::default().shrink_after_ms).unwrap();
        assert_eq!(later.layout.n(), 1);
        let busy_again = extend(&hot, 10, 1, 3_900.0, 100 + HeatPolicy::default().shrink_after_ms).unwrap();
        assert_eq!((busy_again.layout.n(), busy_again.heat.low_since_ms), (5, None));
    }

    /// Of before there was an archive: how old its messages are, the next pass finds out.
    #[test]
    fn an_older_record_is_indexed_when_it_is_extended() {
        let old = ControlRecord { archive: ArchiveState::unknown(), ..ControlRecord::create(1, 7) };
        assert_eq!(extend(&old, 9, 1, 0.0, 100).unwrap().archive.oldest_ms, Some(0));
        assert_eq!(extend(&ControlRecord::create(1, 7), 9, 1, 0.0, 100).unwrap().archive.oldest_ms, Some(7));
    }

    #[test]
    fn a_conversation_ends_at_two_to_the_53() {
        let mut record = ControlRecord::create(1, 0);
        record.layout = Layout::from_parts(record.layout.epochs().to_vec(), SeqNo::clamped(SEQ_NO_END - 3)).unwrap();
        let last = extend(&record, SEQ_NO_END - 3, 3, 0.0, 0).unwrap();
        assert_eq!(last.layout.horizon(), SeqNo::END);
        assert_eq!(extend(&record, SEQ_NO_END - 3, 4, 0.0, 0), None);
        assert_eq!(extend(&last, SEQ_NO_END, 1, 0.0, 0), None);
    }

    #[test]
    fn sealing_moves_resolved_only_up() {
        let record = ControlRecord::create(1, 0).sealed(SeqNo::clamped(5), []);
        assert_eq!(record.resolved.get(), 5);
        let run = SeqRange::new(SeqNo::clamped(1), SeqNo::clamped(100)).unwrap();
        let later = record.sealed(SeqNo::clamped(3), [run]);
        assert_eq!((later.resolved.get(), later.ver, later.voids.runs()), (5, 3, &[run][..]));
    }
}
