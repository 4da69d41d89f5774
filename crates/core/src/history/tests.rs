use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::page::Placed;
use crate::page::model::{Conversation, conversation, message_row, range, seq};
use crate::record::MessageRow;
use std::sync::Arc;

fn id(at: u64) -> MessageId {
    MessageId::new(&format!("m{at}")).unwrap()
}

fn messages(places: &[u64]) -> Vec<Placed<Arc<MessageRow>>> {
    places.iter().map(|&s| Placed { seq: seq(s), value: message_row(&format!("m{s}")) }).collect()
}

fn void(from: u64, to: u64) -> Gap {
    Gap { range: range(from, to), state: GapState::Void }
}

fn pending(from: u64, to: u64) -> Gap {
    Gap { range: range(from, to), state: GapState::Pending }
}

fn older(places: &[u64], next_before: u64, gaps: &[Gap], stable_through: u64) -> OlderPage {
    OlderPage { messages: messages(places), next_before: SeqNo::new(next_before), gaps: gaps.to_vec(), stable_through }
}

fn newer(places: &[u64], next_after: u64, at_end: bool, gaps: &[Gap]) -> NewerPage {
    NewerPage { messages: messages(places), next_after, at_end, gaps: gaps.to_vec(), stable_through: 0 }
}

/// Messages 1, 2, 3 and 6 acknowledged, 4 void, all up to 4 promised to be stable.
fn history() -> History {
    let mut history = History::default();
    for at in [1, 2, 3, 6] {
        history.acknowledge(seq(at), &id(at)).unwrap();
    }
    let page = older(&[3, 2, 1], 0, &[void(4, 4)], 4);
    history.older(history.begin_read(), Some(seq(5)), &page).unwrap();
    history
}

fn lost(at: u64) -> Violation {
    Violation::Lost { message_id: id(at), seq: seq(at) }
}

fn out_of_order(at: u64) -> Violation {
    Violation::OutOfOrder { seq: seq(at) }
}

fn skipped(at: u64) -> Violation {
    Violation::SkippedSilently { seq: seq(at) }
}

fn overwritten(at: u64, first: Holder, second: Holder) -> Violation {
    Violation::Overwritten { seq: seq(at), first, second }
}

#[rstest]
#[case::whole(0, older(&[6, 3, 2, 1], 0, &[pending(5, 5), void(4, 4)], 4), Ok(()))]
#[case::cut_by_its_limit(0, older(&[6, 3], 3, &[pending(5, 5), void(4, 4)], 4), Ok(()))]
#[case::below(4, older(&[3, 2], 2, &[], 4), Ok(()))]
#[case::nothing_is_below_the_first(1, older(&[], 0, &[], 4), Ok(()))]
#[case::far_above(1_000, older(&[6], 6, &[], 4), Ok(()))]
#[case::newer_than_all_acknowledged(0, older(&[7, 6], 6, &[], 4), Ok(()))]
#[case::a_short_page_in_a_desert(0, older(&[], 7, &[void(7, 900)], 4), Ok(()))]
#[case::empty(0, older(&[], 0, &[], 0), Err(lost(1)))]
#[case::without_its_top(0, older(&[3, 2, 1], 0, &[void(4, 4)], 4), Err(lost(6)))]
#[case::with_one_left_out(4, older(&[3, 1], 0, &[], 4), Err(lost(2)))]
#[case::pending_though_acknowledged(0, older(&[3], 3, &[pending(5, 6), void(4, 4)], 4), Err(lost(6)))]
#[case::pending_though_stable(
    5, older(&[3], 3, &[pending(4, 4)], 0), Err(Violation::UnstableBelow { seq: seq(4), stable_through: 4 })
)]
#[case::pending_though_it_says_stable(
    0, older(&[6], 5, &[pending(5, 5)], 6), Err(Violation::UnstableBelow { seq: seq(5), stable_through: 6 })
)]
#[case::silent_about_a_hole(0, older(&[6, 3], 3, &[void(4, 4)], 4), Err(skipped(5)))]
#[case::silent_about_a_void(5, older(&[3], 3, &[], 4), Err(skipped(4)))]
#[case::silent_about_the_first(8, older(&[6], 4, &[void(4, 4)], 4), Err(skipped(5)))]
#[case::void_over_a_message(
    4, older(&[3], 2, &[void(2, 2)], 4), Err(overwritten(2, Holder::Message(id(2)), Holder::Void))
)]
#[case::message_over_a_void(
    5, older(&[4, 3], 3, &[], 4), Err(overwritten(4, Holder::Void, Holder::Message(id(4))))
)]
#[case::upside_down(4, older(&[2, 3], 2, &[], 4), Err(out_of_order(3)))]
#[case::one_twice(4, older(&[3, 3, 2], 2, &[], 4), Err(out_of_order(3)))]
#[case::message_and_gap_at_once(0, older(&[7, 6], 6, &[pending(7, 7)], 4), Err(out_of_order(7)))]
#[case::above_what_was_asked(4, older(&[6, 3], 3, &[pending(5, 5), void(4, 4)], 4), Err(out_of_order(4)))]
#[case::below_its_own_cursor(4, older(&[3, 2], 3, &[], 4), Err(out_of_order(2)))]
#[case::a_cursor_that_leads_nowhere(4, older(&[], 4, &[], 4), Err(out_of_order(4)))]
fn older_pages_are_judged(#[case] before: u64, #[case] page: OlderPage, #[case] verdict: Result<(), Violation>) {
    let mut history = history();
    assert_eq!(history.older(history.begin_read(), SeqNo::new(before), &page), verdict);
}

#[rstest]
#[case::up_to_a_pending_gap(0, newer(&[1, 2, 3], 4, false, &[void(4, 4), pending(5, 5)]), Ok(()))]
#[case::cut_by_its_limit(1, newer(&[2], 2, false, &[]), Ok(()))]
#[case::barred_at_once(4, newer(&[], 4, false, &[pending(5, 5)]), Ok(()))]
#[case::to_the_end(5, newer(&[6, 7], 7, true, &[]), Ok(()))]
#[case::beyond_the_end(1_000, newer(&[], 1_000, true, &[]), Ok(()))]
#[case::beyond_all_ends(SeqNo::END.get(), newer(&[], SeqNo::END.get(), true, &[]), Ok(()))]
#[case::with_one_left_out(0, newer(&[1, 3], 3, false, &[]), Err(lost(2)))]
#[case::silent_about_a_void(2, newer(&[3], 4, false, &[]), Err(skipped(4)))]
#[case::ends_before_what_is_acknowledged(
    3, newer(&[], 4, true, &[void(4, 4)]), Err(Violation::EndedEarly { side: "newer", seq: seq(6) })
)]
#[case::past_a_pending_gap(
    3, newer(&[6], 6, true, &[void(4, 4), pending(5, 5)]), Err(Violation::PassedPending { seq: seq(5) })
)]
#[case::pending_though_stable(
    3, newer(&[], 3, false, &[pending(4, 4)]), Err(Violation::UnstableBelow { seq: seq(4), stable_through: 4 })
)]
#[case::upside_down(0, newer(&[2, 1], 2, false, &[]), Err(out_of_order(1)))]
#[case::below_what_was_asked(2, newer(&[2, 3], 3, false, &[]), Err(out_of_order(2)))]
#[case::beyond_its_own_cursor(1, newer(&[2, 3], 2, false, &[]), Err(out_of_order(3)))]
#[case::a_gap_beyond_its_own_cursor(2, newer(&[3], 3, false, &[void(4, 4)]), Err(out_of_order(4)))]
#[case::a_cursor_that_goes_back(3, newer(&[], 2, false, &[]), Err(out_of_order(2)))]
fn newer_pages_are_judged(#[case] after: u64, #[case] page: NewerPage, #[case] verdict: Result<(), Violation>) {
    let mut history = history();
    assert_eq!(history.newer(history.begin_read(), after, &page), verdict);
}

#[rstest]
#[case::anew(7, 7, Ok(()))]
#[case::a_replay(3, 3, Ok(()))]
#[case::a_hole_filled(5, 5, Ok(()))]
#[case::a_second_place(7, 2, Err(Violation::Doubled { message_id: id(2), first: seq(2), second: seq(7) }))]
#[case::a_place_taken(2, 9, Err(overwritten(2, Holder::Message(id(2)), Holder::Message(id(9)))))]
#[case::a_void(4, 4, Err(overwritten(4, Holder::Void, Holder::Message(id(4)))))]
fn acknowledgements_are_judged(#[case] at: u64, #[case] message: u64, #[case] verdict: Result<(), Violation>) {
    assert_eq!(history().acknowledge(seq(at), &id(message)), verdict);
}

/// What is stable must be shown, whether or not its writer was ever answered.
#[test]
fn what_was_promised_to_be_stable_does_not_vanish() {
    let mut history = History::default();
    history.older(history.begin_read(), None, &older(&[2, 1], 0, &[], 2)).unwrap();
    assert_eq!(history.older(history.begin_read(), None, &older(&[1], 0, &[], 2)), Err(skipped(2)));
    assert_eq!(history.older(history.begin_read(), None, &older(&[], 0, &[], 0)), Err(skipped(1)));
    assert_eq!(history.older(history.begin_read(), SeqNo::new(2), &older(&[1], 0, &[], 2)), Ok(()));
    let early = Violation::EndedEarly { side: "newer", seq: seq(2) };
    assert_eq!(history.newer(history.begin_read(), 0, &newer(&[1], 1, true, &[])), Err(early));
}

/// A read owes nothing to what happened after it began.
#[test]
fn a_read_is_held_to_what_was_known_when_it_began() {
    let mut history = History::default();
    history.acknowledge(seq(1), &id(1)).unwrap();
    history.acknowledge(seq(3), &id(3)).unwrap();
    let start = history.begin_read();
    history.acknowledge(seq(4), &id(4)).unwrap();
    history.older(history.begin_read(), None, &older(&[4, 3, 1], 0, &[void(2, 2)], 4)).unwrap();
    assert_eq!(history.stable_through(), 4);
    let earlier = older(&[3, 1], 0, &[pending(2, 2)], 1);
    assert_eq!(history.older(start, None, &earlier), Ok(()));
    assert_eq!(history.newer(start, 0, &newer(&[1], 1, false, &[pending(2, 2)])), Ok(()));
    assert_eq!(history.newer(start, 2, &newer(&[3], 3, true, &[])), Ok(()));
    assert!(history.older(history.begin_read(), None, &earlier).is_err());
    assert_eq!(history.acknowledged().len(), 3);
}

fn acknowledge_all(conversation: &Conversation) -> History {
    let mut history = History::default();
    for at in conversation.messages() {
        history.acknowledge(at, &id(at.get())).unwrap();
    }
    history
}

proptest! {
    /// The judge agrees with every page that the plan makes.
    #[test]
    fn honest_pages_pass(
        mut conversation in conversation(), asks in prop::collection::vec((0..1_500_u64, 1..60_usize), 1..12),
    ) {
        let mut history = acknowledge_all(&conversation);
        for (from, limit) in asks {
            let start = history.begin_read();
            let (page, _) = conversation.older(SeqNo::new(from), limit);
            prop_assert_eq!(history.older(start, SeqNo::new(from), &page), Ok(()));
            let (page, _) = conversation.newer(from, limit);
            prop_assert_eq!(history.newer(start, from, &page), Ok(()));
            page.gaps.iter().for_each(|gap| conversation.seal(gap.range));
        }
    }

    /// No message can be left out of a page unnoticed, acknowledged or not.
    #[test]
    fn a_message_left_out_is_noticed(
        conversation in conversation(), from in 0..1_500_u64, limit in 1..60_usize, which in any::<prop::sample::Index>(),
    ) {
        let (mut page, _) = conversation.older(SeqNo::new(from), limit);
        prop_assume!(!page.messages.is_empty());
        let gone = page.messages.remove(which.index(page.messages.len())).seq;
        let mut history = acknowledge_all(&conversation);
        let verdict = history.older(history.begin_read(), SeqNo::new(from), &page);
        prop_assert_eq!(verdict, Err(lost(gone.get())));
        let mut unanswered = History::default();
        let start = ReadStart { acks: 0, stable_through: conversation.stable_through() };
        let top = conversation.top(SeqNo::new(from));
        let verdict = unanswered.older(start, SeqNo::new(from), &page);
        prop_assert!(verdict.is_err() || Some(gone) == top && gone.get() > start.stable_through, "{verdict:?}");
    }
}
