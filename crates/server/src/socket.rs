//! A connection's bytes, between hyper and TCP. Three things happen here because hyper has no setting for them:
//!
//! - A client that does not take its answer is given up after the write timeout.
//! - hyper's own refusals, which are a head alone, become problems with a request id.
//! - A client that is still sending when it has been answered gets time to read the answer: closing at once would reset the
//!   connection, and the answer could be lost with it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::activity::{Activity, State};
use crate::interface::Interface;

/// What a client must take of its answer within each write timeout, so that it cannot keep an answer in memory by taking
/// a byte now and then.
const TAKEN_BYTES_MIN: usize = 64 * 1024;
/// Bytes that are read and dropped at once.
const DISCARDED_BYTES: usize = 16 * 1024;
/// In the head of each refusal by hyper.
const NO_BODY: &str = "\r\ncontent-length: 0";

pub(crate) struct Socket {
    stream: TcpStream,
    activity: Arc<Activity>,
    interface: Arc<Interface>,
    write_timeout: Duration,
    linger_timeout: Duration,
    stall: Option<Stall>,
    /// What is still to be written of a refusal.
    refusal: Bytes,
    /// Set once everything is written and the client has been told so.
    lingering: Option<Pin<Box<Sleep>>>,
}

/// A client that did not take all that there was to write.
struct Stall {
    ends: Pin<Box<Sleep>>,
    taken: usize,
}

impl Socket {
    pub(crate) fn new(
        stream: TcpStream,
        activity: Arc<Activity>,
        interface: Arc<Interface>,
        write_timeout: Duration,
        linger_timeout: Duration,
    ) -> Self {
        let (stall, refusal, lingering) = (None, Bytes::new(), None);
        Self { stream, activity, interface, write_timeout, linger_timeout, stall, refusal, lingering }
    }

    fn write(&mut self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if self.activity.state() == State::Waiting {
            self.activity.enter(State::Answering);
        }
        if let Some((head, status)) = parts.first().and_then(|head| refused_by_hyper(head)) {
            self.activity.linger();
            self.refusal = completed(head, self.interface.refusal(status));
            return Poll::Ready(Ok(parts.iter().map(|part| part.len()).sum()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.watch(context, written)
    }

    /// Ends the connection if the client takes too little for too long.
    fn watch(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Pending => {
                let stall = self.stall.get_or_insert_with(|| {
                    if self.activity.state() == State::Answering {
                        self.activity.enter(State::Stalled);
                    }
                    Stall { ends: Box::pin(sleep(self.write_timeout)), taken: 0 }
                });
                ready!(stall.ends.as_mut().poll(context));
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not take its answer")))
            }
            Poll::Ready(Ok(bytes)) => {
                if let Some(stall) = &mut self.stall {
                    stall.taken += bytes;
                    if stall.taken >= TAKEN_BYTES_MIN {
                        self.stall = None;
                        if self.activity.state() == State::Stalled {
                            self.activity.enter(State::Answering);
                        }
                    }
                }
                Poll::Ready(Ok(bytes))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
        }
    }

    fn write_refusal(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.refusal.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(context, &self.refusal);
            let bytes = ready!(self.watch(context, written))?;
            if bytes == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.refusal.advance(bytes);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads and drops what the client still sends, until it closes its side or its time is up.
    fn discard(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut bytes = [0; DISCARDED_BYTES];
        loop {
            let mut dropped = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.stream).poll_read(context, &mut dropped) {
                Poll::Ready(Ok(())) if !dropped.filled().is_empty() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    let timeout = self.linger_timeout;
                    return self.lingering.get_or_insert_with(|| Box::pin(sleep(timeout))).as_mut().poll(context);
                }
            }
        }
    }
}

/// The head of a refusal that hyper writes by itself, and its status. Of ours, each has a body; and no line of JSON or
/// metrics looks like a head, since neither holds a carriage return.
fn refused_by_hyper(head: &[u8]) -> Option<(&str, StatusCode)> {
    if !head.starts_with(b"HTTP/1.") || !head.ends_with(b"\r\n\r\n") {
        return None;
    }
    let status = StatusCode::from_bytes(head.get("HTTP/1.1 ".len()..)?.get(..3)?).ok()?;
    let head = str::from_utf8(head).ok().filter(|_| status.is_client_error())?;
    head.contains(NO_BODY).then_some((head, status))
}

/// hyper's head with these fields and this body.
fn completed(head: &str, (fields, body): (HeaderMap, Bytes)) -> Bytes {
    let mut bytes = head.replace(NO_BODY, "").trim_end().as_bytes().to_vec();
    for (name, value) in &fields {
        bytes.extend([b"\r\n", name.as_str().as_bytes(), b": ", value.as_bytes()].concat());
    }
    bytes.extend(format!("\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend(&body);
    bytes.into()
}

impl AsyncRead for Socket {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().write(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().write(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes once it has written all that it has.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.write_refusal(context))?;
        this.stall = None;
        if matches!(this.activity.state(), State::Answering | State::Stalled) {
            this.activity.enter(State::Waiting);
        }
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.write_refusal(context))?;
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        if this.activity.lingers() {
            ready!(this.discard(context));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\ndate: x\r\n\r\n", Some(400))]
    #[case("HTTP/1.0 431 Large\r\ncontent-length: 0\r\n\r\n", Some(431))]
    #[case("HTTP/1.1 400 Bad Request\r\ncontent-length: 7\r\n\r\n", None)]
    #[case("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", None)]
    #[case("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\nmore", None)]
    #[case("HTTP/1.1", None)]
    #[case("", None)]
    fn refusals_of_hyper_are_recognised(#[case] head: &str, #[case] status: Option<u16>) {
        assert_eq!(refused_by_hyper(head.as_bytes()).map(|(_, status)| status.as_u16()), status);
    }
}
