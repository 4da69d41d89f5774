//! Events that were turned away, kept so that people can see why, and send them again.

use super::moment::Moment;
use crate::limits::DEAD_LETTER_BYTES_MAX;

/// The number of a dead letter: later ones have higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LetterNo(pub u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub received_at: Moment,
    pub reason: String,
    /// The event as it came, as far as it is kept.
    pub event: String,
    /// The event was too long to be kept whole, so it cannot be sent again from here.
    pub cut: bool,
}

impl DeadLetter {
    /// Bytes that are not UTF-8 are shown as `U+FFFD`: such an event was never JSON.
    #[must_use]
    pub fn new(received_at: Moment, reason: String, event: &[u8]) -> Self {
        let cut = event.len() > DEAD_LETTER_BYTES_MAX;
        let kept = &event[..event.len().min(DEAD_LETTER_BYTES_MAX)];
        let mut event = String::from_utf8_lossy(kept).into_owned();
        // What stands for broken bytes is longer than they are.
        let end = (0..=event.len().min(DEAD_LETTER_BYTES_MAX)).rev().find(|end| event.is_char_boundary(*end));
        event.truncate(end.unwrap_or(0));
        Self { received_at, reason, event, cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_events_are_cut_at_a_character() {
        let letter = |event: &[u8]| DeadLetter::new(Moment::from_ms(0).unwrap(), "why".into(), event);
        let whole = "x".repeat(DEAD_LETTER_BYTES_MAX);
        assert_eq!((letter(whole.as_bytes()).event, letter(whole.as_bytes()).cut), (whole.clone(), false));
        assert_eq!(letter(format!("{whole}x").as_bytes()), DeadLetter { cut: true, ..letter(whole.as_bytes()) });
        let salt = letter(format!("x{}", "🧂".repeat(DEAD_LETTER_BYTES_MAX / 4)).as_bytes());
        assert!(salt.cut && salt.event.len() <= DEAD_LETTER_BYTES_MAX && salt.event.starts_with("x🧂"));
        assert_eq!(letter(b"{\xff").event, "{\u{fffd}");
        assert!(letter(&vec![0xff; DEAD_LETTER_BYTES_MAX]).event.len() <= DEAD_LETTER_BYTES_MAX);
    }
}
