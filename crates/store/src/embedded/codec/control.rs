use saltern_core::archive::ArchiveState;
use saltern_core::control::ControlRecord;
use saltern_core::heat::HeatState;
use saltern_core::layout::{Epoch, Layout};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_core::voids::VoidRuns;

use super::Damage;
use super::wire::{Reader, Writer};

pub(super) fn encode(control: &ControlRecord, out: &mut Writer) {
    out.number(control.layout.horizon().get());
    out.number(control.layout.epochs().len() as u64);
    for epoch in control.layout.epochs() {
        out.number(epoch.from.get());
        out.number(epoch.n.into());
    }
    out.number(control.resolved.get());
    out.number(control.lease);
    out.number(control.extended_at_ms);
    out.maybe_number(control.heat.low_since_ms);
    out.maybe_number(control.heat.widened_at_ms);
    out.maybe_number(control.heat.grown_at_ms);
    out.number(control.voids.runs().len() as u64);
    for run in control.voids.runs() {
        out.number(run.from.get());
        out.number(run.to.get());
    }
    out.number(control.archive.through.get());
    out.maybe_number(control.archive.oldest_ms);
    out.maybe_text(control.archive.moving.as_ref().map(ToString::to_string).as_deref());
    out.number(control.archive.moves);
}

pub(super) fn decode(ver: u64, from: &mut Reader<'_>) -> Result<ControlRecord, Damage> {
    let horizon = seq(from)?;
    let epochs = (0..from.count()?).map(|_| epoch(from)).collect::<Result<_, _>>()?;
    Ok(ControlRecord {
        ver,
        layout: Layout::from_parts(epochs, horizon)?,
        resolved: seq(from)?,
        lease: from.number()?,
        extended_at_ms: from.number()?,
        heat: HeatState {
            low_since_ms: from.maybe_number()?,
            widened_at_ms: from.maybe_number()?,
            grown_at_ms: from.maybe_number()?,
        },
        voids: {
            let runs = (0..from.count()?).map(|_| run(from)).collect::<Result<Vec<_>, _>>()?;
            VoidRuns::from_runs(runs)
        },
        archive: archive(from)?,
    })
}

fn archive(from: &mut Reader<'_>) -> Result<ArchiveState, Damage> {
    Ok(ArchiveState {
        through: seq(from)?,
        oldest_ms: from.maybe_number()?,
        moving: from.maybe_text()?.map(str::parse).transpose()?.map(Box::new),
        moves: from.number()?,
    })
}

fn seq(from: &mut Reader<'_>) -> Result<SeqNo, Damage> {
    SeqNo::new(from.number()?).ok_or(Damage::Number)
}

fn epoch(from: &mut Reader<'_>) -> Result<Epoch, Damage> {
    Ok(Epoch { from: seq(from)?, n: u16::try_from(from.number()?).map_err(|_| Damage::Number)? })
}

fn run(from: &mut Reader<'_>) -> Result<SeqRange, Damage> {
    SeqRange::new(seq(from)?, seq(from)?).ok_or(Damage::Number)
}
