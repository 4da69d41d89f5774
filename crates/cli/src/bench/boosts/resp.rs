//! As much of Redis's protocol as a lookup needs: one command at a time over one connection.

use std::io::ErrorKind;

use anyhow::{Context as _, Result, bail};
use tokio::net::TcpStream;

const READ_BYTES: usize = 16 * 1_024;

pub(super) struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

/// What a command is answered with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A status or a number.
    Line(String),
    /// Texts, or that there is none.
    Texts(Vec<Option<String>>),
}

impl Connection {
    pub(super) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await.context("cannot reach redis-server")?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::new() })
    }

    pub(super) async fn ask(&mut self, words: &[&str]) -> Result<Reply> {
        let mut command = format!("*{}\r\n", words.len());
        for word in words {
            command.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.write(command.as_bytes()).await?;
        loop {
            if let Some((reply, used)) = parse(&self.received)? {
                self.received.drain(..used);
                return Ok(reply);
            }
            self.read().await?;
        }
    }

    async fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.stream.writable().await?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<()> {
        let mut buffer = [0; READ_BYTES];
        loop {
            match self.stream.try_read(&mut buffer) {
                Ok(0) => bail!("redis-server has gone"),
                Ok(read) => {
                    self.received.extend_from_slice(&buffer[..read]);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.stream.readable().await?,
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// A reply and its length, once all of it is there.
fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>> {
    let Some((head, mut at)) = line(bytes, 0)? else { return Ok(None) };
    let count = match head.split_at_checked(1) {
        Some(("+" | ":", text)) => return Ok(Some((Reply::Line(text.to_owned()), at))),
        Some(("*", count)) => count.parse::<usize>()?,
        _ => bail!("redis-server answers {head}"),
    };
    let mut texts = Vec::with_capacity(count);
    for _ in 0..count {
        let Some((head, behind)) = line(bytes, at)? else { return Ok(None) };
        let length: i64 = head.strip_prefix('$').context("redis-server answers without a text")?.parse()?;
        at = behind;
        let Ok(length) = usize::try_from(length) else {
            texts.push(None);
            continue;
        };
        let Some(text) = bytes.get(at..at + length).filter(|_| bytes.len() >= at + length + 2) else { return Ok(None) };
        texts.push(Some(std::str::from_utf8(text)?.to_owned()));
        at += length + 2;
    }
    Ok(Some((Reply::Texts(texts), at)))
}

/// The line that begins here, and where the next one does.
fn line(bytes: &[u8], at: usize) -> Result<Option<(&str, usize)>> {
    let Some(rest) = bytes.get(at..) else { return Ok(None) };
    let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
    Ok(Some((std::str::from_utf8(&rest[..end])?, at + end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_when_they_are_complete() {
        let texts = b"*3\r\n$2\r\nab\r\n$-1\r\n$0\r\n\r\n";
        for end in 0..texts.len() {
            assert_eq!(parse(&texts[..end]).unwrap(), None, "{end}");
        }
        let reply = Reply::Texts(vec![Some("ab".into()), None, Some(String::new())]);
        assert_eq!(parse(texts).unwrap(), Some((reply, texts.len())));
        assert_eq!(parse(b"+PONG\r\n:1").unwrap(), Some((Reply::Line("PONG".into()), 7)));
        assert!(parse(b"-ERR no\r\n").is_err());
    }
}
