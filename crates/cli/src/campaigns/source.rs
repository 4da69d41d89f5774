//! The file: plain or packed, read line by line on a thread of its own.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use flate2::bufread::GzDecoder;
use saltern_core::limits::BULK_BODY_BYTES_MAX;
use tokio::sync::mpsc;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTANDARD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// A frame of Zstandard that holds no content begins with a byte from 0x50 to 0x5f, and these.
const ZSTANDARD_SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
/// Editors put it in front of UTF-8; JSON does not allow it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// What is sent together.
const PIECE_LINES_MAX: u64 = 2_000;
const PIECE_BYTES_MAX: usize = 1024 * 1024;
/// Of a line that is longer than any event may be, this much is kept: enough to be told as such.
const LINE_BYTES_KEPT: usize = BULK_BODY_BYTES_MAX + 1;
/// Pieces that are read ahead.
const PIECES_AHEAD: usize = 4;
const BUFFER_BYTES: usize = 256 * 1024;

/// Consecutive lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Counted from 0.
    pub(super) first_line: u64,
    pub(super) lines: u64,
    /// Each line with its newline.
    pub(super) text: Vec<u8>,
}

/// How much of the file has been read.
#[derive(Debug, Clone)]
pub(super) struct Meter {
    read: Arc<AtomicU64>,
    pub(super) total: u64,
}

impl Meter {
    pub(super) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

struct Metered {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read(buffer)?;
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

pub(super) struct Source {
    path: PathBuf,
    file: BufReader<Metered>,
    meter: Meter,
}

impl Source {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
        let metadata = file.metadata().with_context(|| format!("cannot read {shown}"))?;
        anyhow::ensure!(metadata.is_file(), "{shown} is not a file");
        let meter = Meter { read: Arc::default(), total: metadata.len() };
        let file = BufReader::with_capacity(BUFFER_BYTES, Metered { file, read: Arc::clone(&meter.read) });
        Ok(Self { path: path.to_owned(), file, meter })
    }

    pub(super) fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Reads from this line on. The thread ends with the file, with its first mistake, or when nobody listens any more.
    pub(super) fn pieces(self, first_line: u64) -> Result<mpsc::Receiver<Result<Piece>>> {
        let (pieces, receiver) = mpsc::channel(PIECES_AHEAD);
        std::thread::Builder::new().name("load-read".into()).spawn(move || {
            let path = self.path.clone();
            if let Err(error) = self.read(first_line, &pieces) {
                let explained = explained(error, &path);
                // Whoever listened has an error of their own.
                let _ = pieces.blocking_send(Err(explained));
            }
        })?;
        Ok(receiver)
    }

    fn read(mut self, first_line: u64, pieces: &mpsc::Sender<Result<Piece>>) -> io::Result<()> {
        let head = self.file.fill_buf()?;
        if head.starts_with(GZIP) {
            cut(BufReader::with_capacity(BUFFER_BYTES, Gzip::new(self.file)), first_line, pieces)
        } else if is_zstandard(head) {
            let decoder = zstd::stream::read::Decoder::with_buffer(self.file)?;
            cut(BufReader::with_capacity(BUFFER_BYTES, decoder), first_line, pieces)
        } else {
            cut(self.file, first_line, pieces)
        }
    }
}

fn explained(error: io::Error, path: &Path) -> anyhow::Error {
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => "ends too early: it has been cut short; what came before has been loaded",
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            "is damaged; what came before has been loaded"
        }
        _ => "cannot be read",
    };
    anyhow::Error::new(error).context(format!("{} {what}", path.display()))
}

fn is_zstandard(head: &[u8]) -> bool {
    let skippable =
        head.split_first().is_some_and(|(first, rest)| first >> 4 == 5 && rest.starts_with(ZSTANDARD_SKIPPABLE));
    head.starts_with(ZSTANDARD) || skippable
}

/// The members of a gzip file, one after the other. Tapes and block devices pad files with zeroes, which are no member.
struct Gzip<R: BufRead> {
    /// `None` at the end.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Gzip<R> {
    fn new(file: R) -> Self {
        Self { member: Some(GzDecoder::new(file)) }
    }
}

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.member = self.member.take().map(GzDecoder::into_inner).map_or(Ok(None), next_member)?;
        }
        Ok(0)
    }
}

fn next_member<R: BufRead>(mut file: R) -> io::Result<Option<GzDecoder<R>>> {
    loop {
        let rest = file.fill_buf()?;
        match rest.iter().position(|byte| *byte != 0) {
            Some(0) => return Ok(Some(GzDecoder::new(file))),
            Some(zeroes) => file.consume(zeroes),
            None if rest.is_empty() => return Ok(None),
            None => {
                let zeroes = rest.len();
                file.consume(zeroes);
            }
        }
    }
}

fn cut(mut from: impl BufRead, first_line: u64, pieces: &mpsc::Sender<Result<Piece>>) -> io::Result<()> {
    if from.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        from.consume(BYTE_ORDER_MARK.len());
    }
    let mut line = 0;
    let mut skipped = Vec::new();
    while line < first_line && read_line(&mut from, &mut skipped)? {
        skipped.clear();
        line += 1;
    }
    loop {
        let mut piece = Piece { first_line: line, lines: 0, text: Vec::new() };
        let mut read = Ok(true);
        while piece.lines < PIECE_LINES_MAX && piece.text.len() < PIECE_BYTES_MAX {
            read = read_line(&mut from, &mut piece.text);
            if !matches!(read, Ok(true)) {
                break;
            }
            piece.lines += 1;
        }
        line += piece.lines;
        // Whole lines before a mistake are as good as any.
        if piece.lines > 0 && pieces.blocking_send(Ok(piece)).is_err() {
            return Ok(());
        }
        if !read? {
            return Ok(());
        }
    }
}

/// Appends the next line, with a newline even if the last one lacks it; nothing of it on a mistake. `false` at the end.
fn read_line(from: &mut impl BufRead, text: &mut Vec<u8>) -> io::Result<bool> {
    let start = text.len();
    loop {
        let buffer = from.fill_buf().inspect_err(|_| text.truncate(start))?;
        if buffer.is_empty() {
            let more = text.len() > start;
            if more {
                text.push(b'\n');
            }
            return Ok(more);
        }
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..newline.unwrap_or(buffer.len())];
        let room = LINE_BYTES_KEPT.saturating_sub(text.len() - start);
        text.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(newline.is_some());
        from.consume(used);
        if newline.is_some() {
            text.push(b'\n');
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn lines(text: &[u8], first_line: u64) -> Vec<Piece> {
        let (pieces, mut receiver) = mpsc::channel(100);
        cut(BufReader::with_capacity(7, text), first_line, &pieces).unwrap();
        drop(pieces);
        std::iter::from_fn(|| receiver.blocking_recv()).map(Result::unwrap).collect()
    }

    #[test]
    fn lines_are_kept_whole_and_counted() {
        assert_eq!(lines(b"", 0), []);
        let text = b"first line\n\nlast";
        assert_eq!(lines(text, 0), [Piece { first_line: 0, lines: 3, text: b"first line\n\nlast\n".to_vec() }]);
        assert_eq!(lines(text, 2), [Piece { first_line: 2, lines: 1, text: b"last\n".to_vec() }]);
        assert_eq!(lines(text, 3), []);
        let many = "x\n".repeat(5_000);
        let pieces: Vec<_> = lines(many.as_bytes(), 0).iter().map(|piece| (piece.first_line, piece.lines)).collect();
        assert_eq!(pieces, [(0, 2_000), (2_000, 2_000), (4_000, 1_000)]);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let pieces = lines("\u{feff}{}\n\u{feff}{}\n".as_bytes(), 0);
        assert_eq!(pieces[0].text, "{}\n\u{feff}{}\n".as_bytes());
    }

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn zeroes_after_a_gzip_member_are_padding() {
        let unpacked = |bytes: &[u8]| {
            let mut text = Vec::new();
            Gzip::new(BufReader::with_capacity(5, bytes)).read_to_end(&mut text).map(|_| text)
        };
        let (a, b, zeroes) = (packed(b"a\n"), packed(b"b\n"), vec![0; 1_000]);
        assert_eq!(unpacked(&[&a[..], &zeroes].concat()).unwrap(), b"a\n");
        assert_eq!(unpacked(&[&a[..], &zeroes, &b, &zeroes].concat()).unwrap(), b"a\nb\n");
        assert!(unpacked(&[&a[..], b"garbage"].concat()).is_err());
        assert!(unpacked(&a[..a.len() - 1]).is_err());
    }

    #[test]
    fn zstandard_may_begin_with_a_frame_without_content() {
        let frame = zstd::encode_all(&b"a\n"[..], 1).unwrap();
        let skippable = [&[0x5e][..], ZSTANDARD_SKIPPABLE, &3_u32.to_le_bytes(), b"xyz"].concat();
        let file = [&skippable[..], &frame, &skippable].concat();
        assert!(is_zstandard(&frame) && is_zstandard(&file) && !is_zstandard(b"P*M") && !is_zstandard(b"{}"));
        assert_eq!(zstd::decode_all(&file[..]).unwrap(), b"a\n");
    }

    #[test]
    fn a_line_without_end_takes_no_more_memory_than_it_may() {
        let long = [vec![b'x'; 3 * LINE_BYTES_KEPT], b"\nnext\n".to_vec()].concat();
        let pieces = lines(&long, 0);
        assert_eq!(pieces.iter().map(|piece| piece.lines).sum::<u64>(), 2);
        assert_eq!(pieces[0].text.len(), LINE_BYTES_KEPT + 1);
    }
}
