use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Process, answers, free_port, wait_until};

/// A redis-server that keeps nothing on the disk unless it is told to.
pub struct Redis {
    process: Option<Process>,
    folder: TempDir,
    port: u16,
    flags: Vec<String>,
}

impl Redis {
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// With these flags, at every start.
    pub fn with(flags: &[&str]) -> Self {
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let mut redis = Self { process: None, folder: TempDir::new().unwrap(), port: free_port(), flags };
        redis.spawn();
        redis
    }

    /// A port on which nobody listens yet.
    pub fn reserved() -> Self {
        Self { process: None, folder: TempDir::new().unwrap(), port: free_port(), flags: Vec::new() }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn kill(&mut self) {
        self.process = None;
    }

    /// On the same port, with what its flags made it keep.
    pub fn restart(&mut self) {
        self.kill();
        self.spawn();
    }

    /// With nothing in its folder.
    pub fn start_empty(&mut self) {
        self.kill();
        self.folder = TempDir::new().unwrap();
        self.spawn();
    }

    fn spawn(&mut self) {
        let mut redis = Command::new("redis-server");
        redis.args(["--bind", "127.0.0.1", "--port", &self.port.to_string(), "--save", "", "--appendonly", "no"]);
        redis.arg("--dir").arg(self.folder.path()).args(&self.flags);
        self.process = Some(Process::start(&redis));
        let port = self.port;
        wait_until("redis-server answers", || answers(port, b"PING\r\n", b"+PONG"));
    }

    /// Stops (`STOP`) or resumes (`CONT`) the process.
    pub fn signal(&self, signal: &str) {
        self.process.as_ref().expect("it runs").signal(signal);
    }

    /// Runs one command; answers with the reply's text, without its type.
    pub fn ask(&self, words: &[&str]) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let words: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        stream.write_all(format!("*{}\r\n{words}", words.matches('$').count()).as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let (kind, text) = line.trim_end().split_at(1);
        match kind {
            "+" | ":" => text.to_owned(),
            "$" => {
                let mut bulk = vec![0; text.parse().unwrap()];
                reader.read_exact(&mut bulk).unwrap();
                String::from_utf8(bulk).unwrap()
            }
            _ => panic!("redis answers {line:?}"),
        }
    }

    /// Follows another, and has caught up with it.
    pub fn follow(&self, primary: &Self) {
        self.ask(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]);
        wait_until("the replica follows", || self.ask(&["INFO", "replication"]).contains("master_link_status:up"));
    }

    /// Follows nobody any more. What it has not got by now, it will never have.
    pub fn promote(&self) {
        self.ask(&["REPLICAOF", "NO", "ONE"]);
    }
}
