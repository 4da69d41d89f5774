use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::process::{Process, answers, free_port, wait_until};

const BINARY: &str = "SALTERN_MOTO";

/// Moto, which answers as S3 does. Keeps everything in memory, and checks nobody's credentials.
pub struct Moto {
    process: Option<Process>,
    port: u16,
    tls: bool,
}

impl Moto {
    pub fn start() -> Self {
        Self::with(false)
    }

    /// Behind TLS, with a certificate that nobody signed.
    pub fn start_with_tls() -> Self {
        Self::with(true)
    }

    fn with(tls: bool) -> Self {
        let mut moto = Self { process: None, port: free_port(), tls };
        moto.spawn();
        moto
    }

    /// One for all tests of a binary, which take buckets of their own.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Moto> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    pub fn endpoint(&self) -> String {
        format!("{}://127.0.0.1:{}", if self.tls { "https" } else { "http" }, self.port)
    }

    pub fn kill(&mut self) {
        self.process = None;
    }

    /// On the same port, with nothing in it.
    pub fn restart(&mut self) {
        self.kill();
        self.spawn();
    }

    pub fn create_bucket(&self, name: &str) {
        self.put(name);
    }

    /// An object without bytes whose name ends in a slash, as AWS's console makes one for a folder.
    pub fn create_folder(&self, bucket: &str, folder: &str) {
        self.put(&format!("{bucket}/{folder}/"));
    }

    fn put(&self, path: &str) {
        let head = format!("PUT /{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "moto answers {answer:?}");
    }

    fn spawn(&mut self) {
        let binary = std::env::var_os(BINARY).map(PathBuf::from);
        let binary = binary.unwrap_or_else(|| panic!("{BINARY} is not set; run scripts/test, which fetches it"));
        let mut moto = Command::new(binary);
        moto.args(["-H", "127.0.0.1", "-p", &self.port.to_string()]);
        if self.tls {
            moto.arg("--ssl");
        }
        self.process = Some(Process::start(&moto));
        let port = self.port;
        wait_until("moto answers", || match self.tls {
            true => TcpStream::connect(("127.0.0.1", port)).is_ok(),
            false => answers(port, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200"),
        });
    }
}
