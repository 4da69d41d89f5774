//! JSON by hand, for the answers that are long and asked for most. serde looks at every byte of a text by itself, to see
//! whether it must be escaped; here a text is looked at as a whole, since hardly any has such bytes.

use saltern_core::words::{self, Word};
use serde::Serialize;
use serde_json::Result;

/// Most ids are no longer.
const SHORT_BYTES: usize = 32;

pub(crate) struct Json(Vec<u8>);

impl Json {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// What is JSON already.
    #[inline]
    pub(crate) fn raw(&mut self, json: &str) -> &mut Self {
        self.0.extend_from_slice(json.as_bytes());
        self
    }

    pub(crate) fn value(&mut self, value: impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, &value)
    }

    #[inline]
    pub(crate) fn text(&mut self, text: &str) -> Result<()> {
        if !is_plain(text) {
            return self.value(text);
        }
        self.raw("\"").raw(text).raw("\"");
        Ok(())
    }

    /// As serde writes it. What has few digits, as most numbers that people choose, is written as those digits alone; that
    /// two decimals so short are never the same number makes them the shortest for it.
    pub(crate) fn number(&mut self, number: f64) -> Result<()> {
        #[expect(clippy::cast_possible_truncation, reason = "what does not fit is told from the number itself")]
        let thousandths = (number * 1000.0 + 0.5) as u32;
        if !(1..1_000_000_000).contains(&thousandths) || f64::from(thousandths) / 1000.0 != number {
            return self.value(number);
        }
        let (whole, decimals) = (thousandths / 1000, thousandths % 1000);
        if whole >= 10 {
            self.value(whole / 10)?;
        }
        let [ones, tenths, hundredths, last] =
            [whole % 10, decimals / 100, decimals / 10 % 10, decimals % 10].map(|digit| b'0' + (digit & 0xf) as u8);
        match (hundredths, last) {
            (b'0', b'0') => self.0.extend_from_slice(&[ones, b'.', tenths]),
            (_, b'0') => self.0.extend_from_slice(&[ones, b'.', tenths, hundredths]),
            _ => self.0.extend_from_slice(&[ones, b'.', tenths, hundredths, last]),
        }
        Ok(())
    }

    pub(crate) fn text_or_null(&mut self, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => self.text(text),
            None => self.value(()),
        }
    }

    pub(crate) fn list<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(T, &mut Self) -> Result<()>,
    ) -> Result<()> {
        self.raw("[");
        for (i, item) in items.into_iter().enumerate() {
            if i > 0 {
                self.raw(",");
            }
            write(item, self)?;
        }
        self.raw("]");
        Ok(())
    }
}

/// How long a string is once it is written.
pub(super) fn text_len(text: &str) -> usize {
    let escapes = if is_plain(text) { 0 } else { text.bytes().map(escape_len).sum() };
    "\"\"".len() + text.len() + escapes
}

/// What an escape adds to a byte.
fn escape_len(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => r"\n".len() - 1,
        0..b' ' => r"\u0000".len() - 1,
        _ => 0,
    }
}

fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() <= SHORT_BYTES {
        return words::is_free(bytes, escaped);
    }
    // Without a branch for each byte, so that the compiler takes sixteen together.
    bytes.iter().fold(true, |plain, byte| plain & (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\'))
}

/// What may not stand in a string as it is.
pub(super) fn escaped(word: Word) -> u64 {
    word.below(b' ') | word.is(b'"') | word.is(b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        let mut json = Json::with_capacity(0);
        json.text(text).unwrap();
        String::from_utf8(json.into_bytes()).unwrap()
    }

    /// Wherever it stands, among however many others.
    #[test]
    fn texts_are_written_as_serde_writes_them() {
        for odd in ["\0", "\u{1f}", " ", "\"", "\\", "/", "\u{7f}", "\u{80}", "ü", "\u{2028}", "\u{202e}", "👩‍👩‍👧", ""]
        {
            for length in [0, 1, 15, 16, 17, 31, 32, 33, 100] {
                for at in 0..=length {
                    let odd = format!("{}{odd}{}", "x".repeat(at), "y".repeat(length - at));
                    assert_eq!(text(&odd), serde_json::to_string(&odd).unwrap());
                    assert_eq!(text_len(&odd), text(&odd).len());
                }
            }
        }
    }

    #[test]
    fn every_byte_that_serde_escapes_is_escaped() {
        for byte in 0..0x80_u8 {
            let one = char::from(byte).to_string();
            let is_escaped = serde_json::to_string(&one).unwrap() != format!("\"{one}\"");
            assert_eq!(is_plain(&one), !is_escaped, "{byte:#x}");
            assert_eq!(text_len(&one), text(&one).len(), "{byte:#x}");
        }
    }

    #[test]
    fn numbers_are_written_as_serde_writes_them() {
        let written = |number: f64| {
            let mut json = Json::with_capacity(0);
            json.number(number).unwrap();
            String::from_utf8(json.into_bytes()).unwrap()
        };
        let edges =
            [1e-9, 0.0005, 0.0015, 999_999.999, 1e6, 1e15, 1e300, f64::MIN_POSITIVE, f64::MAX, 0.1 + 0.2, 1.0 / 3.0];
        let decimals = (1..2_000_000_u32).step_by(7).map(|n| f64::from(n) / 1000.0);
        let near = decimals.clone().step_by(101).flat_map(|n| [n.next_up(), n.next_down()]);
        for number in decimals.chain(near).chain(edges) {
            assert_eq!(written(number), serde_json::to_string(&number).unwrap());
        }
    }

    #[test]
    fn lists_have_commas_between_them() {
        for (items, expected) in [(vec![], "[]"), (vec![1], "[1]"), (vec![1, 2, 3], "[1,2,3]")] {
            let mut json = Json::with_capacity(0);
            json.list(&items, |item, json| json.value(item)).unwrap();
            assert_eq!(json.into_bytes(), expected.as_bytes());
        }
    }
}
