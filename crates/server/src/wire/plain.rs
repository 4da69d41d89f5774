//! JSON of the usual shape, read in one pass: objects of strings and lists of strings, none of them escaped. Whatever is
//! different, above all what is wrong, is left to serde, which reads it again and says what it is.

use saltern_core::words;

use super::json::escaped;

pub(super) struct Plain<'a> {
    text: &'a str,
    /// Where the rest begins.
    at: usize,
}

impl<'a> Plain<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte behind spaces.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    /// Whether this byte, a character by itself, comes next.
    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn string(&mut self) -> Option<&'a str> {
        if !self.eat(b'"') {
            return None;
        }
        let rest = &self.text.as_bytes()[self.at..];
        let length = words::position(rest, escaped)?;
        let string = self.text.get(self.at..self.at + length)?;
        self.at += length + 1;
        (rest[length] == b'"').then_some(string)
    }

    pub(super) fn strings(&mut self, mut each: impl FnMut(&'a str) -> Option<()>) -> Option<()> {
        if !self.eat(b'[') {
            return None;
        }
        if self.eat(b']') {
            return Some(());
        }
        loop {
            each(self.string()?)?;
            if !self.eat(b',') {
                return self.eat(b']').then_some(());
            }
        }
    }

    /// An object, and nothing behind it. `member` reads the value of the name that it gets.
    pub(super) fn object(mut self, mut member: impl FnMut(&'a str, &mut Self) -> Option<()>) -> Option<()> {
        if !self.eat(b'{') {
            return None;
        }
        loop {
            let name = self.string()?;
            if !self.eat(b':') {
                return None;
            }
            member(name, &mut self)?;
            if !self.eat(b',') {
                return (self.eat(b'}') && self.peek().is_none()).then_some(());
            }
        }
    }
}
