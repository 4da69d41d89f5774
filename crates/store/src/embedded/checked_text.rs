//! Small text files that people can read, whose last line is a checksum of all before it.

use xxhash_rust::xxh3::xxh3_64;

const CHECKSUM: &str = "checksum ";

/// Appends the line with the checksum.
pub(super) fn seal(mut text: String) -> String {
    let sum = xxh3_64(text.as_bytes());
    text.push_str(&format!("{CHECKSUM}{sum:016x}\n"));
    text
}

/// The text without its checksum line. `None` if a bit of it has changed.
pub(super) fn verified(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let body = &text[..text.strip_suffix('\n')?.rfind('\n')? + 1];
    (seal(body.to_owned()) == text).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_and_a_changed_bit_is_noticed() {
        let sealed = seal("two\nlines\n".into());
        assert_eq!(verified(sealed.as_bytes()), Some("two\nlines\n"));
        for at in 0..sealed.len() {
            assert_eq!(verified(&sealed.as_bytes()[..at]), None, "cut at {at}");
            for bit in 0..8 {
                let mut bytes = sealed.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                assert_eq!(verified(&bytes), None, "bit {bit} of byte {at}");
            }
        }
    }
}
