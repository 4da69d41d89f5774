//! The scripts, and what they answer.

use redis::Script;
use saltern_core::meter::{Meter, WINDOW_MS};
use saltern_core::seq::SeqNo;

use super::connection::CallError;
use crate::port::Tickets;

/// What tickets need of a conversation: next, horizon, and its meter's window, before and present, as one field. Five fields
/// cost Redis twice as much. Exact up to 2^53, as all numbers of a script.
const STATE: &str = ">I8I8I8I8I8";

pub(super) struct Scripts {
    pub(super) tickets: Script,
    pub(super) install: Script,
    pub(super) raise: Script,
    pub(super) throttled: Script,
    pub(super) look: Script,
}

impl Scripts {
    /// What is idle for so long expires.
    pub(super) fn new(idle_ms: u64) -> Self {
        // The expiry moves on with the first ticket of a window alone, and must outlast the others.
        let expiry_ms = idle_ms + WINDOW_MS;
        // As part of the text: every argument costs time with every ticket.
        let tickets = format!(
            "local window_ms, expiry_ms = {WINDOW_MS}, {expiry_ms}\n{}{}{}",
            include_str!("tickets.lua"),
            include_str!("meter.lua"),
            include_str!("tickets_turn.lua")
        );
        let with_state = |script: &str| Script::new(&format!("local state = '{STATE}'\n{script}"));
        Self {
            tickets: with_state(&tickets),
            install: with_state(include_str!("install.lua")),
            raise: with_state(include_str!("raise.lua")),
            throttled: Script::new(concat!(include_str!("meter.lua"), include_str!("throttled.lua"))),
            look: with_state(concat!(include_str!("meter.lua"), include_str!("look.lua"))),
        }
    }
}

// `tickets.lua` takes the server's second for the window.
const _: () = assert!(WINDOW_MS == 1_000);

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
    /// The load, if nobody else has metered the conversation in this window.
    pub(super) first_of_window: Option<Reading>,
}

impl Ticketed {
    /// What `tickets.lua` answers to a request for so many.
    pub(super) fn read(answer: &[u64], count: u64) -> Result<Self, CallError> {
        let (next, horizon, first_of_window) = match *answer {
            [next, horizon] => (next, horizon, None),
            [next, horizon, now_ms, window, before, present] => {
                (next, horizon, Some(Reading { meter: Meter { window, before, present }, now_ms }))
            }
            _ => return Err(CallError::NoTickets(answer.len())),
        };
        let fits = count <= horizon.saturating_sub(next);
        let (next, horizon) = (seq_no(next)?, seq_no(horizon)?);
        let tickets = match fits {
            true => Tickets::Issued { first: next, horizon },
            false => Tickets::Exhausted { next, horizon },
        };
        Ok(Self { tickets, first_of_window })
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
