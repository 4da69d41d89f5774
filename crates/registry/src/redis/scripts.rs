//! The scripts, and what they answer.

use redis::Script;
use saltern_core::meter::Meter;
use saltern_core::seq::SeqNo;

use super::connection::CallError;
use crate::port::Tickets;

pub(super) struct Scripts {
    pub(super) tickets: Script,
    pub(super) install: Script,
    pub(super) raise: Script,
    pub(super) throttled: Script,
    pub(super) look: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            tickets: Script::new(concat!(include_str!("meter.lua"), include_str!("tickets.lua"))),
            install: Script::new(include_str!("install.lua")),
            raise: Script::new(include_str!("raise.lua")),
            throttled: Script::new(concat!(include_str!("meter.lua"), include_str!("throttled.lua"))),
            look: Script::new(concat!(include_str!("meter.lua"), include_str!("look.lua"))),
        }
    }
}

/// Of `tickets.lua`.
pub(super) type TicketsAnswer = (bool, u64, u64, bool, u64, u64, u64, u64);
/// Of `look.lua`.
pub(super) type LookAnswer = (u64, u64, u64, u64, u64, u64, u64, u64, u64);

/// A meter, and the server's time when it was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reading {
    pub(super) meter: Meter,
    pub(super) now_ms: u64,
}

impl Reading {
    pub(super) fn rate_wcu_per_s(self) -> f64 {
        self.meter.rate_per_s(self.now_ms)
    }
}

/// What a request for tickets has done to a conversation that is known.
pub(super) struct Ticketed {
    pub(super) tickets: Tickets,
    pub(super) load: Reading,
    /// Nobody else has metered the conversation in this window.
    pub(super) first_of_window: bool,
}

impl Ticketed {
    pub(super) fn read(answer: TicketsAnswer) -> Result<Self, CallError> {
        let (issued, next, horizon, first_of_window, now_ms, window, before, present) = answer;
        let (next, horizon) = (seq_no(next)?, seq_no(horizon)?);
        let tickets =
            if issued { Tickets::Issued { first: next, horizon } } else { Tickets::Exhausted { next, horizon } };
        Ok(Self { tickets, load: Reading { meter: Meter { window, before, present }, now_ms }, first_of_window })
    }
}

/// A conversation as it is now.
pub(super) struct Look {
    pub(super) load: Reading,
    pub(super) throttled: Reading,
    /// What `throttled` is about; 0 or the first seq_no before anything was throttled.
    pub(super) throttled_epoch: u64,
    pub(super) throttles: u64,
}

impl Look {
    pub(super) fn read(answer: LookAnswer) -> Self {
        let (now_ms, window, before, present, .., throttled_epoch, throttles) = answer;
        let load = Reading { meter: Meter { window, before, present }, now_ms };
        let (.., window, before, present, _, _) = answer;
        let throttled = Reading { meter: Meter { window, before, present }, now_ms };
        Self { load, throttled, throttled_epoch, throttles }
    }
}

fn seq_no(value: u64) -> Result<SeqNo, CallError> {
    SeqNo::new(value).ok_or(CallError::NoSeqNo(value))
}
