//! Segments: the contents of many messages of one conversation in one object. What stands here is persisted, and described in
//! docs/archive.md.
//!
//! `SALTSEG` and the version; the length of the header; the header: whose messages, and which blocks; its checksum; the blocks.
//! A block is a Zstandard frame that holds some neighbouring messages, each with a checksum of its own, so that one range
//! read gets a message, and a damaged byte costs no more than its block. Numbers are LEB128, fixed ones little-endian.

use sha2::{Digest as _, Sha256};

use super::reference::BlockRange;
use crate::ids::ConversationId;
use crate::limits::{BLOCK_BYTES, BLOCK_MESSAGES_MAX, CONTENT_BYTES_MAX, SEGMENT_MESSAGES_MAX};
use crate::seq::{SeqNo, SeqRange};

const MAGIC: &[u8; 8] = b"SALTSEG\x01";
const LENGTH_BYTES: usize = 4;
const HEADER_SUM_BYTES: usize = 16;
const SUM_BYTES: usize = 8;
/// Header bytes of a segment: at most an id and a few numbers per block.
const HEADER_BYTES_MAX: usize = 32 * 1_024;
/// Bytes that hold the whole header of any segment.
pub const SEGMENT_BEGINNING_BYTES: u64 = 64 * 1_024;
/// What a block can hold at most: it is closed by the message that fills it.
const PLAIN_BYTES_MAX: usize = BLOCK_BYTES + CONTENT_BYTES_MAX + BLOCK_MESSAGES_MAX * 32;
/// A segment that is written anew may hold what is left of several.
const BLOCKS_MAX: u64 = 4 * SEGMENT_MESSAGES_MAX as u64;
const LEVEL: i32 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SegmentError {
    #[error("not a segment")]
    NotASegment,
    #[error("segment of a version that this build does not know: {0}")]
    Version(u8),
    #[error("segment ends too early")]
    Truncated,
    #[error("segment is damaged")]
    Damaged,
}

/// A segment, and the block of each message in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub bytes: Vec<u8>,
    pub blocks: Vec<BlockRange>,
}

/// What a segment says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    pub conversation: ConversationId,
    pub blocks: Vec<Block>,
}

impl Segment {
    /// From its first message to its last.
    #[must_use]
    pub fn range(&self) -> Option<SeqRange> {
        SeqRange::new(self.blocks.first()?.range.from, self.blocks.last()?.range.to)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Where its first and its last message belong.
    pub range: SeqRange,
    pub messages: usize,
    pub at: BlockRange,
}

/// A message of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: SeqNo,
    /// `Err` if it does not match its checksum.
    pub text: Result<String, SegmentError>,
}

/// Packs messages, in the order of their seq_nos.
#[must_use]
pub fn pack(conversation: &ConversationId, messages: &[(SeqNo, &str)]) -> Packed {
    let groups = groups(messages);
    let frames: Vec<_> = groups.iter().map(|group| frame(group)).collect();
    let mut header = Vec::new();
    text(&mut header, conversation.as_str());
    number(&mut header, groups.len() as u64);
    for (group, frame) in groups.iter().zip(&frames) {
        let (first, last) = (group[0].0, group[group.len() - 1].0);
        number(&mut header, first.get());
        number(&mut header, last.get() - first.get());
        number(&mut header, group.len() as u64);
        number(&mut header, frame.len() as u64);
    }
    let mut bytes = MAGIC.to_vec();
    bytes.extend(u32::try_from(header.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend(header);
    let sum: [u8; HEADER_SUM_BYTES] = checksum(&[&bytes]);
    bytes.extend(sum);
    let mut blocks = Vec::with_capacity(messages.len());
    for (group, frame) in groups.iter().zip(frames) {
        let at = BlockRange { offset: bytes.len() as u64, bytes: frame.len() as u64 };
        blocks.extend(std::iter::repeat_n(at, group.len()));
        bytes.extend(frame);
    }
    Packed { bytes, blocks }
}

/// What the beginning of a segment says. It needs no more than the beginning.
pub fn read_header(bytes: &[u8]) -> Result<Segment, SegmentError> {
    let mut from = Reader(bytes);
    let magic: [u8; MAGIC.len()] = from.array()?;
    match magic.split_last() {
        Some((_, name)) if name != &MAGIC[..7] => return Err(SegmentError::NotASegment),
        Some((version, _)) if *version != MAGIC[7] => return Err(SegmentError::Version(*version)),
        _ => {}
    }
    let length = u32::from_le_bytes(from.array()?) as usize;
    if length > HEADER_BYTES_MAX {
        return Err(SegmentError::Damaged);
    }
    let header = from.take(length)?;
    let sum: [u8; HEADER_SUM_BYTES] = from.array()?;
    let summed = &bytes[..MAGIC.len() + LENGTH_BYTES + length];
    if sum != checksum(&[summed]) {
        return Err(SegmentError::Damaged);
    }
    let first_block = (summed.len() + HEADER_SUM_BYTES) as u64;
    read_header_fields(&mut Reader(header), first_block).ok_or(SegmentError::Damaged)
}

fn read_header_fields(from: &mut Reader<'_>, mut offset: u64) -> Option<Segment> {
    let id = from.number().ok().and_then(|length| usize::try_from(length).ok())?;
    let conversation = ConversationId::new(std::str::from_utf8(from.take(id).ok()?).ok()?).ok()?;
    let count = from.number().ok().filter(|count| *count <= BLOCKS_MAX)?;
    let mut blocks = Vec::new();
    for _ in 0..count {
        let first = SeqNo::new(from.number().ok()?)?;
        let range = SeqRange { from: first, to: first.plus(from.number().ok()?) };
        let messages = usize::try_from(from.number().ok()?).ok()?;
        let bytes = from.number().ok()?;
        blocks.push(Block { range, messages, at: BlockRange { offset, bytes } });
        offset = offset.checked_add(bytes)?;
    }
    Some(Segment { conversation, blocks })
}

/// The messages of a block.
pub fn read_block(frame: &[u8]) -> Result<Vec<Entry>, SegmentError> {
    let plain = zstd::bulk::decompress(frame, PLAIN_BYTES_MAX).map_err(|_| SegmentError::Damaged)?;
    let mut from = Reader(&plain);
    let count = usize::try_from(from.number()?).ok().filter(|count| *count <= BLOCK_MESSAGES_MAX);
    let mut entries = Vec::new();
    for _ in 0..count.ok_or(SegmentError::Damaged)? {
        let seq = SeqNo::new(from.number()?).ok_or(SegmentError::Damaged)?;
        let sum: [u8; SUM_BYTES] = from.array()?;
        let length = usize::try_from(from.number()?).map_err(|_| SegmentError::Damaged)?;
        let content = from.take(length)?;
        let whole = sum == message_sum(seq, content);
        let text = std::str::from_utf8(content).ok().filter(|_| whole).map(str::to_owned);
        entries.push(Entry { seq, text: text.ok_or(SegmentError::Damaged) });
    }
    if from.0.is_empty() { Ok(entries) } else { Err(SegmentError::Damaged) }
}

fn groups<'a, 'b>(mut messages: &'a [(SeqNo, &'b str)]) -> Vec<&'a [(SeqNo, &'b str)]> {
    let mut groups = Vec::new();
    while !messages.is_empty() {
        let mut bytes = 0;
        let full = |(_, content): &(SeqNo, &str)| {
            bytes += content.len();
            bytes >= BLOCK_BYTES
        };
        let end = messages.iter().take(BLOCK_MESSAGES_MAX).position(full).map_or(BLOCK_MESSAGES_MAX, |last| last + 1);
        let (group, rest) = messages.split_at(end.min(messages.len()));
        groups.push(group);
        messages = rest;
    }
    groups
}

fn frame(group: &[(SeqNo, &str)]) -> Vec<u8> {
    let mut plain = Vec::new();
    number(&mut plain, group.len() as u64);
    for (seq, content) in group {
        number(&mut plain, seq.get());
        plain.extend(message_sum(*seq, content.as_bytes()));
        text(&mut plain, content);
    }
    // Fails only for want of memory or at a level that there is not.
    zstd::bulk::compress(&plain, LEVEL).unwrap_or_default()
}

fn message_sum(seq: SeqNo, content: &[u8]) -> [u8; SUM_BYTES] {
    checksum(&[&seq.get().to_le_bytes(), content])
}

/// The beginning of a SHA-256.
fn checksum<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut sha = Sha256::new();
    parts.iter().for_each(|part| sha.update(part));
    let mut sum = [0; N];
    sum.copy_from_slice(&sha.finalize()[..N]);
    sum
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

fn text(out: &mut Vec<u8>, text: &str) {
    number(out, text.len() as u64);
    out.extend(text.as_bytes());
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], SegmentError> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(SegmentError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SegmentError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(SegmentError::Truncated)?;
        self.0 = rest;
        Ok(*array)
    }

    fn number(&mut self) -> Result<u64, SegmentError> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                return Err(SegmentError::Damaged);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(SegmentError::Damaged)
    }
}

#[cfg(test)]
mod tests;
