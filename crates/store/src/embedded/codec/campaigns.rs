//! Boosts, markets and dead letters. A boost's rank stands in front, so that it can be compared without the rest.

use saltern_core::campaigns::{
    Boost, DaySet, DeadLetter, LetterNo, Market, MarketModel, Moment, Rank, Schedule, Score, Slot, SlotName, State,
    Terms, TimeOfDay, Window,
};
use saltern_core::message::Digest;

use super::wire::{Reader, Writer};
use super::{BOOST, DEAD_LETTER, Damage, MARKET};
use crate::campaigns::MarketRecord;

const ACTIVE: u8 = 0;
const ENDED: u8 = 1;
const WILDCARD: u8 = 0;
const ZONED: u8 = 1;

/// How a dead letter is kept.
const WHOLE: u8 = 0;
const CUT: u8 = 1;
const REMOVED: u8 = 2;

/// Most boosts fit.
const BOOST_BYTES: usize = 64;

pub(in crate::embedded) fn encode_boost(boost: &Boost) -> Vec<u8> {
    let mut out = Writer::with_capacity(BOOST_BYTES);
    let rank = boost.rank();
    out.head(BOOST, rank.last_updated.as_ms().cast_unsigned());
    out.bytes(&[if rank.ended { ENDED } else { ACTIVE }]);
    if let State::Active(terms) = &boost.state {
        let (schedule, window) = (&terms.schedule, terms.schedule.window());
        out.bytes(&rank.digest.0);
        out.bytes(&terms.score.get().to_be_bytes());
        out.bytes(&[schedule.days().bits()]);
        out.maybe_number(window.starts_at.map(|moment| moment.as_ms().cast_unsigned()));
        out.maybe_number(window.ends_at.map(|moment| moment.as_ms().cast_unsigned()));
        out.number(schedule.slots().len() as u64);
        schedule.slots().iter().for_each(|slot| out.text(slot.as_str()));
    }
    out.finish()
}

fn read_rank(from: &mut Reader<'_>) -> Result<Rank, Damage> {
    let last_updated = match from.head()? {
        (BOOST, ms) => moment(ms)?,
        (kind, _) => return Err(Damage::Kind(kind)),
    };
    match from.array()? {
        [ACTIVE] => Ok(Rank { last_updated, ended: false, digest: Digest(from.array()?) }),
        [ENDED] => Ok(Boost { state: State::Ended, last_updated }.rank()),
        _ => Err(Damage::Number),
    }
}

/// The rank of a boost, without looking at the rest of it.
pub(in crate::embedded) fn rank(bytes: &[u8]) -> Result<Rank, Damage> {
    read_rank(&mut Reader::new(bytes))
}

pub(in crate::embedded) fn decode_boost(bytes: &[u8]) -> Result<Boost, Damage> {
    let mut from = Reader::new(bytes);
    let rank = read_rank(&mut from)?;
    let state = if rank.ended { State::Ended } else { State::Active(terms(&mut from)?) };
    from.end()?;
    Ok(Boost { state, last_updated: rank.last_updated })
}

fn terms(from: &mut Reader<'_>) -> Result<Terms, Damage> {
    let score = Score::new(f64::from_be_bytes(from.array()?)).map_err(|_| Damage::Number)?;
    let [days] = from.array()?;
    let days = DaySet::from_bits(days).ok_or(Damage::Number)?;
    let window = Window {
        starts_at: from.maybe_number()?.map(moment).transpose()?,
        ends_at: from.maybe_number()?.map(moment).transpose()?,
    };
    let slots = (0..from.count()?).map(|_| SlotName::new(from.text()?).ok_or(Damage::Number));
    let slots = slots.collect::<Result<_, _>>()?;
    Ok(Terms { score, schedule: Schedule::new(days, slots, window) })
}

fn moment(ms: u64) -> Result<Moment, Damage> {
    Moment::from_ms(ms.cast_signed()).map_err(|_| Damage::Number)
}

pub(in crate::embedded) fn encode_market(record: &MarketRecord) -> Vec<u8> {
    let mut out = Writer::with_capacity(0);
    out.head(MARKET, record.revision);
    let model = match record.market.model() {
        MarketModel::Wildcard => WILDCARD,
        MarketModel::Zoned => ZONED,
    };
    out.bytes(&[model]);
    out.text(record.market.time_zone());
    out.number(record.market.slots().len() as u64);
    for (name, slot) in record.market.slots() {
        out.text(name.as_str());
        out.number(slot.start().minutes().into());
        out.number(slot.end().minutes().into());
    }
    out.finish()
}

pub(in crate::embedded) fn decode_market(bytes: &[u8]) -> Result<MarketRecord, Damage> {
    let mut from = Reader::new(bytes);
    let revision = match from.head()? {
        (MARKET, revision) => revision,
        (kind, _) => return Err(Damage::Kind(kind)),
    };
    let model = match from.array()? {
        [WILDCARD] => MarketModel::Wildcard,
        [ZONED] => MarketModel::Zoned,
        _ => return Err(Damage::Number),
    };
    let zone = from.text()?;
    let slots = (0..from.count()?).map(|_| slot(&mut from)).collect::<Result<Vec<_>, _>>()?;
    from.end()?;
    Ok(MarketRecord { market: Market::new(model, zone, slots)?, revision })
}

fn slot<'a>(from: &mut Reader<'a>) -> Result<(&'a str, Slot), Damage> {
    let name = from.text()?;
    let mut time = || u16::try_from(from.number()?).ok().and_then(TimeOfDay::from_minutes).ok_or(Damage::Number);
    let slot = Slot::new(time()?, time()?).map_err(|_| Damage::Number)?;
    Ok((name, slot))
}

pub(in crate::embedded) fn encode_letter(number: LetterNo, letter: &DeadLetter) -> Vec<u8> {
    let mut out = Writer::with_capacity(letter.event.len() + letter.reason.len() + BOOST_BYTES);
    out.head(DEAD_LETTER, number.0);
    out.number(letter.received_at.as_ms().cast_unsigned());
    out.bytes(&[if letter.cut { CUT } else { WHOLE }]);
    out.text(&letter.reason);
    out.text(&letter.event);
    out.finish()
}

/// Stands where a letter was, so that its number is not given to another. It goes when the letter would have.
pub(in crate::embedded) fn encode_removed_letter(number: LetterNo) -> Vec<u8> {
    let mut out = Writer::with_capacity(0);
    out.head(DEAD_LETTER, number.0);
    out.number(0);
    out.bytes(&[REMOVED]);
    out.finish()
}

/// A letter, or `None` where one was removed.
pub(in crate::embedded) fn decode_letter(bytes: &[u8]) -> Result<(LetterNo, Option<DeadLetter>), Damage> {
    let mut from = Reader::new(bytes);
    let number = match from.head()? {
        (DEAD_LETTER, number) => LetterNo(number),
        (kind, _) => return Err(Damage::Kind(kind)),
    };
    let received_at = moment(from.number()?)?;
    let cut = match from.array()? {
        [WHOLE] => false,
        [CUT] => true,
        [REMOVED] => {
            from.end()?;
            return Ok((number, None));
        }
        _ => return Err(Damage::Number),
    };
    let letter = DeadLetter { received_at, cut, reason: from.text()?.to_owned(), event: from.text()?.to_owned() };
    from.end()?;
    Ok((number, Some(letter)))
}

#[cfg(test)]
mod tests;
