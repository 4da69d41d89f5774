use tempfile::TempDir;

use super::*;
use crate::embedded::physical::Space;

fn change(i: u64) -> Change {
    Change::put(Space::Rows, i.to_be_bytes().into(), format!("value {i}").as_bytes())
}

/// A log in two segments, of three commits each.
fn log(folder: &Path) -> Log {
    let mut log = Log::create(folder).unwrap();
    for i in 1..=6 {
        log.commit(&[change(i), change(i + 100)]).unwrap();
        if i == 3 {
            assert_eq!(log.rotate().unwrap(), 1);
        }
    }
    log
}

/// The first change of each commit.
fn read(folder: &Path) -> Result<(Log, Vec<Change>), LogDamage> {
    let mut changes = Vec::new();
    let log = Log::open(folder, |change| changes.push(change))?;
    Ok((log, changes.into_iter().step_by(2).collect()))
}

fn changes(numbers: impl Iterator<Item = u64>) -> Vec<Change> {
    numbers.map(change).collect()
}

/// What was written of a segment. A commit of these tests ends in a digit.
fn used(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    bytes
}

#[test]
fn what_is_committed_is_read_back_and_gone_on_with() {
    let folder = TempDir::new().unwrap();
    drop(log(folder.path()));
    for i in 7..=9 {
        let (mut log, there) = read(folder.path()).unwrap();
        assert_eq!(there, changes(1..i));
        log.commit(&[change(i), change(i)]).unwrap();
    }
    remove_through(folder.path(), 1).unwrap();
    assert_eq!(read(folder.path()).unwrap().1, changes(4..=9));
}

#[test]
fn a_torn_commit_is_cut_off_and_its_place_taken() {
    for kept in 0..40 {
        let folder = TempDir::new().unwrap();
        drop(log(folder.path()));
        let path = segment_path(folder.path(), 2);
        let whole = used(&path);
        let commit = (whole.len() - HEADER_BYTES) / 3;
        let mut torn = whole[..whole.len() - commit + kept].to_vec();
        // Either short, or long and never written.
        if kept % 2 == 0 {
            torn.resize(whole.len() + 4_096, 0);
        }
        std::fs::write(&path, torn).unwrap();
        let (mut log, there) = read(folder.path()).unwrap();
        assert_eq!(there, changes(1..=5), "{kept}");
        log.commit(&[change(6), change(6)]).unwrap();
        assert_eq!(read(folder.path()).unwrap().1, changes(1..=6));
    }
}

#[test]
fn a_segment_that_was_not_even_begun_is_begun() {
    for bytes in [0, 5, HEADER_BYTES - 1, HEADER_BYTES, 9_000] {
        let folder = TempDir::new().unwrap();
        drop(log(folder.path()));
        std::fs::write(segment_path(folder.path(), 3), vec![0; bytes]).unwrap();
        let (mut log, there) = read(folder.path()).unwrap();
        assert_eq!(there, changes(1..=6));
        log.commit(&[change(7), change(7)]).unwrap();
        assert_eq!(read(folder.path()).unwrap().1, changes(1..=7));
    }
}

#[test]
fn damage_before_whole_commits_is_told_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    drop(log(folder.path()));
    for (number, commits) in [(1, 3), (2, 2)] {
        let path = segment_path(folder.path(), number);
        let whole = used(&path);
        let end = HEADER_BYTES + (whole.len() - HEADER_BYTES) / 3 * commits;
        for at in (0..end).step_by(7) {
            let mut bad = whole.clone();
            bad[at] ^= 0x55;
            std::fs::write(&path, &bad).unwrap();
            let damage = read(folder.path()).err();
            assert!(matches!(damage, Some(LogDamage::Middle { .. })), "{number}, byte {at}: {damage:?}");
            assert_eq!(std::fs::read(&path).unwrap(), bad);
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert_eq!(read(folder.path()).unwrap().1, changes(1..=6));
}

#[test]
fn a_missing_segment_is_told() {
    let folder = TempDir::new().unwrap();
    let mut log = log(folder.path());
    log.rotate().unwrap();
    drop(log);
    std::fs::remove_file(segment_path(folder.path(), 2)).unwrap();
    assert!(matches!(read(folder.path()).err(), Some(LogDamage::Missing(2))));
    for number in [1, 3] {
        std::fs::remove_file(segment_path(folder.path(), number)).unwrap();
    }
    assert!(matches!(read(folder.path()).err(), Some(LogDamage::None)));
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    assert!(matches!(read(folder.path()).err(), Some(LogDamage::Name(_))));
}
