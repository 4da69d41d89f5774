use std::sync::Arc;

use proptest::prelude::*;
use rstest::rstest;

use super::model::{Conversation, Stretch, conversation, message_row, range, seq};
use super::*;
use crate::layout::Layout;

/// What stands at a seq_no, as a page tells it.
fn gap_at(conversation: &Conversation, at: SeqNo) -> Option<GapState> {
    match conversation.row(at) {
        Some(Some(_)) => None,
        Some(None) => Some(GapState::Void),
        None => Some(GapState::Pending),
    }
}

/// The gaps among some seq_nos in a row, joined the slow way.
fn gaps_among(conversation: &Conversation, places: impl Iterator<Item = SeqNo>) -> Vec<Gap> {
    let mut gaps: Vec<Gap> = Vec::new();
    for at in places {
        let Some(state) = gap_at(conversation, at) else { continue };
        let touches =
            |g: &&mut Gap| g.state == state && (g.range.to.get() + 1 == at.get() || g.range.from.get() == at.get() + 1);
        match gaps.last_mut().filter(touches) {
            Some(last) => last.range = range(last.range.from.min(at).get(), last.range.to.max(at).get()),
            None => gaps.push(Gap { range: SeqRange::single(at), state }),
        }
    }
    gaps
}

fn seqs(messages: &[Placed<Arc<MessageRow>>]) -> Vec<SeqNo> {
    messages.iter().map(|m| m.seq).collect()
}

/// Rows read in vain are no more than gaps met; without gaps there are none.
fn cost_is_fair(rows_read: u64, messages: usize, gaps: &[Gap]) -> Result<(), TestCaseError> {
    let voids = gaps.iter().filter(|g| g.state == GapState::Void).map(|g| g.range.count()).sum::<u64>();
    let met: u64 = gaps.iter().map(|g| g.range.count()).sum();
    prop_assert!(rows_read <= messages as u64 + voids + met, "{rows_read} rows for {messages} messages and {gaps:?}");
    Ok(())
}

fn older_is_right(
    conversation: &Conversation,
    before: Option<SeqNo>,
    limit: usize,
) -> Result<OlderPage, TestCaseError> {
    let (page, cost) = conversation.older(before, limit);
    let top = conversation.top(before);
    let below = conversation.messages().into_iter().rev().filter(|s| Some(*s) <= top);
    let wanted: Vec<_> = below.take(limit).collect();
    prop_assert_eq!(seqs(&page.messages), wanted.clone());
    prop_assert!(page.messages.iter().all(|m| Some(&Some(m.value.clone())) == conversation.row(m.seq)));
    let lowest = if wanted.len() == limit { wanted[limit - 1] } else { SeqNo::FIRST };
    prop_assert_eq!(page.next_before, Some(lowest).filter(|s| *s > SeqNo::FIRST));
    let looked_at = top.and_then(|top| SeqRange::new(lowest, top));
    let gaps = looked_at.map_or(Vec::new(), |r| gaps_among(conversation, r.iter().rev()));
    prop_assert_eq!(&page.gaps, &gaps);
    cost_is_fair(cost.rows_read, wanted.len(), &gaps)?;
    Ok(page)
}

fn newer_is_right(conversation: &Conversation, after: u64, limit: usize) -> Result<NewerPage, TestCaseError> {
    let (page, cost) = conversation.newer(after, limit);
    let (mut wanted, mut passed) = (Vec::new(), after);
    while wanted.len() < limit {
        let next = seq(passed + 1);
        match conversation.row(next) {
            Some(Some(_)) => wanted.push(next),
            Some(None) => {}
            None => break,
        }
        passed += 1;
    }
    prop_assert_eq!(seqs(&page.messages), wanted.clone());
    prop_assert_eq!(page.next_after, passed);
    let head = conversation.head().map_or(0, SeqNo::get);
    prop_assert_eq!(page.at_end, passed >= head);
    let (voids, pending): (Vec<_>, Vec<_>) = page.gaps.iter().copied().partition(|g| g.state == GapState::Void);
    prop_assert_eq!(voids, gaps_among(conversation, (after + 1..=passed).map(seq)));
    let barred = wanted.len() < limit && passed < head;
    prop_assert_eq!(pending.len(), usize::from(barred));
    for gap in pending {
        prop_assert_eq!(gap.range.from.get(), passed + 1);
        prop_assert!(gap.range.iter().all(|s| s.get() < head && conversation.row(s).is_none()));
    }
    if !barred {
        cost_is_fair(cost.rows_read, wanted.len(), &page.gaps)?;
    }
    Ok(page)
}

proptest! {
    #[test]
    fn an_older_page_is_what_a_plain_walk_down_finds(
        conversation in conversation(), before in prop::option::of(1..1_500_u64), limit in 1..60_usize,
    ) {
        older_is_right(&conversation, before.map(seq), limit)?;
    }

    #[test]
    fn a_newer_page_is_what_a_plain_walk_up_finds(
        conversation in conversation(), after in 0..1_500_u64, limit in 1..60_usize,
    ) {
        newer_is_right(&conversation, after, limit)?;
    }

    /// A page that is cut short is the page of a smaller limit, so that it leads on as that one does.
    #[test]
    fn a_shortened_page_is_the_page_of_a_smaller_limit(
        conversation in conversation(), start in 0..400_u64, limit in 2..60_usize, kept in 1..60_usize,
    ) {
        let (mut older, _) = conversation.older(SeqNo::new(start), limit);
        if kept < older.messages.len() {
            older.shorten(kept);
            prop_assert_eq!(&older, &conversation.older(SeqNo::new(start), kept).0);
        }
        let (mut newer, _) = conversation.newer(start, limit);
        if kept < newer.messages.len() {
            newer.shorten(kept);
            prop_assert_eq!(&newer, &conversation.newer(start, kept).0);
        }
    }

    #[test]
    fn paging_down_meets_each_message_once(conversation in conversation(), limit in 1..60_usize) {
        let (mut before, mut met) = (None, Vec::new());
        loop {
            let page = older_is_right(&conversation, before, limit)?;
            met.extend(seqs(&page.messages));
            let Some(next) = page.next_before else { break };
            prop_assert!(before.is_none_or(|before| next < before));
            before = Some(next);
        }
        met.reverse();
        prop_assert_eq!(met, conversation.messages());
    }

    /// A tailing client waits at a pending gap until it is sealed, and loses nothing.
    #[test]
    fn paging_up_meets_each_message_once(mut conversation in conversation(), limit in 1..60_usize) {
        let (mut after, mut met) = (0, Vec::new());
        loop {
            let page = newer_is_right(&conversation, after, limit)?;
            met.extend(seqs(&page.messages));
            if page.at_end {
                break;
            }
            let pending: Vec<_> = page.gaps.iter().filter(|g| g.state == GapState::Pending).collect();
            prop_assert!(page.next_after > after || !pending.is_empty(), "no way on from {after}");
            pending.iter().for_each(|gap| conversation.seal(gap.range));
            after = page.next_after;
        }
        prop_assert_eq!(met, conversation.messages());
    }

    /// A query may end with the last message that the page needs.
    #[test]
    fn rows_that_the_page_does_not_need_make_no_difference(
        conversation in conversation(), from in 1..1_500_u64, limit in 1..60_usize,
    ) {
        let mut frugal = conversation.clone();
        frugal.frugal = true;
        prop_assert_eq!(frugal.older(SeqNo::new(from), limit).0, conversation.older(SeqNo::new(from), limit).0);
        prop_assert_eq!(frugal.newer(from, limit).0, conversation.newer(from, limit).0);
    }

    #[test]
    fn merging_sorted_runs_is_sorting(places in prop::collection::btree_map(1..2_000_u64, 0..7_usize, 0..200)) {
        for order in [Order::Ascending, Order::Descending] {
            let mut runs = vec![Vec::new(); 7];
            places.iter().for_each(|(&s, &run)| runs[run].push(Placed { seq: seq(s), value: s }));
            let mut sorted: Vec<_> = places.keys().copied().collect();
            if order == Order::Descending {
                runs.iter_mut().for_each(|run| run.reverse());
                sorted.reverse();
            }
            let merged: Vec<_> = merge(runs, order).into_iter().map(|row| row.value).collect();
            prop_assert_eq!(merged, sorted);
        }
    }
}

#[test]
fn merging_nothing_is_nothing() {
    assert!(merge(Vec::<Vec<Placed<()>>>::new(), Order::Ascending).is_empty());
    assert!(merge(vec![Vec::<Placed<()>>::new(); 3], Order::Descending).is_empty());
}

const DESERT: u64 = 3 * PAGE_LOOKED_AT_MAX;

fn desert(between: Stretch) -> Conversation {
    let layout = Layout::new(8).raised(seq(1_000), 3);
    Conversation::new(&[Stretch::Messages(5), between, Stretch::Messages(5)], layout)
}

/// A page that meets nothing but gaps looks at so many and no more, and its cursor leads on.
#[rstest]
#[case(Stretch::Voids(DESERT), 1)]
#[case(Stretch::Voids(DESERT), 20)]
#[case(Stretch::Voids(DESERT), 200)]
#[case(Stretch::Missing(DESERT), 20)]
fn an_older_page_in_a_desert_is_short_and_leads_on(#[case] between: Stretch, #[case] limit: usize) {
    let conversation = desert(between);
    let (mut before, mut met, mut pages) = (None, Vec::new(), 0);
    loop {
        let (page, cost) = conversation.older(before, limit);
        assert!(cost.looked_at <= PAGE_LOOKED_AT_MAX, "{cost:?}");
        assert!(cost.windows <= 16, "{cost:?}");
        met.extend(seqs(&page.messages));
        pages += 1;
        let Some(next) = page.next_before else { break };
        assert!(before.is_none_or(|before| next < before));
        before = Some(next);
    }
    met.reverse();
    assert_eq!(met, conversation.messages());
    assert!(pages <= DESERT / PAGE_LOOKED_AT_MAX + 10, "{pages} pages");
}

#[rstest]
#[case(1)]
#[case(20)]
#[case(200)]
fn a_newer_page_in_a_desert_is_short_and_leads_on(#[case] limit: usize) {
    let conversation = desert(Stretch::Voids(DESERT));
    let (mut after, mut met, mut pages) = (0, Vec::new(), 0);
    loop {
        let (page, cost) = conversation.newer(after, limit);
        assert!(cost.looked_at <= PAGE_LOOKED_AT_MAX, "{cost:?}");
        assert!(cost.windows <= 16, "{cost:?}");
        met.extend(seqs(&page.messages));
        pages += 1;
        if page.at_end {
            break;
        }
        assert!(page.next_after > after);
        after = page.next_after;
    }
    assert_eq!(met, conversation.messages());
    assert!(pages <= DESERT / PAGE_LOOKED_AT_MAX + 10, "{pages} pages");
}

#[test]
fn a_desert_that_is_known_costs_nothing() {
    let conversation = desert(Stretch::KnownVoids(DESERT));
    let (older, cost) = conversation.older(None, 10);
    assert_eq!((older.messages.len(), older.next_before, cost.rows_read), (10, None, 10));
    assert_eq!(older.gaps, [Gap { range: range(6, 5 + DESERT), state: GapState::Void }]);
    let (newer, cost) = conversation.newer(0, 10);
    assert_eq!((newer.messages.len(), newer.at_end, cost.rows_read), (10, true, 10));
    assert_eq!(newer.gaps, older.gaps);
}

/// A row that appears between the query and the look at the head is neither a gap nor the end.
#[test]
fn a_head_that_moves_during_the_read_is_not_the_end() {
    let mut ascent = Ascent::new(0, 10);
    let window = ascent.window(&VoidRuns::default()).unwrap();
    ascent.absorb(window, vec![Placed { seq: seq(1), value: Some(message_row("m1")) }], Some(seq(2)));
    assert_eq!(ascent.window(&VoidRuns::default()), None);
    let page = ascent.finish(Some(seq(2)), 2);
    assert_eq!((page.next_after, page.at_end, page.gaps), (1, false, vec![]));
}

#[test]
fn nothing_lies_beyond_the_last_seq_no() {
    let last = SeqNo::END.get() - 1;
    assert_eq!(Ascent::new(last, 10).window(&VoidRuns::default()), None);
    let window = Ascent::new(last - 3, 10).window(&VoidRuns::default());
    assert_eq!(window, Some(range(last - 2, last)));
}
