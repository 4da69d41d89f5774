//! Random damage of a folder that a killed process left, or one that was stopped: it opens with everything that was
//! acknowledged, or says what is damaged. SALTERN_DAMAGE_CASES sets how many are tried.

use std::collections::BTreeMap;
use std::path::PathBuf;

use saltern_core::rng::SplitMix64;

use super::damage::{drop_unused, outcome};
use super::durability::copy;
use super::folder::snapshot;
use super::*;

const CASES_ENV: &str = "SALTERN_DAMAGE_CASES";
const CASES: u64 = 180;
const SEED: u64 = 22;
/// In tables, in a segment that an earlier process left, and in the newest one.
const ROWS: u64 = 90;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// Killed; the manifest knows how far the log had been synced.
    KilledIdle,
    /// Killed; it does not.
    KilledBusy,
    Stopped,
}

/// Folders with the same rows, by what became of their process.
async fn folders(root: &Path) -> Vec<(State, PathBuf)> {
    let path = |name: &str| root.join(name);
    let live = path("live");
    for part in 0..3 {
        let store = open(&live);
        append_all(&store, part * ROWS / 3 + 1..=(part + 1) * ROWS / 3).await;
        match part {
            0 => store.close().await.unwrap(),
            1 => {}
            _ => {
                recorded(&live, ROWS + 1).await;
                copy(&live, &path("idle"));
                copy(&live, &path("busy"));
                store.close().await.unwrap();
                drop(store);
                copy(&live, &path("stopped"));
            }
        }
    }
    let marker = std::fs::read_to_string(path("busy/SALTERN")).unwrap();
    let id = marker.lines().find_map(|line| line.strip_prefix("folder ")).unwrap();
    log::unrecord(&path("busy/log"), folder_id::FolderId::parse(id).unwrap());
    [(State::KilledIdle, "idle"), (State::KilledBusy, "busy"), (State::Stopped, "stopped")]
        .map(|(state, name)| {
            drop_unused(&path(name).join("engine/0.jnl"));
            (state, path(name))
        })
        .into()
}

/// Does something to a file, and answers what.
fn damage(file: &Path, other: &Path, rng: &mut SplitMix64) -> &'static str {
    let mut bytes = std::fs::read(file).unwrap();
    // Segments are mostly zeroes that were never used; most damage goes to what was.
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let reach = if rng.below(8) == 0 { bytes.len() } else { used }.max(1) as u64;
    let at = usize::try_from(rng.below(reach)).unwrap().min(bytes.len());
    let kind = match rng.below(6) {
        0 => {
            bytes.truncate(at);
            "cut"
        }
        1 => {
            for _ in 0..=rng.below(3) {
                let at = usize::try_from(rng.below(reach)).unwrap();
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << rng.below(8));
            }
            "bits flipped"
        }
        2 => {
            std::fs::remove_file(file).unwrap();
            return "removed";
        }
        3 => {
            let length = usize::try_from(rng.below(4_096)).unwrap();
            let from = if rng.below(4) == 0 { 0 } else { at };
            let to = if rng.below(2) == 0 { bytes.len() } else { (from + length).min(bytes.len()) };
            bytes[from.min(to)..to].fill(0);
            "zeroed"
        }
        4 => {
            let length = usize::try_from(rng.below(64)).unwrap() + 1;
            bytes.iter_mut().skip(at).take(length).for_each(|byte| *byte = rng.next_u64().to_le_bytes()[0]);
            "overwritten"
        }
        _ => {
            bytes = std::fs::read(other).unwrap();
            "swapped with another folder's"
        }
    };
    std::fs::write(file, bytes).unwrap();
    kind
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_damage_is_told_and_nothing_acknowledged_is_missing() {
    let cases = std::env::var(CASES_ENV).map_or(CASES, |cases| cases.parse().unwrap());
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (folders, others) = (folders(here.path()).await, folders(there.path()).await);
    let mut rng = SplitMix64::new(SEED);
    let mut results: BTreeMap<(&str, &str, String), usize> = BTreeMap::new();
    let case = here.path().join("case");
    for number in 0..cases {
        let chosen = usize::try_from(rng.below(3)).unwrap();
        let (state, original) = &folders[chosen];
        copy(original, &case);
        let all: Vec<_> = snapshot(&case).into_keys().filter(|file| !file.ends_with("LOCK")).collect();
        let (engine, ours): (Vec<_>, Vec<_>) = all.into_iter().partition(|file| file.starts_with(case.join("engine")));
        let is_ours = rng.below(10) < 7;
        let from = if is_ours { &ours } else { &engine };
        let file = &from[usize::try_from(rng.below(from.len() as u64)).unwrap()];
        let name = file.strip_prefix(&case).unwrap().to_str().unwrap().to_owned();
        // The engine's files say nothing of their folder.
        let other = if is_ours { others[chosen].1.join(&name) } else { file.clone() };
        let before = std::fs::read(file).unwrap();
        let kind = damage(file, &other, &mut rng);
        let result = outcome(&case, ROWS);
        let what = format!("case {number}, {state:?}, {name} {kind}: {result}");

        let is_newest = ours.iter().filter(|file| file.extension().is_some()).max() == Some(file);
        let word = match result.split(['(', ':']).next().unwrap() {
            "all there" => "opened whole",
            "refused" => "refused",
            "failed" => "read failed",
            // What no crash can be told from, and only there.
            lost if lost.starts_with("lost") && *state == State::KilledBusy && is_newest => "lost of an unrecorded end",
            _ => panic!("{what}"),
        };
        if is_ours && word == "refused" {
            assert!(result.contains(&name), "{what}");
        }
        assert!(!is_ours || word != "read failed", "{what}");
        let part = if is_ours { if name == "SALTERN" { "marker" } else { "log" } } else { "engine" };
        *results.entry((part, kind, word.to_owned())).or_default() += 1;

        // What is put back is whole again.
        if word == "refused" && number % 8 == 0 {
            std::fs::write(file, before).unwrap();
            assert_eq!(outcome(&case, ROWS), "all there", "{what}, and put back");
        }
        std::fs::remove_dir_all(&case).unwrap();
    }
    for ((part, kind, word), count) in results {
        println!("{part:8} {kind:32} {word:28} {count:5}");
    }
}
