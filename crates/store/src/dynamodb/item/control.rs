use aws_sdk_dynamodb::types::AttributeValue;
use saltern_core::archive::ArchiveState;
use saltern_core::control::ControlRecord;
use saltern_core::heat::HeatState;
use saltern_core::key::Key;
use saltern_core::layout::{Epoch, Layout};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_core::voids::VoidRuns;

use super::Damage;
use super::fields::{Fields, number, pairs, text};
use super::{DUE_SHARD, OLDEST, due_shard};

const EPOCHS: &str = "epochs";
const VOIDS: &str = "voids";

pub(super) fn encode(key: &Key, control: &ControlRecord, mut set: impl FnMut(&str, AttributeValue)) {
    set("ver", number(control.ver));
    set("horizon", number(control.layout.horizon().get()));
    set(EPOCHS, pairs(control.layout.epochs().iter().map(|epoch| (epoch.from.get(), epoch.n.into()))));
    set("resolved", number(control.resolved.get()));
    set("lease", number(control.lease));
    set("extended_at", number(control.extended_at_ms));
    let HeatState { low_since_ms, widened_at_ms, grown_at_ms } = control.heat;
    for (name, time) in [("low_since", low_since_ms), ("widened_at", widened_at_ms), ("grown_at", grown_at_ms)] {
        if let Some(time) = time {
            set(name, number(time));
        }
    }
    set(VOIDS, pairs(control.voids.runs().iter().map(|run| (run.from.get(), run.to.get()))));
    let ArchiveState { through, oldest_ms, moving, moves } = &control.archive;
    set("archived_through", number(through.get()));
    if let Some(oldest_ms) = oldest_ms {
        set(OLDEST, number(*oldest_ms));
        set(DUE_SHARD, text(&due_shard(&key.partition).to_string()));
    }
    set("moves", number(*moves));
    if let Some(moving) = moving {
        set("moving", text(&moving.to_string()));
    }
}

pub(super) fn decode(fields: &mut Fields<'_>) -> Result<ControlRecord, Damage> {
    let epochs = fields.pairs(EPOCHS)?.into_iter().map(|pair| epoch(pair).ok_or(Damage::Wrong(EPOCHS)));
    let voids = fields.pairs(VOIDS)?.into_iter().map(|pair| run(pair).ok_or(Damage::Wrong(VOIDS)));
    Ok(ControlRecord {
        ver: fields.number("ver")?,
        layout: Layout::from_parts(epochs.collect::<Result<_, _>>()?, fields.seq("horizon")?)?,
        resolved: fields.seq("resolved")?,
        lease: fields.number("lease")?,
        extended_at_ms: fields.number("extended_at")?,
        heat: HeatState {
            low_since_ms: fields.maybe_number("low_since")?,
            widened_at_ms: fields.maybe_number("widened_at")?,
            grown_at_ms: fields.maybe_number("grown_at")?,
        },
        voids: VoidRuns::from_runs(voids.collect::<Result<Vec<_>, _>>()?),
        archive: ArchiveState {
            through: fields.seq("archived_through")?,
            oldest_ms: fields.maybe_number(OLDEST)?,
            moving: fields.maybe_text("moving")?.map(|text| text.parse()).transpose()?.map(Box::new),
            moves: fields.number("moves")?,
        },
    })
}

fn epoch((from, n): (u64, u64)) -> Option<Epoch> {
    Some(Epoch { from: SeqNo::new(from)?, n: u16::try_from(n).ok()? })
}

fn run((from, to): (u64, u64)) -> Option<SeqRange> {
    SeqRange::new(SeqNo::new(from)?, SeqNo::new(to)?)
}
