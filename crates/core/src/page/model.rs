//! A conversation made of plain maps, and pages read from it as a service reads them: the next window, cut into
//! slices by the layout, one query per partition, merged.

use std::sync::Arc;

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Ascent, Descent, NewerPage, OlderPage, Order, Placed, Row, merge};
use crate::ids::{MessageId, ParticipantId};
use crate::layout::{Layout, Salt};
use crate::message::{Body, Draft};
use crate::record::MessageRow;
use crate::seq::{SeqNo, SeqRange};
use crate::voids::VoidRuns;

pub(crate) fn seq(n: u64) -> SeqNo {
    SeqNo::new(n).unwrap()
}

pub(crate) fn range(from: u64, to: u64) -> SeqRange {
    SeqRange::new(seq(from), seq(to)).unwrap()
}

pub(crate) fn message_row(id: &str) -> Arc<MessageRow> {
    let sender_id = ParticipantId::new("alice").unwrap();
    let body = Body { sender_id, receiver_id: None, content: String::new(), timestamp: None };
    Arc::new(MessageRow::new(&Draft::new(MessageId::new(id).unwrap(), body).unwrap(), 0))
}

/// What a stretch of seq_nos holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stretch {
    Messages(u64),
    Voids(u64),
    /// Voids that the control record remembers, if they are enough to be worth it.
    KnownVoids(u64),
    Missing(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Conversation {
    rows: BTreeMap<SeqNo, Row>,
    partitions: BTreeMap<(Salt, SeqNo), Row>,
    layout: Layout,
    pub(crate) voids: VoidRuns,
    /// Ends a query's rows with the last message that the page needs, as a query with a limit might.
    pub(crate) frugal: bool,
}

/// What a page cost.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    pub(crate) rows_read: u64,
    pub(crate) looked_at: u64,
    pub(crate) windows: u64,
}

impl Conversation {
    pub(crate) fn new(stretches: &[Stretch], layout: Layout) -> Self {
        let mut all = Self {
            rows: BTreeMap::new(),
            partitions: BTreeMap::new(),
            layout,
            voids: VoidRuns::default(),
            frugal: false,
        };
        let mut next = 1;
        for &stretch in stretches {
            let len = match stretch {
                Stretch::Messages(len) | Stretch::Voids(len) | Stretch::KnownVoids(len) | Stretch::Missing(len) => len,
            };
            let places = range(next, next + len - 1);
            match stretch {
                Stretch::Messages(_) => places.iter().for_each(|s| all.put(s, Some(message_row(&format!("m{s}"))))),
                Stretch::Voids(_) | Stretch::KnownVoids(_) => all.seal(places),
                Stretch::Missing(_) => {}
            }
            if matches!(stretch, Stretch::KnownVoids(_)) {
                all.voids.add(places);
            }
            next += len;
        }
        all
    }

    fn put(&mut self, at: SeqNo, row: Row) {
        while self.layout.horizon() <= at {
            self.layout = self.layout.raised(self.layout.horizon().plus(4_096), self.layout.n());
        }
        self.partitions.insert((self.layout.salt(at).unwrap(), at), row.clone());
        self.rows.insert(at, row);
    }

    /// Puts voids where nothing is.
    pub(crate) fn seal(&mut self, hole: SeqRange) {
        for at in hole.iter().filter(|at| !self.rows.contains_key(at)).collect::<Vec<_>>() {
            self.put(at, None);
        }
    }

    pub(crate) fn head(&self) -> Option<SeqNo> {
        self.rows.last_key_value().map(|(s, _)| *s)
    }

    pub(crate) fn row(&self, at: SeqNo) -> Option<&Row> {
        self.rows.get(&at)
    }

    pub(crate) fn messages(&self) -> Vec<SeqNo> {
        self.rows.iter().filter(|(_, row)| row.is_some()).map(|(s, _)| *s).collect()
    }

    /// The last seq_no that is final along with all before it.
    pub(crate) fn stable_through(&self) -> u64 {
        (1..).find(|&s| !self.rows.contains_key(&seq(s))).unwrap() - 1
    }

    /// The highest seq_no of an older page.
    pub(crate) fn top(&self, before: Option<SeqNo>) -> Option<SeqNo> {
        before.map_or(self.head(), |before| self.head().min(before.prev()))
    }

    fn query(&self, window: SeqRange, order: Order, missing: usize, cost: &mut Cost) -> Vec<Placed<Row>> {
        let runs = self.layout.slices(window).into_iter().map(|slice| {
            let (from, to) = ((slice.salt, slice.range.from), (slice.salt, slice.range.to));
            let rows = self.partitions.range(from..=to).map(|((_, s), row)| Placed { seq: *s, value: row.clone() });
            match order {
                Order::Ascending => rows.collect(),
                Order::Descending => rows.rev().collect::<Vec<_>>(),
            }
        });
        let mut rows = merge(runs.collect(), order);
        if self.frugal {
            let messages = rows.iter().enumerate().filter(|(_, row)| row.value.is_some());
            let last = messages.map(|(i, _)| i).nth(missing - 1);
            rows.truncate(last.map_or(rows.len(), |last| last + 1));
        }
        cost.rows_read += rows.len() as u64;
        cost.looked_at += window.count();
        cost.windows += 1;
        rows
    }

    pub(crate) fn older(&self, before: Option<SeqNo>, limit: usize) -> (OlderPage, Cost) {
        let (mut descent, mut cost) = (Descent::new(self.top(before), limit), Cost::default());
        while let Some(window) = descent.window(&self.voids) {
            let rows = self.query(window, Order::Descending, limit - descent.messages.len(), &mut cost);
            descent.absorb(window, rows);
        }
        (descent.finish(self.stable_through()), cost)
    }

    pub(crate) fn newer(&self, after: u64, limit: usize) -> (NewerPage, Cost) {
        let (mut ascent, mut cost) = (Ascent::new(after, limit), Cost::default());
        while let Some(window) = ascent.window(&self.voids) {
            let rows = self.query(window, Order::Ascending, limit - ascent.messages.len(), &mut cost);
            ascent.absorb(window, rows, self.head());
        }
        (ascent.finish(self.head(), self.stable_through()), cost)
    }
}

fn stretch() -> impl Strategy<Value = Stretch> {
    prop_oneof![
        4 => (1..40_u64).prop_map(Stretch::Messages),
        2 => (1..6_u64).prop_map(Stretch::Voids),
        1 => (60..150_u64).prop_map(Stretch::Voids),
        2 => (60..150_u64).prop_map(Stretch::KnownVoids),
        2 => (1..8_u64).prop_map(Stretch::Missing),
    ]
}

fn layout() -> impl Strategy<Value = Layout> {
    (1..200_u64, prop::collection::vec((1..200_u64, 1..7_u16), 0..8)).prop_map(|(lease, steps)| {
        steps.into_iter().fold(Layout::new(lease), |l, (step, n)| l.raised(l.horizon().plus(step), n))
    })
}

/// Conversations short enough that every page can look at all of it.
pub(crate) fn conversation() -> impl Strategy<Value = Conversation> {
    (prop::collection::vec(stretch(), 0..12), layout())
        .prop_map(|(stretches, layout)| Conversation::new(&stretches, layout))
}
