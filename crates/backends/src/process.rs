//! Child processes that never outlive the tests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine; only a hang meets it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the server, by its id, when the other end of its standard input is gone: however the tests end, by a panic or
/// a kill too, no server stays behind.
const ENDS_WITH_US: &str = r#"
    "$@" </dev/null >/dev/null &
    server=$!
    trap 'kill -9 $server 2>/dev/null' EXIT
    echo $server
    read -r _
"#;

/// A server, and the shell that watches over it.
pub(crate) struct Process {
    shell: Child,
    lifeline: Option<ChildStdin>,
    id: u32,
}

impl Process {
    pub(crate) fn start(program: &Command) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", ENDS_WITH_US, "sh"]).arg(program.get_program()).args(program.get_args());
        if let Some(folder) = program.get_current_dir() {
            command.current_dir(folder);
        }
        let mut shell =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a shell");
        let lifeline = shell.stdin.take();
        let mut id = String::new();
        BufReader::new(shell.stdout.take().expect("its standard output is ours")).read_line(&mut id).expect("a line");
        let id = id.trim_end().parse().expect("the id of a process");
        Self { shell, lifeline, id }
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args(["-s", signal, &self.id.to_string()]).status().expect("kill").success());
    }

    pub(crate) fn kill(&mut self) {
        if self.lifeline.take().is_some() {
            let _ = Command::new("kill").args(["-9", &self.id.to_string()]).stderr(Stdio::null()).status();
            let _ = self.shell.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port that was free just now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(10));
    }
}

/// Whether someone on this port answers the question with something that begins like this.
pub(crate) fn answers(port: u16, question: &[u8], beginning: &[u8]) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut head = vec![0; beginning.len()];
    stream.write_all(question).and_then(|()| stream.read_exact(&mut head)).is_ok() && head == beginning
}
