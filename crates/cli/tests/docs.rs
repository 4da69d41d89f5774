//! What the documents say: sessions run as they are written, defaults are the binary's, and links lead somewhere.

#![allow(clippy::unwrap_used, reason = "a failed test is a panic")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;
use support::{Server, without_variables};
use tempfile::TempDir;

/// Where the documents' server listens: the default.
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

/// Each document's session against a server of its own, from its first command to its last.
#[rstest]
#[case("README.md")]
#[case("docs/guide.md")]
fn the_session_runs_as_it_is_written(#[case] document: &str) {
    let folder = TempDir::new().unwrap();
    let server = Server::start(&folder.path().join("data"));
    let text = read(&root().join(document));
    let steps: Vec<_> = sessions(&text).flat_map(steps).collect();
    assert!(steps.iter().any(|step| !step.output.is_empty()), "nothing to compare");
    for step in steps {
        assert_eq!(run(&step.command, &server, folder.path()).trim_end(), step.output, "$ {}", step.command);
    }
    server.terminate();
}

#[test]
fn the_readme_is_short() {
    let lines = read(&root().join("README.md")).lines().count();
    assert!(lines <= 150, "{lines} lines; 150 are enough, the rest belongs in docs/");
}

/// The guide's configuration block holds every setting with its default, and no other.
#[test]
fn the_guide_shows_the_defaults_of_the_configuration() {
    let guide = read(&root().join("docs/guide.md"));
    let blocks = guide.split("```toml").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    let shown: toml::Table = blocks.clone().next().expect("a block of TOML").parse().unwrap();
    let folder = TempDir::new().unwrap();
    let printed = support::run(folder.path(), &["config", "check"]);
    let defaults: toml::Table = String::from_utf8(printed.stdout).unwrap().parse().unwrap();
    assert_eq!(shown, defaults);
}

/// Every Markdown file of the repository, and what else holds links.
fn documents() -> Vec<PathBuf> {
    let mut found = files(&root().join("docs"), "md");
    found.extend(files_here(&root(), "md"));
    found.push(root().join("llms.txt"));
    found
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let below = folders.flat_map(|folder| files(&folder, extension));
    files_here(folder, extension).into_iter().chain(below).collect()
}

fn files_here(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}

/// A document without its fenced blocks.
fn prose(document: &str) -> String {
    let mut inside = false;
    let line = |line: &&str| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    };
    document.lines().filter(line).collect::<Vec<_>>().join("\n")
}

/// Label and target of every `[label](target)`.
fn links(prose: &str) -> impl Iterator<Item = (&str, &str)> {
    prose.match_indices("](").filter_map(|(at, bracket)| {
        let label = prose[..at].rsplit('[').next()?;
        let target = prose[at + bracket.len()..].split(')').next()?;
        Some((label, target))
    })
}

/// The anchors that a renderer makes of headings: lower case, spaces as hyphens, punctuation left out.
fn anchors(document: &str) -> Vec<String> {
    let prose = prose(document);
    let headings =
        prose.lines().filter_map(|line| line.strip_prefix('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings.map(|heading| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

/// What a label such as `` `some_test` `` names.
fn name(label: &str) -> Option<&str> {
    let name = label.strip_prefix('`')?.strip_suffix('`')?;
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
}

/// What is wrong with a link: its file is not there, or lacks the heading or the name that the link promises.
fn fault(document: &Path, label: &str, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let path = if file.is_empty() { document.to_owned() } else { document.parent().unwrap().join(file) };
    let shown = document.strip_prefix(root()).unwrap_or(document).display();
    if !path.exists() {
        return Some(format!("{shown}: there is no {file}"));
    }
    if let Some(anchor) = anchor
        && !anchors(&read(&path)).iter().any(|found| found == anchor)
    {
        return Some(format!("{shown}: there is no heading #{anchor} in {}", path.display()));
    }
    let name = name(label).filter(|_| file.ends_with(".rs"))?;
    let text = read(&path);
    let function = format!("fn {name}(");
    // A module of that name is as good: the label of a link to a whole file.
    let is_there = text.contains(&function) || !name.contains('_') && text.contains(name);
    (!is_there).then(|| format!("{shown}: there is no {function} in {file}"))
}

#[test]
fn links_lead_to_what_they_name() {
    let (mut count, mut faults) = (0, Vec::new());
    for document in documents() {
        for (label, target) in links(&prose(&read(&document))) {
            count += 1;
            faults.extend(fault(&document, label, target));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(count > 0, "no links found");
}

/// The check of links is worth nothing if it finds nothing.
#[rstest]
#[case::file("a", "docs/nowhere.md", true)]
#[case::heading("a", "docs/glossary.md#nothing-of-the-kind", true)]
#[case::own_heading("a", "#nothing-of-the-kind", true)]
#[case::function("`no_such_test`", "crates/cli/tests/docs.rs", true)]
#[case::whole("a", "docs/glossary.md#stable_through", false)]
#[case::whole_function("`the_readme_is_short`", "crates/cli/tests/docs.rs", false)]
fn a_broken_link_is_found(#[case] label: &str, #[case] target: &str, #[case] broken: bool) {
    assert_eq!(fault(&root().join("README.md"), label, target).is_some(), broken);
}
