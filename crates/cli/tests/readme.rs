//! What the documents say: the README's session runs as it is written, and links lead somewhere.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Server, without_variables};
use tempfile::TempDir;

/// Where the README's server listens: the default.
const DOCUMENTED_URL: &str = "http://127.0.0.1:8080";

/// A command of a session and what it prints.
struct Step {
    command: String,
    output: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(document: &Path) -> String {
    std::fs::read_to_string(document).unwrap_or_else(|error| panic!("{}: {error}", document.display()))
}

/// Every `console` block of a document, from the end of its first line on.
fn sessions(document: &str) -> impl Iterator<Item = &str> {
    document.split("```console").skip(1).map(|rest| rest.split("\n```").next().unwrap())
}

/// A command begins with `$ ` and goes on while lines end with a backslash; what follows is its output.
fn steps(session: &str) -> Vec<Step> {
    let step = |text: &str| {
        let lines: Vec<_> = text.lines().collect();
        let (command, output) = lines.split_at(lines.iter().position(|line| !line.ends_with('\\')).unwrap() + 1);
        Step { command: command.join("\n"), output: output.join("\n").trim_end().to_owned() }
    };
    session.split("\n$ ").skip(1).map(step).collect()
}

/// The command's standard output, as if the server were where the document has it.
fn run(command: &str, server: &Server, folder: &Path) -> String {
    let mut shell = Command::new("sh");
    // Whatever proxy the machine is set up with, loopback is not behind it.
    shell.arg("-c").arg(command.replace(DOCUMENTED_URL, &server.url())).env("no_proxy", "127.0.0.1");
    let output = without_variables(shell).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "$ {command}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().replace(&server.url(), DOCUMENTED_URL)
}

#[test]
fn the_session_runs_as_it_is_written() {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let readme = read(&root().join("README.md"));
    let steps: Vec<_> = sessions(&readme).flat_map(steps).collect();
    assert!(steps.iter().any(|step| !step.output.is_empty()), "nothing to compare");
    for step in steps {
        assert_eq!(run(&step.command, &server, folder.path()).trim_end(), step.output, "$ {}", step.command);
    }
    server.terminate();
}

/// Every Markdown file below a folder.
fn markdown(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(markdown(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// A document without its fenced blocks.
fn prose(document: &str) -> String {
    document.split("```").step_by(2).collect()
}

/// Label and target of every `[label](target)`.
fn links(prose: &str) -> impl Iterator<Item = (&str, &str)> {
    prose.match_indices("](").filter_map(|(at, bracket)| {
        let label = prose[..at].rsplit('[').next()?;
        let target = prose[at + bracket.len()..].split(')').next()?;
        Some((label, target))
    })
}

/// What a label such as `` `some_test` `` names.
fn name(label: &str) -> Option<&str> {
    let name = label.strip_prefix('`')?.strip_suffix('`')?;
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
}

/// What is wrong with a link: its file is not there, or does not hold the name that the label promises.
fn fault(document: &Path, label: &str, target: &str) -> Option<String> {
    let file = target.split('#').next().unwrap();
    if target.contains("://") || file.is_empty() {
        return None;
    }
    let path = document.parent().unwrap().join(file);
    if !path.exists() {
        return Some(format!("{}: there is no {target}", document.display()));
    }
    let name = name(label).filter(|name| file.ends_with(".rs") && !read(&path).contains(name))?;
    Some(format!("{}: there is no {name} in {target}", document.display()))
}

#[test]
fn links_lead_to_files_that_hold_what_they_name() {
    let mut documents = markdown(&root().join("docs"));
    documents.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let (mut count, mut faults) = (0, Vec::new());
    for document in documents {
        for (label, target) in links(&prose(&read(&document))) {
            count += 1;
            faults.extend(fault(&document, label, target));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(count > 0, "no links found");
}
