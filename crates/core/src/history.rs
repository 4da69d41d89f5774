//! The invariants, as a judge of what clients see: it is told of every acknowledgement and every page of one
//! conversation, and objects to anything that the promises rule out. The simulation, the kill tests and the
//! end-to-end tests all ask this one judge.

use std::collections::{BTreeMap, HashMap};

use crate::ids::MessageId;
use crate::page::{Gap, GapState, NewerPage, OlderPage};
use crate::seq::{SeqNo, SeqRange};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("I1: {message_id} was acknowledged at {seq}, but a later read of {seq} does not have it")]
    Lost { message_id: MessageId, seq: SeqNo },
    #[error("I2: {message_id} is at {first} and at {second}")]
    Doubled { message_id: MessageId, first: SeqNo, second: SeqNo },
    #[error("I3: {seq} held {first}, then {second}")]
    Overwritten { seq: SeqNo, first: Holder, second: Holder },
    #[error("I6: {seq} is at or below stable_through {stable_through}, yet pending")]
    UnstableBelow { seq: SeqNo, stable_through: u64 },
    #[error("I6: {seq} is in the range looked at, but neither a message nor a gap")]
    SkippedSilently { seq: SeqNo },
    #[error("I6: the page goes on past {seq}, which is pending")]
    PassedPending { seq: SeqNo },
    #[error("page out of order or out of its range at {seq}")]
    OutOfOrder { seq: SeqNo },
    #[error("I6: the page says nothing is {side}, but {seq} is")]
    EndedEarly { side: &'static str, seq: SeqNo },
}

/// What a seq_no holds, for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    Message(MessageId),
    Void,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Message(id) => write!(f, "message {id}"),
            Self::Void => f.write_str("a void"),
        }
    }
}

/// Where the history stood when a read began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadStart {
    acks: usize,
    stable_through: u64,
}

/// What has been seen of one conversation.
#[derive(Debug, Default)]
pub struct History {
    acks: Vec<(SeqNo, MessageId)>,
    holders: BTreeMap<SeqNo, Holder>,
    places: HashMap<MessageId, SeqNo>,
    stable_through: u64,
}

impl History {
    /// To be called before a read is sent off.
    #[must_use]
    pub fn begin_read(&self) -> ReadStart {
        ReadStart { acks: self.acks.len(), stable_through: self.stable_through }
    }

    /// Messages acknowledged so far, in the order of their acknowledgement.
    #[must_use]
    pub fn acknowledged(&self) -> &[(SeqNo, MessageId)] {
        &self.acks
    }

    /// The largest `stable_through` that any page has promised.
    #[must_use]
    pub fn stable_through(&self) -> u64 {
        self.stable_through
    }

    /// An append, or its replay, was answered with this seq_no.
    pub fn acknowledge(&mut self, seq: SeqNo, message_id: &MessageId) -> Result<(), Violation> {
        self.holds(seq, Holder::Message(message_id.clone()))?;
        self.acks.push((seq, message_id.clone()));
        Ok(())
    }

    /// A row was seen to hold this.
    pub fn holds(&mut self, seq: SeqNo, holder: Holder) -> Result<(), Violation> {
        if let Holder::Message(id) = &holder {
            let first = *self.places.entry(id.clone()).or_insert(seq);
            if first != seq {
                return Err(Violation::Doubled { message_id: id.clone(), first, second: seq });
            }
        }
        let first = self.holders.entry(seq).or_insert_with(|| holder.clone());
        if *first == holder {
            return Ok(());
        }
        Err(Violation::Overwritten { seq, first: first.clone(), second: holder })
    }

    /// A page of `before_seq` (`None`: the newest) came back.
    pub fn older(&mut self, start: ReadStart, before: Option<SeqNo>, page: &OlderPage) -> Result<(), Violation> {
        let ids = page.messages.iter().map(|m| (m.seq, &m.value.message_id));
        let seen = self.take_in(start, ids.rev(), &page.gaps, page.stable_through)?;
        if let Some(w) = page.messages.windows(2).find(|w| w[0].seq <= w[1].seq) {
            return Err(Violation::OutOfOrder { seq: w[1].seq });
        }
        let end = before.unwrap_or(SeqNo::END);
        if let Some(seq) = page.next_before.filter(|next| *next >= end) {
            return Err(Violation::OutOfOrder { seq });
        }
        let lowest = page.next_before.unwrap_or(SeqNo::FIRST);
        // Newest page: whatever was acknowledged above its top is missing from it.
        if let Some(range) = SeqRange::until(lowest, end) {
            self.contains_acknowledged(start, range, &seen)?;
        }
        // Rows are known to reach as high as what was stable before the read began, whatever the page's own top is.
        let stable = SeqNo::new(start.stable_through).min(end.prev());
        let top = seen.last_key_value().map(|(seq, _)| *seq).max(stable);
        if let Some(looked_at) = top.and_then(|top| SeqRange::new(lowest, top)) {
            Self::is_dense(looked_at, &seen)?;
        }
        match seen.keys().find(|s| **s < lowest || **s >= end) {
            Some(&seq) => Err(Violation::OutOfOrder { seq }),
            None => Ok(()),
        }
    }

    /// A page of `after_seq` came back.
    pub fn newer(&mut self, start: ReadStart, after: u64, page: &NewerPage) -> Result<(), Violation> {
        let ids = page.messages.iter().map(|m| (m.seq, &m.value.message_id));
        let seen = self.take_in(start, ids, &page.gaps, page.stable_through)?;
        if let Some(w) = page.messages.windows(2).find(|w| w[0].seq >= w[1].seq) {
            return Err(Violation::OutOfOrder { seq: w[1].seq });
        }
        if page.next_after < after {
            return Err(Violation::OutOfOrder { seq: SeqNo::clamped(page.next_after) });
        }
        let looked_at = after + 1..=page.next_after;
        if let Some(range) = SeqRange::until(SeqNo::clamped(after + 1), SeqNo::clamped(page.next_after + 1)) {
            self.contains_acknowledged(start, range, &seen)?;
            Self::is_dense(range, &seen)?;
        }
        for gap in page.gaps.iter().filter(|g| g.state == GapState::Pending) {
            if gap.range.from.get() <= page.next_after {
                return Err(Violation::PassedPending { seq: gap.range.from });
            }
        }
        let voids = page.gaps.iter().filter(|g| g.state == GapState::Void).flat_map(|g| [g.range.from, g.range.to]);
        if let Some(seq) = page.messages.iter().map(|m| m.seq).chain(voids).find(|s| !looked_at.contains(&s.get())) {
            return Err(Violation::OutOfOrder { seq });
        }
        let acknowledged = self.acks[..start.acks].iter().map(|(seq, _)| *seq);
        let known = acknowledged.chain(SeqNo::new(start.stable_through)).max();
        match known.filter(|seq| page.at_end && seq.get() > page.next_after) {
            Some(seq) => Err(Violation::EndedEarly { side: "newer", seq }),
            None => Ok(()),
        }
    }

    /// Notes what a page shows of each seq_no: `true` for a message, `false` for a gap.
    ///
    /// A page may be older than promises made while it was read: it is held to its own and to those before it began.
    fn take_in<'a>(
        &mut self,
        start: ReadStart,
        messages: impl Iterator<Item = (SeqNo, &'a MessageId)>,
        gaps: &[Gap],
        stable_through: u64,
    ) -> Result<BTreeMap<SeqNo, bool>, Violation> {
        let mut seen = BTreeMap::new();
        for (seq, id) in messages {
            self.holds(seq, Holder::Message(id.clone()))?;
            seen.insert(seq, true);
        }
        self.stable_through = self.stable_through.max(stable_through);
        let stable_through = stable_through.max(start.stable_through);
        for gap in gaps {
            for seq in gap.range.iter() {
                match gap.state {
                    GapState::Void => self.holds(seq, Holder::Void)?,
                    GapState::Pending if seq.get() <= stable_through => {
                        return Err(Violation::UnstableBelow { seq, stable_through });
                    }
                    GapState::Pending => {}
                }
                if seen.insert(seq, false).is_some() {
                    return Err(Violation::OutOfOrder { seq });
                }
            }
        }
        Ok(seen)
    }

    fn contains_acknowledged(
        &self,
        start: ReadStart,
        range: SeqRange,
        seen: &BTreeMap<SeqNo, bool>,
    ) -> Result<(), Violation> {
        let due = self.acks[..start.acks].iter().filter(|(seq, _)| range.contains(*seq));
        for (seq, message_id) in due {
            if seen.get(seq) != Some(&true) {
                return Err(Violation::Lost { message_id: message_id.clone(), seq: *seq });
            }
        }
        Ok(())
    }

    fn is_dense(range: SeqRange, seen: &BTreeMap<SeqNo, bool>) -> Result<(), Violation> {
        match range.iter().find(|seq| !seen.contains_key(seq)) {
            Some(seq) => Err(Violation::SkippedSilently { seq }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
