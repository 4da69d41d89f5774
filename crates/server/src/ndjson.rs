//! Bodies of any length, line by line, in bounded memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use saltern_core::limits::BULK_BODY_BYTES_MAX;
use tokio::time::{Instant, timeout_at};

use crate::budget::{Budget, Reservation};
use crate::problem::{Kind, Problem};

/// The longest line; a longer one is told as such, and the rest of the body goes on.
pub(crate) const LINE_BYTES_MAX: usize = BULK_BODY_BYTES_MAX;
/// Lines, and bytes of lines, that are handed on together.
const PIECE_LINES_MAX: usize = 512;
const PIECE_BYTES_MAX: usize = 1024 * 1024;

/// One line that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Counted from 0, with the blank ones.
    pub(crate) index: usize,
    /// Its beginning, if it is too long.
    pub(crate) bytes: Vec<u8>,
    pub(crate) too_long: bool,
}

pub(crate) struct Lines {
    body: Body,
    /// How long a line may take to arrive, from the moment at which it is waited for.
    timeout: Duration,
    /// Memory for the lines that have arrived and are not done with.
    reservation: Reservation,
    /// Arrived, but not looked at.
    data: Bytes,
    /// The line that is not complete.
    line: Vec<u8>,
    /// What comes of it is dropped.
    too_long: bool,
    index: usize,
}

impl Lines {
    pub(crate) fn new(body: Body, timeout: Duration, budget: &Arc<Budget>) -> Result<Self, Problem> {
        Ok(Self {
            body,
            timeout,
            reservation: budget.reserve(0)?,
            data: Bytes::new(),
            line: Vec::new(),
            too_long: false,
            index: 0,
        })
    }

    /// Lines read so far.
    pub(crate) fn count(&self) -> usize {
        self.index
    }

    /// The next lines; none at the end. The last line need not end in a newline. The lines before are done with: their
    /// memory is given back.
    ///
    /// Lines that have arrived are handed on in time, even if there are few: nobody can make the server hold them by
    /// sending the next one slowly.
    pub(crate) async fn next_piece(&mut self) -> Result<Vec<Line>, Problem> {
        let piece_due = Instant::now() + self.timeout;
        let (mut line_due, mut lines_seen) = (piece_due, self.index);
        let (mut piece, mut bytes) = (Vec::new(), 0);
        while piece.len() < PIECE_LINES_MAX && bytes < PIECE_BYTES_MAX {
            if self.data.is_empty() {
                if self.index > lines_seen {
                    (line_due, lines_seen) = (Instant::now() + self.timeout, self.index);
                }
                let due = if piece.is_empty() { line_due } else { piece_due };
                match timeout_at(due, self.body.frame()).await {
                    Ok(Some(Ok(frame))) => self.data = frame.into_data().unwrap_or_default(),
                    Ok(Some(Err(_))) => return Err(Problem::invalid(format!("the body ended early {}", self.taken()))),
                    Ok(None) => {
                        piece.extend(self.end_line());
                        return Ok(piece);
                    }
                    Err(_) if !piece.is_empty() => return Ok(piece),
                    Err(_) => {
                        let detail = format!("the body stalled {}", self.taken());
                        return Err(Problem::new(Kind::RequestTimeout, detail));
                    }
                }
                self.reservation.resize(bytes + self.line.capacity() + self.data.len())?;
                continue;
            }
            if let Some(line) = self.take_line() {
                bytes += line.bytes.len();
                piece.push(line);
            }
        }
        Ok(piece)
    }

    fn taken(&self) -> String {
        format!("after {} lines; some lines may have been applied, send all of them again", self.index)
    }

    /// The line that ends in what has arrived, if one does and it is not blank.
    fn take_line(&mut self) -> Option<Line> {
        let newline = self.data.iter().position(|byte| *byte == b'\n');
        let part = self.data.split_to(newline.unwrap_or(self.data.len()));
        let room = LINE_BYTES_MAX - self.line.len();
        self.too_long |= part.len() > room;
        self.line.extend_from_slice(&part[..part.len().min(room)]);
        newline?;
        let _newline = self.data.split_to(1);
        self.end_line()
    }

    fn end_line(&mut self) -> Option<Line> {
        let bytes = std::mem::take(&mut self.line);
        let (too_long, index) = (std::mem::take(&mut self.too_long), self.index);
        self.index += 1;
        (!bytes.trim_ascii().is_empty()).then_some(Line { index, bytes, too_long })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::{StreamExt as _, stream};
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use rstest::rstest;

    use super::*;

    async fn lines(parts: Vec<Vec<u8>>) -> (Vec<Line>, usize) {
        let frames = parts.into_iter().map(|part| Ok::<_, Infallible>(Frame::data(Bytes::from(part))));
        let body = Body::new(StreamBody::new(stream::iter(frames)));
        let mut lines = Lines::new(body, Duration::from_secs(5), &Budget::new(usize::MAX)).ok().unwrap();
        let (mut all, mut pieces) = (Vec::new(), 0);
        loop {
            let piece = lines.next_piece().await.ok().unwrap();
            if piece.is_empty() {
                return (all, pieces);
            }
            all.extend(piece);
            pieces += 1;
        }
    }

    #[rstest]
    #[case(&["a\nbc\n"], &[(0, "a"), (1, "bc")])]
    #[case(&["a\nbc"], &[(0, "a"), (1, "bc")])]
    #[case(&["a", "", "b", "\n", "\nc", "d\ne"], &[(0, "ab"), (2, "cd"), (3, "e")])]
    #[case(&["\n\n \r\nx\r\n\n"], &[(3, "x\r")])]
    #[case(&[], &[])]
    #[case(&["\n"], &[])]
    #[tokio::test]
    async fn lines_are_cut_at_newlines(#[case] parts: &[&str], #[case] expected: &[(usize, &str)]) {
        let (lines, _) = lines(parts.iter().map(|part| part.as_bytes().to_vec()).collect()).await;
        let line = |(index, text): &(usize, &str)| {
            let bytes = text.as_bytes().to_vec();
            Line { index: *index, bytes, too_long: false }
        };
        assert_eq!(lines, expected.iter().map(line).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn long_bodies_come_in_pieces_and_long_lines_are_told() {
        let many: Vec<u8> = (0..10_000).flat_map(|i| format!("{i}\n").into_bytes()).collect();
        let (read, pieces) = lines(vec![many]).await;
        assert_eq!((read.len(), pieces), (10_000, 10_000_usize.div_ceil(PIECE_LINES_MAX)));
        assert!(read.iter().enumerate().all(|(i, line)| line.index == i));

        let mut parts = vec![b"a\n".to_vec()];
        parts.extend(std::iter::repeat_n(vec![b'x'; LINE_BYTES_MAX / 4], 9));
        parts.push(b"\nb\n".to_vec());
        let (read, _) = lines(parts).await;
        let shown: Vec<_> = read.iter().map(|line| (line.index, line.bytes.len(), line.too_long)).collect();
        assert_eq!(shown, [(0, 1, false), (1, LINE_BYTES_MAX, true), (2, 1, false)]);
    }

    /// A body of which these parts have arrived, and no more for now.
    fn stalled(parts: Vec<Bytes>, budget: &Arc<Budget>) -> Lines {
        let frames = stream::iter(parts.into_iter().map(|part| Ok::<_, Infallible>(Frame::data(part))));
        let body = Body::new(StreamBody::new(frames.chain(stream::pending())));
        Lines::new(body, Duration::from_secs(15), budget).ok().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn lines_that_have_arrived_do_not_wait_for_ever_for_the_next() {
        let mut lines = stalled(vec!["a\nb\nc".into()], &Budget::new(usize::MAX));
        let started = Instant::now();
        assert_eq!(lines.next_piece().await.ok().unwrap().len(), 2);
        let late = lines.next_piece().await.err().unwrap();
        assert_eq!((late.kind, started.elapsed()), (Kind::RequestTimeout, Duration::from_secs(30)));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_reserved_for_the_lines_that_have_arrived() {
        let budget = Budget::new(1_000);
        let mut first = stalled(vec!["a\n".into()], &budget);
        assert_eq!(first.next_piece().await.ok().unwrap().len(), 1);
        let mut other = stalled(vec![vec![b'x'; 900].into()], &budget);
        assert_eq!(other.next_piece().await.err().unwrap().kind, Kind::RequestTimeout);
        let mut third = stalled(vec![vec![b'x'; 900].into()], &budget);
        assert_eq!(third.next_piece().await.err().unwrap().kind, Kind::Overloaded);
    }
}
