//! Numbers, texts and their bounds.

use super::Damage;

pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Goes on behind what is there.
    pub(super) fn behind(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(super) fn tag(&mut self, tag: u8) {
        self.0.push(tag);
    }

    pub(super) fn head(&mut self, kind: u8, version: u64) {
        self.tag(kind);
        self.number(version);
    }

    pub(super) fn number(&mut self, mut value: u64) {
        loop {
            let low = value.to_le_bytes()[0] & 0x7F;
            value >>= 7;
            if value == 0 {
                self.0.push(low);
                return;
            }
            self.0.push(low | 0x80);
        }
    }

    pub(super) fn maybe_number(&mut self, value: Option<u64>) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.number(value);
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes(text.as_bytes());
    }

    pub(super) fn maybe_text(&mut self, text: Option<&str>) {
        self.number(text.map_or(0, |text| text.len() as u64 + 1));
        self.bytes(text.unwrap_or_default().as_bytes());
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn head(&mut self) -> Result<(u8, u64), Damage> {
        let [kind] = self.array()?;
        Ok((kind, self.number()?))
    }

    pub(super) fn number(&mut self) -> Result<u64, Damage> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return Err(Damage::Number);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damage::Number)
    }

    pub(super) fn maybe_number(&mut self) -> Result<Option<u64>, Damage> {
        match self.array()? {
            [0] => Ok(None),
            [1] => self.number().map(Some),
            _ => Err(Damage::Number),
        }
    }

    /// A number of things that each take at least one more byte.
    pub(super) fn count(&mut self) -> Result<usize, Damage> {
        let count = usize::try_from(self.number()?).map_err(|_| Damage::Number)?;
        if count > self.0.len() { Err(Damage::Truncated) } else { Ok(count) }
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damage> {
        let (head, rest) = self.0.split_first_chunk().ok_or(Damage::Truncated)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Damage> {
        let length = self.number()?;
        self.utf8(length)
    }

    pub(super) fn maybe_text(&mut self) -> Result<Option<&'a str>, Damage> {
        match self.number()?.checked_sub(1) {
            None => Ok(None),
            Some(length) => self.utf8(length).map(Some),
        }
    }

    fn utf8(&mut self, length: u64) -> Result<&'a str, Damage> {
        std::str::from_utf8(self.take(length)?).map_err(|_| Damage::Text)
    }

    /// Bytes behind their number.
    pub(super) fn slice(&mut self) -> Result<&'a [u8], Damage> {
        let length = self.number()?;
        self.take(length)
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Damage> {
        let length = usize::try_from(length).map_err(|_| Damage::Number)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Damage::Truncated)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn end(&self) -> Result<(), Damage> {
        if self.0.is_empty() { Ok(()) } else { Err(Damage::Trailing) }
    }
}
