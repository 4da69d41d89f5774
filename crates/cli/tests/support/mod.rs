//! The real binary as a child process, and a small HTTP client. Each test file uses its own part of it.
#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod client;
pub mod watched;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use client::{Client, append_body};

/// Longer than anything here takes on a busy machine; only a hang meets it.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The binary, without any variable of ours that the test run may have.
pub fn saltern() -> Command {
    without_variables(Command::new(env!("CARGO_BIN_EXE_saltern")))
}

pub fn without_variables(mut command: Command) -> Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SALTERN_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// A command that is expected to end by itself.
pub fn run(folder: &Path, args: &[&str]) -> Output {
    saltern().args(args).current_dir(folder).output().unwrap()
}

/// Asserts that a command failed as promised: status 1, nothing on standard output, and on standard error one plain line
/// (beside logs), which is returned.
pub fn plain_failure(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    plain_line(&stderr)
}

pub fn plain_line(stderr: &str) -> String {
    let errors: Vec<_> = stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{stderr}");
    assert!(stderr.trim_end().ends_with(errors[0]), "the error is not last:\n{stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("RUST_BACKTRACE"), "{stderr}");
    errors[0].to_owned()
}

/// A running server; killed when dropped.
pub struct Server {
    process: Child,
    stdout: BufReader<ChildStdout>,
    /// Read all the time, so that a full pipe never holds the server up. `None` once waited for.
    stderr: Option<JoinHandle<String>>,
    pub ready_line: String,
    pub addr: SocketAddr,
}

impl Server {
    /// On a free port of loopback.
    pub fn start(data: &Path) -> Self {
        Self::start_with(data, &[])
    }

    pub fn start_with(data: &Path, args: &[&str]) -> Self {
        let mut command = saltern();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(args);
        Self::spawn(command).unwrap_or_else(|output| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Where another one was before.
    pub fn start_at(addr: SocketAddr, data: &Path) -> Self {
        let mut command = saltern();
        command.args(["serve", "--listen", &addr.to_string(), "--data"]).arg(data);
        Self::spawn(command).unwrap_or_else(|output| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    }

    /// A server that is ready, or what a command left that ended instead.
    pub fn spawn(mut command: Command) -> Result<Self, Output> {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut pipe = process.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = pipe.read_to_string(&mut text);
            text
        });
        let mut ready_line = String::new();
        stdout.read_line(&mut ready_line).unwrap();
        match ready_line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next()?.parse().ok()) {
            Some(addr) => {
                Ok(Self { process, stdout, stderr: Some(stderr), ready_line: ready_line.trim_end().into(), addr })
            }
            None => Err(Output {
                status: process.wait().unwrap(),
                stdout: ready_line.into(),
                stderr: stderr.join().unwrap().into(),
            }),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    pub fn signal(&self, signal: &str) {
        let kill = Command::new("kill").args([format!("-{signal}"), self.pid().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    /// As a power cut would, short of losing the page cache.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Ends it as an operator would, and asserts that it ended well.
    pub fn terminate(self) {
        self.signal("TERM");
        let (status, stderr) = self.wait();
        assert_eq!(status.code(), Some(0), "{stderr}");
    }

    /// Waits for its end; what it wrote on standard error comes with it.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "", "more than one line on standard output");
        (status, self.stderr.take().unwrap().join().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
