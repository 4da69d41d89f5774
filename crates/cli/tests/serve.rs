//! `saltern serve` from start to end, and what it says when it cannot.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rstest::rstest;
use support::{Client, Server, append_body, plain_failure, plain_line, run, saltern};
use tempfile::TempDir;

async fn append(server: &Server, conversation: &str, message_id: &str) -> u64 {
    let mut client = Client::connect(server.addr).await.unwrap();
    let answer = client.append(conversation, &append_body(message_id, "hey")).await.unwrap();
    assert!(matches!(answer.status, 200 | 201), "{} {}", answer.status, answer.json);
    answer.seq().get()
}

/// Every file below a folder, with its content.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            let content = std::fs::read(&path).unwrap();
            files.push((path, content));
        }
    }
    files.sort();
    files
}

#[tokio::test]
async fn it_says_where_it_is_and_keeps_data_over_a_restart() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let line = format!("saltern is ready on http://{} (data in {})", server.addr, data.display());
    assert_eq!(server.ready_line, line);
    assert_ne!(server.addr.port(), 0);
    assert_eq!(append(&server, "tea", "m1").await, 1);
    server.terminate();

    let server = Server::start(&data);
    let page = Client::connect(server.addr).await.unwrap().older("tea", None).await.unwrap().unwrap();
    assert_eq!(page.messages.len(), 1);
    assert_eq!(page.messages[0].value.message_id.as_str(), "m1");
    assert_eq!(append(&server, "tea", "m2").await, 2);
    assert_eq!(append(&server, "tea", "m1").await, 1);
    server.signal("INT");
    assert_eq!(server.wait().0.code(), Some(0));
}

/// Of several, the engine lets one spin while the others compact.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn one_thread_compacts() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let threads = std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    assert_eq!(names.filter(|name| name.trim_end() == "fjall:worker").count(), 1);
    server.terminate();
}

/// Waits until a server says that it is not ready, and why.
async fn until_unready(client: &mut Client, why: &str) {
    let says_so = async {
        loop {
            let answer = client.get("/readyz").await.unwrap();
            if answer.status == 503 && answer.json["detail"].as_str().unwrap().contains(why) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), says_so).await.unwrap();
}

/// Its files can still be written through what is open, but nobody will ever find them.
#[tokio::test]
async fn a_server_whose_folder_is_gone_is_not_ready() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    let mut client = Client::connect(server.addr).await.unwrap();
    assert_eq!(client.get("/readyz").await.unwrap().status, 200);
    std::fs::rename(&data, folder.path().join("moved")).unwrap();
    until_unready(&mut client, "gone").await;
    Server::start(&data).terminate();
    until_unready(&mut client, "another one").await;
}

#[test]
fn a_taken_port_is_one_plain_line() {
    let folder = TempDir::new().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = plain_failure(&run(folder.path(), &["serve", "--listen", &address, "--data", "data"]));
    assert!(error.contains(&address) && error.contains("in use"), "{error}");
}

#[tokio::test]
async fn a_folder_has_one_server_at_a_time() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let first = Server::start(&data);
    let second = run(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--data", "data"]);
    let error = plain_failure(&second);
    assert!(error.contains(&first.url()) && error.contains(&first.pid().to_string()), "{error}");
    assert_eq!(append(&first, "tea", "m1").await, 1);
    // A server that was killed leaves no lock behind.
    first.kill();
    assert_eq!(append(&Server::start(&data), "tea", "m2").await, 2);
}

#[test]
fn a_folder_that_cannot_be_written_is_one_plain_line() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("file"), "mine").unwrap();
    for data in ["file/data", "file", "/proc/saltern"] {
        let error = plain_failure(&run(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--data", data]));
        assert!(error.contains(data), "{error}");
    }
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"mine");
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("photos")).unwrap();
    std::fs::write(folder.path().join("photos/cat.jpg"), "meow").unwrap();
    std::fs::write(folder.path().join("LOCK"), "of something else").unwrap();
    let before = contents(folder.path());
    let error = plain_failure(&run(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--data", "."]));
    assert!(error.contains("not Saltern's"), "{error}");
    assert_eq!(contents(folder.path()), before);
}

/// Every file of the engine in turn goes missing or is overwritten. Either the start fails with a plain line, or the
/// message is there, or reading it is an error: never an empty page. Once the file is back, so is the message.
#[rstest]
#[case::missing(None)]
#[case::overwritten(Some(0xa5))]
#[tokio::test]
async fn a_damaged_folder_is_told_and_nothing_is_destroyed(#[case] garbage: Option<u8>) {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("data");
    let server = Server::start(&data);
    append(&server, "tea", "m1").await;
    server.terminate();
    let engine = data.join("engine");
    let whole = contents(&engine);
    let mut refused = 0;
    for (victim, content) in whole.iter().filter(|(_, content)| !content.is_empty()) {
        match garbage {
            None => std::fs::remove_file(victim).unwrap(),
            Some(byte) => std::fs::write(victim, vec![byte; content.len()]).unwrap(),
        }
        let mut command = saltern();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data);
        match Server::spawn(command) {
            Err(output) => {
                let error = plain_failure(&output);
                assert!(error.contains(&data.display().to_string()), "{}: {error}", victim.display());
                refused += 1;
                std::fs::write(victim, content).unwrap();
            }
            Ok(server) => {
                let mut client = Client::connect(server.addr).await.unwrap();
                let answer = client.get("/v1/conversations/tea/messages").await.unwrap();
                let there = answer.json["messages"][0]["message_id"] == "m1";
                assert!(there || answer.status >= 500, "{}: {}", victim.display(), answer.json);
                drop(server);
                return_to(&engine, &whole);
            }
        }
        let server = Server::start(&data);
        assert_eq!(append(&server, "tea", "m1").await, 1, "{}", victim.display());
        server.kill();
        return_to(&engine, &whole);
    }
    assert!(refused > 0);
}

/// Puts the files back as they were.
fn return_to(engine: &Path, files: &[(PathBuf, Vec<u8>)]) {
    std::fs::remove_dir_all(engine).unwrap();
    for (path, content) in files {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

#[test]
fn other_machines_need_api_keys() {
    let folder = TempDir::new().unwrap();
    let error = plain_failure(&run(folder.path(), &["serve", "--listen", "0.0.0.0:0", "--data", "data"]));
    assert!(error.contains("api_keys"), "{error}");
    assert!(!folder.path().join("data").exists());
}

/// The line of a failed command, with the server's address and process as the documents write them.
fn line(server: &Server, folder: &Path, args: &[&str]) -> String {
    let line = plain_failure(&run(folder, args));
    line.replace(&server.addr.to_string(), "127.0.0.1:8080").replace(&server.pid().to_string(), "10127")
}

/// The errors that a person meets in the first hour: what was expected, what came, what to do.
#[test]
fn commands_say_what_to_do() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let (folder, address, url) = (folder.path(), server.addr.to_string(), server.url());
    let fails = |args: &[&str]| line(&server, folder, args);
    assert_eq!(
        fails(&["serve", "--listen", &address, "--data", "other"]),
        "error: cannot listen on 127.0.0.1:8080; stop the process that uses the port, or choose another with --listen: \
         Address already in use (os error 98)"
    );
    assert_eq!(
        fails(&["serve", "--listen", "127.0.0.1:0", "--data", "data"]),
        "error: folder data is in use by process 10127 serving http://127.0.0.1:8080; stop it, or choose another folder"
    );
    assert_eq!(
        fails(&["inspect", "tea", "--data", "data"]),
        "error: folder data is in use by the server at http://127.0.0.1:8080; repeat the command with --url \
         http://127.0.0.1:8080"
    );
    assert_eq!(
        fails(&["serve", "--listen", "0.0.0.0:0", "--data", "other"]),
        "error: --listen: 0.0.0.0:0 is reachable from other machines, which requires API keys; add [[api_keys]] to the \
         configuration, or listen on 127.0.0.1"
    );
    assert_eq!(
        fails(&["inspect", "tea", "--url", &url]),
        "error: no conversation \"tea\": nothing has been appended to it; check the id (upper and lower case differ)"
    );
    assert_eq!(
        fails(&["inspect", "tea", "--url", "localhost"]),
        "error: --url must look like http://127.0.0.1:8080, not localhost"
    );
    assert_eq!(
        fails(&["verify", "--data", "typo"]),
        "error: no data folder typo; name the data folder with --data, or a server with --url"
    );
    server.terminate();
}

/// A small file system in memory; unmounted when dropped.
struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` where mounting is not permitted.
    fn mount(size: &str) -> Option<Self> {
        let disk = Self(TempDir::new().unwrap());
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "saltern-test"]).arg(disk.0.path());
        mount.output().unwrap().status.success().then_some(disk)
    }

    fn resize(&self, size: &str) {
        let options = format!("remount,size={size}");
        let mount = Command::new("mount").args(["-o", &options]).arg(self.0.path()).status();
        assert!(mount.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[tokio::test]
async fn a_full_disk_ends_it_and_space_brings_everything_back() {
    let Some(disk) = SmallDisk::mount("100m") else {
        eprintln!("not run: mounting is not permitted here");
        return;
    };
    let data = disk.0.path().join("data");
    let server = Server::start(&data);
    let mut acknowledged = Vec::new();
    let content = "x".repeat(60_000);
    let mut client = Client::connect(server.addr).await.unwrap();
    for i in 0..10_000 {
        let Ok(answer) = client.append("tea", &append_body(&format!("m{i}"), &content)).await else { break };
        match answer.status {
            201 => acknowledged.push((format!("m{i}"), answer.seq())),
            status => assert_eq!(status, 503, "{}", answer.json),
        }
    }
    let (status, stderr) = server.wait();
    assert_eq!(status.code(), Some(1), "{stderr}");
    let error = plain_line(&stderr);
    assert!(error.contains("full") && error.contains("start again"), "{error}");
    assert!(!acknowledged.is_empty());

    disk.resize("400m");
    let server = Server::start(&data);
    let mut client = Client::connect(server.addr).await.unwrap();
    for (message_id, seq) in &acknowledged {
        let path = format!("/v1/conversations/tea/messages/{seq}");
        let answer = client.get(&path).await.unwrap();
        assert_eq!((answer.status, answer.json["message_id"].as_str()), (200, Some(message_id.as_str())));
        assert_eq!(answer.json["content"].as_str(), Some(content.as_str()));
    }
    append(&server, "tea", "after").await;
    server.terminate();
}
