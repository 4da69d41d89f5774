//! The server under load: a process of its own, from this same binary.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

/// Killed when dropped: what it stored is thrown away anyway.
#[derive(Debug)]
pub(super) struct Server {
    process: Child,
    pub(super) addr: SocketAddr,
}

impl Server {
    /// The real thing, as anyone would start it: default configuration, data below `scratch`.
    pub(super) fn saltern(scratch: &Path) -> Result<Self> {
        Self::start(scratch, &["serve", "--listen", "127.0.0.1:0", "--data", "data"])
    }

    /// The peer: answers everything with this status and so many bytes.
    pub(super) fn trivial(scratch: &Path, status: u16, response_bytes: usize) -> Result<Self> {
        let (status, bytes) = (status.to_string(), response_bytes.to_string());
        Self::start(scratch, &["bench", "serve-trivial", "--status", &status, "--response-bytes", &bytes])
    }

    /// The peer of boosts: looks the rows up in the Redis on this port.
    pub(super) fn redis_boosts(scratch: &Path, redis_port: u16) -> Result<Self> {
        Self::start(scratch, &["bench", "serve-redis-boosts", "--redis-port", &redis_port.to_string()])
    }

    /// In the scratch folder and without our variables, so that no configuration of the user's is picked up.
    fn start(folder: &Path, args: &[&str]) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find this binary")?);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SALTERN_")) {
            command.env_remove(name);
        }
        command.env(crate::log::FILTER_ENV, "error");
        let command = command.args(args).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let process = command.spawn().context("cannot start the server under load")?;
        let mut server = Self { process, addr: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let Some(stdout) = server.process.stdout.take() else { bail!("no standard output") };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.split("http://").nth(1).and_then(|rest| rest.split_whitespace().next());
        server.addr = match address.map(str::parse) {
            Some(Ok(addr)) => addr,
            _ => bail!("the server under load did not start"),
        };
        Ok(server)
    }

    pub(super) fn memory(&self) -> Memory {
        Memory { process: self.process.id() }
    }
}

/// The memory of a server, for those who do not keep the server alive.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    process: u32,
}

impl Memory {
    /// Resident memory now and at its highest, in KiB.
    pub(super) fn resident_kib(self) -> Result<Resident> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process))?;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        let (Some(now), Some(highest)) = (field("VmRSS:"), field("VmHWM:")) else {
            bail!("no memory figures in /proc")
        };
        Ok(Resident { now, highest })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Resident {
    pub(super) now: u64,
    pub(super) highest: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
