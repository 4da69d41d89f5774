//! Texts looked at eight bytes at a time. Ids are short, and there are many of them in one request.

const BYTES: usize = size_of::<u64>();
const EACH: u64 = u64::from_le_bytes([1; BYTES]);
const HIGHEST: u64 = EACH << 7;

/// Eight bytes of a text. Questions are answered with the highest bit of bytes that it is true of; the first such byte is
/// always right, and those behind it may be wrong.
#[derive(Clone, Copy)]
pub struct Word(u64);

impl Word {
    /// `least` is at most 128. What is subtracted borrows from a byte's highest bit only if the byte is too small.
    #[must_use]
    pub fn below(self, least: u8) -> u64 {
        self.0.wrapping_sub(EACH * u64::from(least)) & !self.0 & HIGHEST
    }

    #[must_use]
    pub fn is(self, byte: u8) -> u64 {
        Self(self.0 ^ (EACH * u64::from(byte))).below(1)
    }

    #[must_use]
    pub fn beyond_ascii(self) -> u64 {
        self.0 & HIGHEST
    }
}

/// The text in words; bytes that it lacks are spaces.
fn short(bytes: &[u8]) -> Word {
    let mut word = [b' '; BYTES];
    for (place, byte) in word.iter_mut().zip(bytes) {
        *place = *byte;
    }
    Word(u64::from_le_bytes(word))
}

/// Whether `marks` finds nothing. It must not mark spaces.
#[must_use]
pub fn is_free(bytes: &[u8], marks: impl Fn(Word) -> u64) -> bool {
    let Some(last) = bytes.last_chunk() else { return marks(short(bytes)) == 0 };
    let (words, _) = bytes.as_chunks();
    // The last word may overlap the one before it.
    let marks = |word: &[u8; BYTES]| marks(Word(u64::from_le_bytes(*word)));
    words.iter().fold(marks(last), |marked, word| marked | marks(word)) == 0
}

/// Where `marks` finds the first one. It must not mark spaces.
#[must_use]
pub fn position(bytes: &[u8], marks: impl Fn(Word) -> u64) -> Option<usize> {
    let (words, rest) = bytes.as_chunks();
    for (i, word) in words.iter().enumerate() {
        let marked = marks(Word(u64::from_le_bytes(*word)));
        if marked != 0 {
            return Some(i * BYTES + place(marked));
        }
    }
    let marked = marks(short(rest));
    (marked != 0).then(|| words.len() * BYTES + place(marked))
}

fn place(marked: u64) -> usize {
    (marked.trailing_zeros() / u8::BITS) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_odd(byte: u8) -> bool {
        byte < b' ' || byte == b'"' || byte >= 0x80
    }

    fn odd(word: Word) -> u64 {
        word.below(b' ') | word.is(b'"') | word.beyond_ascii()
    }

    #[test]
    fn every_byte_is_found_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for length in 1..=25 {
                for at in 0..length {
                    let mut text = vec![b'x'; length];
                    text[at] = byte;
                    assert_eq!(is_free(&text, odd), !is_odd(byte), "{byte:#x}");
                    assert_eq!(position(&text, odd), is_odd(byte).then_some(at), "{byte:#x}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_first_of_many_is_found(text in prop::collection::vec(prop_oneof![any::<u8>(), 0x1e..0x24_u8, 0x7e..0x82_u8], 0..40)) {
            let first = text.iter().position(|byte| is_odd(*byte));
            prop_assert_eq!(position(&text, odd), first);
            prop_assert_eq!(is_free(&text, odd), first.is_none());
        }
    }
}
