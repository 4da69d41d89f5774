//! What an operator wants to know, worked out from the layout.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::Result;
use saltern_core::ids::ConversationId;
use saltern_core::key::PartitionKey;
use saltern_core::layout::{Epoch, Layout, Salt};
use saltern_core::limits::PAGE_LIMIT_DEFAULT;
use saltern_core::page::{Gap, GapState};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_service::conversations::View;
use serde::Serialize;

use crate::printable::Printable;

/// Epochs shown to people; `--json` has them all.
const EPOCHS_SHOWN: usize = 20;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    conversation_id: String,
    head_seq: u64,
    stable_through: u64,
    n: u16,
    max_n: u16,
    rate_wcu_per_s: Option<f64>,
    horizon: u64,
    epochs: Vec<EpochLine>,
    /// Partitions that the newest page of 20 asks.
    newest_page_partitions: usize,
    /// Partitions that the page before it asks; `None` if there is no such page.
    older_page_partitions: Option<usize>,
    recent_gaps: Vec<GapLine>,
}

#[derive(Debug, Serialize)]
struct EpochLine {
    from_seq: u64,
    /// `None`: up to whatever the horizon becomes.
    to_seq: Option<u64>,
    n: u16,
    first_partition: String,
    last_partition: String,
}

#[derive(Debug, Serialize)]
struct GapLine {
    from_seq: u64,
    to_seq: u64,
    state: &'static str,
}

impl Report {
    pub(super) fn new(conversation: &ConversationId, view: &View) -> Result<Self> {
        let layout = Layout::from_parts(view.epochs.clone(), view.horizon)?;
        let page = PAGE_LIMIT_DEFAULT as u64;
        // Where the head is, only the rows themselves can tell: the newest page asks up to the horizon.
        let newest_from = SeqNo::clamped((view.head_seq + 1).saturating_sub(page));
        let newest = SeqRange::until(newest_from, view.horizon).map_or(0, |range| partitions(&layout, range));
        let older = SeqRange::until(newest_from.minus(page), newest_from).filter(|_| newest_from > SeqNo::FIRST);
        Ok(Self {
            conversation_id: conversation.to_string(),
            head_seq: view.head_seq,
            stable_through: view.stable_through,
            n: view.n,
            max_n: view.max_n,
            rate_wcu_per_s: view.rate_wcu_per_s,
            horizon: view.horizon.get(),
            epochs: epoch_lines(conversation, layout.epochs()),
            newest_page_partitions: newest,
            older_page_partitions: older.map(|range| partitions(&layout, range)),
            recent_gaps: view.recent_gaps.iter().map(GapLine::from).collect(),
        })
    }
}

fn partitions(layout: &Layout, range: SeqRange) -> usize {
    layout.slices(range).into_iter().map(|slice| slice.salt).collect::<BTreeSet<_>>().len()
}

fn epoch_lines(conversation: &ConversationId, epochs: &[Epoch]) -> Vec<EpochLine> {
    let key = |salt| PartitionKey::messages(conversation, salt).as_str().to_owned();
    let ends = epochs.iter().skip(1).map(|next| Some(next.from.get() - 1)).chain([None]);
    let line = |(epoch, to_seq): (&Epoch, _)| {
        let (first, last) =
            if epoch.n == 1 { (Salt::Unsalted, Salt::Unsalted) } else { (Salt::Of(0), Salt::Of(epoch.n - 1)) };
        EpochLine {
            from_seq: epoch.from.get(),
            to_seq,
            n: epoch.n,
            first_partition: key(first),
            last_partition: key(last),
        }
    };
    epochs.iter().zip(ends).map(line).collect()
}

impl From<&Gap> for GapLine {
    fn from(gap: &Gap) -> Self {
        let state = match gap.state {
            GapState::Void => "void",
            GapState::Pending => "pending",
        };
        Self { from_seq: gap.range.from.get(), to_seq: gap.range.to.get(), state }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "conversation    {}", Printable(&self.conversation_id))?;
        writeln!(f, "head            {}", self.head_seq)?;
        writeln!(f, "stable through  {}", self.stable_through)?;
        writeln!(f, "horizon         {}", self.horizon)?;
        writeln!(f, "partitions      {} now, {} at most", self.n, self.max_n)?;
        match self.rate_wcu_per_s {
            Some(rate) => writeln!(f, "rate            {rate:.1} WCU/s")?,
            None => writeln!(f, "rate            not known: the registry is out of reach")?,
        }
        let page = PAGE_LIMIT_DEFAULT;
        write!(f, "a page of {page}    newest asks {}", counted(self.newest_page_partitions))?;
        match self.older_page_partitions {
            Some(older) => writeln!(f, ", the one before it {}", counted(older))?,
            None => writeln!(f)?,
        }
        self.epoch_table(f)?;
        if self.recent_gaps.is_empty() {
            return writeln!(f, "\nno gaps among the newest");
        }
        writeln!(f, "\ngaps among the newest")?;
        for gap in &self.recent_gaps {
            writeln!(f, "  {} … {}  {}", gap.from_seq, gap.to_seq, gap.state)?;
        }
        Ok(())
    }
}

impl Report {
    fn epoch_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:>12}  {:>12}  {:>4}  partition keys", "from_seq", "to_seq", "n")?;
        let hidden = self.epochs.len().saturating_sub(EPOCHS_SHOWN);
        if hidden > 0 {
            writeln!(f, "  … {hidden} earlier epochs, all in --json")?;
        }
        for epoch in &self.epochs[hidden..] {
            let to = epoch.to_seq.map_or_else(|| "…".to_owned(), |to| to.to_string());
            write!(f, "{:>12}  {to:>12}  {:>4}  {}", epoch.from_seq, epoch.n, Printable(&epoch.first_partition))?;
            match epoch.n {
                1 => writeln!(f)?,
                2 => writeln!(f, ", {}", Printable(&epoch.last_partition))?,
                _ => writeln!(f, " … {}", Printable(&epoch.last_partition))?,
            }
        }
        Ok(())
    }
}

fn counted(partitions: usize) -> String {
    if partitions == 1 { "1 partition".into() } else { format!("{partitions} partitions") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(head_seq: u64, horizon: u64, epochs: &[(u64, u16)]) -> View {
        let epochs: Vec<_> = epochs.iter().map(|(from, n)| Epoch { from: SeqNo::clamped(*from), n: *n }).collect();
        View {
            head_seq,
            stable_through: head_seq,
            n: epochs.last().unwrap().n,
            max_n: epochs.iter().map(|e| e.n).max().unwrap(),
            rate_wcu_per_s: Some(3_950.0),
            horizon: SeqNo::clamped(horizon),
            epochs,
            recent_gaps: vec![Gap { range: SeqRange::single(SeqNo::clamped(5_000)), state: GapState::Void }],
        }
    }

    #[test]
    fn a_hot_conversation_reads_well() {
        let id = ConversationId::new("conv").unwrap();
        let report = Report::new(&id, &view(5_210, 9_216, &[(1, 1), (1_033, 2), (2_041, 5)])).unwrap();
        assert_eq!((report.newest_page_partitions, report.older_page_partitions), (5, Some(2)));
        let text = report.to_string();
        for line in [
            "head            5210",
            "           1          1032     1  conv\n",
            "        1033          2040     2  conv#0, conv#1\n",
            "        2041             …     5  conv#0 … conv#4\n",
            "  5000 … 5000  void\n",
        ] {
            assert!(text.contains(line), "{line:?} is not in\n{text}");
        }
    }

    #[test]
    fn a_new_conversation_has_no_older_page() {
        let id = ConversationId::new("a#1").unwrap();
        let report = Report::new(&id, &view(3, 9, &[(1, 1)])).unwrap();
        assert_eq!((report.newest_page_partitions, report.older_page_partitions), (1, None));
        assert_eq!(report.epochs[0].first_partition, "a%231");
    }
}
