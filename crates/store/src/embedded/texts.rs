//! Keys and values in memory, one behind the other.
//!
//! What the log holds is written once, read now and then, and let go of all at once. So it lies in large pieces: an allocation
//! for each text would take more memory, and as many frees when it goes.

const PIECE_BYTES: usize = 256 * 1_024;
/// Lengths of key and value.
const HEAD_BYTES: usize = 2 + 4;
/// In place of a value's length where there is none.
const REMOVED: u32 = u32::MAX;

#[derive(Default)]
pub(super) struct Texts(Vec<Vec<u8>>);

/// A key and its value; none, if the key was removed.
type Text<'a> = (&'a [u8], Option<&'a [u8]>);

/// Where a key and its value are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    piece: u32,
    at: u32,
}

impl Texts {
    /// Keys are bounded by the limits on ids, values by those on bodies.
    pub(super) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Place {
        let bytes = value.unwrap_or_default();
        let length = HEAD_BYTES + key.len() + bytes.len();
        let piece = match self.0.pop() {
            Some(piece) if piece.capacity() - piece.len() >= length => piece,
            full => {
                self.0.extend(full);
                Vec::with_capacity(length.max(PIECE_BYTES))
            }
        };
        let place = Place { piece: short(self.0.len()), at: short(piece.len()) };
        self.0.push(piece);
        if let Some(piece) = self.0.last_mut() {
            piece.extend_from_slice(&u16::try_from(key.len()).unwrap_or(u16::MAX).to_le_bytes());
            piece.extend_from_slice(&value.map_or(REMOVED, |value| short(value.len())).to_le_bytes());
            piece.extend_from_slice(key);
            piece.extend_from_slice(bytes);
        }
        place
    }

    /// What was pushed. Only for places of these texts.
    pub(super) fn get(&self, place: Place) -> Text<'_> {
        let entry = &self.0[place.piece as usize][place.at as usize..];
        first(entry).map_or((&[], None), |(text, _)| text)
    }

    /// All that was pushed, in this order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Text<'_>> {
        self.0.iter().flat_map(|piece| {
            let mut rest = piece.as_slice();
            std::iter::from_fn(move || {
                let (text, behind) = first(rest)?;
                rest = behind;
                Some(text)
            })
        })
    }
}

/// The first of several, and what is behind it.
fn first(entries: &[u8]) -> Option<(Text<'_>, &[u8])> {
    let ([a, b, c, d, e, f], rest) = entries.split_first_chunk::<HEAD_BYTES>()?;
    let (key, rest) = rest.split_at(usize::from(u16::from_le_bytes([*a, *b])));
    let value = u32::from_le_bytes([*c, *d, *e, *f]);
    if value == REMOVED {
        return Some(((key, None), rest));
    }
    let (value, rest) = rest.split_at(value as usize);
    Some(((key, Some(value)), rest))
}

fn short(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_pushed_is_found() {
        let mut texts = Texts::default();
        let long = vec![7; PIECE_BYTES + 1];
        let entries: Vec<(Vec<u8>, Option<Vec<u8>>)> = (0..3_000_u32)
            .map(|i| {
                let value = match i % 700 {
                    0 => Some(long.clone()),
                    1 => None,
                    2 => Some(Vec::new()),
                    _ => Some(vec![1; i as usize % 500]),
                };
                (i.to_string().into_bytes(), value)
            })
            .collect();
        let places: Vec<_> = entries.iter().map(|(key, value)| texts.push(key, value.as_deref())).collect();
        for ((key, value), place) in entries.iter().zip(places) {
            assert_eq!(texts.get(place), (key.as_slice(), value.as_deref()));
        }
        assert!(texts.iter().eq(entries.iter().map(|(key, value)| (key.as_slice(), value.as_deref()))));
        assert!(texts.0.len() > 5, "{}", texts.0.len());
    }
}
