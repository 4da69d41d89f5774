//! Records for the tests of codecs.

use proptest::prelude::*;
use saltern_core::archive::ArchiveState;
use saltern_core::control::ControlRecord;
use saltern_core::heat::HeatState;
use saltern_core::ids::{MessageId, ParticipantId};
use saltern_core::layout::Layout;
use saltern_core::limits::SEQ_NO_END;
use saltern_core::message::{Body, Digest};
use saltern_core::record::{Claim, Content, MessageRow, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_core::voids::VoidRuns;

pub(crate) fn row(receiver: Option<&str>, timestamp: Option<&str>) -> Record {
    let body = Body {
        sender_id: ParticipantId::new("al").unwrap(),
        receiver_id: receiver.map(|receiver| ParticipantId::new(receiver).unwrap()),
        content: "hé".into(),
        timestamp: timestamp.map(str::to_owned),
    };
    Record::Message(MessageRow::with_digest(MessageId::new("m1").unwrap(), body, Digest([0xAB; 16]), 300))
}

pub(crate) fn moved(content: Content) -> Record {
    let Record::Message(row) = row(None, Some("t")) else { unreachable!() };
    Record::Message(row.moved(content))
}

pub(crate) fn archived() -> Record {
    moved(Content::Archived { at: "seg-1#31+20".parse().unwrap(), text: None })
}

pub(crate) fn claim() -> Record {
    Record::Claim(Claim { seq: SeqNo::clamped(300), digest: Digest([1; 16]) })
}

pub(crate) fn control() -> Record {
    Record::Control(ControlRecord {
        ver: 200,
        layout: Layout::new(8).raised(SeqNo::clamped(500), 3),
        resolved: SeqNo::clamped(400),
        lease: 16,
        extended_at_ms: 5,
        heat: HeatState { low_since_ms: None, widened_at_ms: Some(6), grown_at_ms: Some(7) },
        voids: VoidRuns::from_runs([SeqRange { from: SeqNo::clamped(2), to: SeqNo::clamped(129) }]),
        archive: ArchiveState {
            through: SeqNo::clamped(300),
            oldest_ms: Some(8),
            moving: "300-301 9 a b".parse().map(Box::new).ok(),
            moves: 150,
        },
    })
}

fn seqs() -> impl Strategy<Value = SeqNo> {
    prop_oneof![1..300_u64, 1..=SEQ_NO_END].prop_map(SeqNo::clamped)
}

fn messages() -> impl Strategy<Value = Record> {
    let receiver = prop::option::of("\\PC{1,20}");
    (any::<[u8; 16]>(), any::<u64>(), "\\PC{1,20}", "\\PC{1,20}", receiver, any::<String>(), any::<Option<String>>())
        .prop_map(|(digest, ingested_at_ms, id, sender, receiver, content, timestamp)| {
            let body = Body {
                sender_id: ParticipantId::new(&sender).unwrap(),
                receiver_id: receiver.map(|receiver| ParticipantId::new(&receiver).unwrap()),
                content,
                timestamp,
            };
            let row = MessageRow::with_digest(MessageId::new(&id).unwrap(), body, Digest(digest), ingested_at_ms);
            let at = "seg-1#31+20".parse().unwrap();
            Record::Message(match ingested_at_ms % 3 {
                0 => row,
                1 => row.moved(Content::Archived { at, text: None }),
                _ => row.moved(Content::Erased),
            })
        })
}

fn controls() -> impl Strategy<Value = Record> {
    let steps = prop::collection::vec((1..5_000_u64, 1..300_u16), 0..40);
    let runs = prop::collection::vec((1..100_000_u64, 0..500_u64), 0..80);
    let heat = (any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<u64>>());
    (any::<u64>(), steps, runs, heat, (seqs(), any::<u64>(), any::<u64>())).prop_map(
        |(ver, steps, runs, (low_since_ms, widened_at_ms, grown_at_ms), (resolved, lease, extended_at_ms))| {
            let raise = |layout: Layout, (step, n)| layout.raised(layout.horizon().plus(step), n);
            let run = |(from, count)| SeqRange { from: SeqNo::clamped(from), to: SeqNo::clamped(from + count) };
            Record::Control(ControlRecord {
                ver,
                layout: steps.into_iter().fold(Layout::new(8), raise),
                resolved,
                lease,
                extended_at_ms,
                heat: HeatState { low_since_ms, widened_at_ms, grown_at_ms },
                voids: VoidRuns::from_runs(runs.into_iter().map(run)),
                archive: ArchiveState {
                    through: resolved,
                    oldest_ms: low_since_ms,
                    moving: grown_at_ms.map(|began| Box::new(format!("1-512 {began} a b").parse().unwrap())),
                    moves: lease,
                },
            })
        },
    )
}

/// Any record.
pub(crate) fn records() -> impl Strategy<Value = Record> {
    let claims = (seqs(), any::<[u8; 16]>()).prop_map(|(seq, digest)| Claim { seq, digest: Digest(digest) });
    prop_oneof![messages(), Just(Record::Void), claims.prop_map(Record::Claim), controls()]
}
