//! Text that a client chose, as an operator may safely see it.

use std::fmt::{self, Display, Write};

/// Shows a value with everything escaped that could forge a line or steer a terminal: control characters, line separators,
/// and characters that change the direction of text.
pub(crate) struct Printable<T>(pub(crate) T);

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

/// Escapes what is written through it.
pub(crate) struct Escaping<W>(pub(crate) W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, mut text: &str) -> fmt::Result {
        while let Some((at, c)) = text.char_indices().find(|(_, c)| is_unsafe(*c)) {
            write!(self.0, "{}{}", &text[..at], c.escape_debug())?;
            text = &text[at + c.len_utf8()..];
        }
        self.0.write_str(text)
    }
}

fn is_unsafe(c: char) -> bool {
    let turns_text =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns_text || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("tea 🧂 größe \\n", "tea 🧂 größe \\n")]
    #[case("a\nERROR forged", "a\\nERROR forged")]
    #[case("\u{1b}[2Jgone\u{7}", "\\u{1b}[2Jgone\\u{7}")]
    #[case("\u{9b}31m", "\\u{9b}31m")]
    #[case("\u{202e}txt.exe", "\\u{202e}txt.exe")]
    #[case("a\u{2028}b\r\t", "a\\u{2028}b\\r\\t")]
    #[case("👩\u{200d}👧", "👩\u{200d}👧")]
    fn nothing_steers_a_terminal(#[case] text: &str, #[case] shown: &str) {
        assert_eq!(Printable(text).to_string(), shown);
    }
}
