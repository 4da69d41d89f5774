use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::embedded::physical::Space;
use crate::power_cut::simulated::{crash_after, steps_left};

const ID: FolderId = FolderId::from_bytes([7; 16]);

fn change(i: u64) -> Change {
    Change::put(Space::Rows, i.to_be_bytes().into(), format!("value {i}").as_bytes())
}

/// A log in two segments, of three commits each.
fn log(folder: &Path) -> Log {
    let mut log = Log::create(folder, ID).unwrap();
    for i in 1..=6 {
        log.commit(&[change(i), change(i + 100)]).unwrap();
        if i == 3 {
            assert_eq!(log.rotate(), 1);
        }
    }
    log
}

/// The first change of each commit.
fn read(folder: &Path) -> Result<(Log, Vec<Change>), LogDamage> {
    let mut changes = Vec::new();
    let log = Log::open(folder, ID, |change| changes.push(change))?;
    Ok((log, changes.into_iter().step_by(2).collect()))
}

fn changes(numbers: impl Iterator<Item = u64>) -> Vec<Change> {
    numbers.map(change).collect()
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let paths = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn restore(folder: &Path, files: &Files) {
    std::fs::remove_dir_all(folder).unwrap();
    std::fs::create_dir(folder).unwrap();
    files.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}

/// Where each of a segment's commits begins, and where the last one ends.
fn places(bytes: &[u8]) -> Vec<usize> {
    let key = Header::decode(bytes).unwrap().key();
    let mut places = vec![HEADER_BYTES];
    while let Some(found) = key.find(bytes, *places.last().unwrap()) {
        places.push(found.end);
    }
    places
}

/// The error of a log that must not open, which must leave every file as it is.
fn refused(folder: &Path) -> String {
    let before = files(folder);
    let error = read(folder).err().expect("must not open");
    assert!(before == files(folder), "files have changed");
    error.to_string()
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
    let (log, _) = read(folder.path()).unwrap();
    log.upkeep().retire_through(1).unwrap();
    assert_eq!(read(folder.path()).unwrap().1, changes(4..=9));
}

#[test]
fn large_commits_and_long_segments_are_read_back() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::create(folder.path(), ID).unwrap();
    let large =
        |i: u64| Change::put(Space::Rows, i.to_be_bytes().into(), &vec![0; 30_000 * usize::try_from(i).unwrap()]);
    for i in 1..=40 {
        log.commit(&[large(i), large(i)]).unwrap();
        let length = std::fs::metadata(segment::path(folder.path(), 1)).unwrap().len();
        assert_eq!(length % GROWTH_BYTES as u64, 0);
    }
    let there = read(folder.path()).unwrap().1;
    assert_eq!(there.len(), 40);
    assert!(there == (1..=40).map(large).collect::<Vec<_>>());
    // Wherever the file is cut, that is noticed.
    let path = segment::path(folder.path(), 1);
    let bytes = std::fs::read(&path).unwrap();
    let end = *places(&bytes).last().unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    for cut in
        (0..end).step_by(1_500_003).chain((0..end).step_by(GROWTH_BYTES)).collect::<BTreeSet<_>>().into_iter().rev()
    {
        file.set_len(cut as u64).unwrap();
        let error = refused(folder.path());
        assert!(error.contains("log/1.log"), "cut at {cut}: {error}");
    }
}

/// The process was killed, or the disk was full, at any byte of the last commit.
#[test]
fn a_torn_commit_is_dropped_and_its_number_taken() {
    let folder = TempDir::new().unwrap();
    drop(log(folder.path()));
    let (path, whole) = (segment::path(folder.path(), 2), files(folder.path()));
    let places = places(&whole[&path]);
    for kept in places[2]..places[3] {
        restore(folder.path(), &whole);
        let mut torn = whole[&path].clone();
        torn[kept..].fill(0);
        std::fs::write(&path, torn).unwrap();
        let (mut log, there) = read(folder.path()).unwrap();
        // The last byte is a digit.
        assert_eq!(there, changes(1..=5), "{kept}");
        log.commit(&[change(6), change(6)]).unwrap();
        assert_eq!(read(folder.path()).unwrap().1, changes(1..=6));
    }
}

/// Everything that a client might put into a message so that it looks like a commit: with guessed keys, at the right place and
/// others, under every number, claiming short and long.
fn forgeries(segment: u64, at: usize) -> impl Iterator<Item = Vec<u8>> {
    let secrets = [[0; 16], [0xFF; 16], *b"0123456789abcdef"];
    let numbers = (0..12).chain([u64::from_le_bytes(*b"        "), u64::MAX]);
    secrets.into_iter().flat_map(move |secret| {
        numbers.clone().map(move |number| {
            let mut forged = Vec::new();
            entry::CommitKey::new(secret, segment).encode(at, number, &[change(1)], &mut forged);
            forged
        })
    })
}

/// A client cannot make the log refuse its own torn commit, whatever the messages in it look like.
#[test]
fn forged_commits_in_a_torn_commit_are_not_taken_for_later_ones() {
    let folder = TempDir::new().unwrap();
    drop(log(folder.path()));
    let path = segment::path(folder.path(), 2);
    let whole = files(folder.path());
    let at = *places(&whole[&path]).last().unwrap();
    // Keys and values may be forged; each forgery stands at the place it was made for.
    let mut forged = vec![0; entry::HEAD_BYTES + 7];
    for shift in 0..16 {
        for number in 0..42 {
            forged.resize(forged.len() + shift, b' ');
            let place = at + forged.len();
            forged.extend(forgeries(2, place).nth(number).unwrap());
        }
    }
    let forged = &forged[entry::HEAD_BYTES + 7..];
    for is_key in [false, true] {
        restore(folder.path(), &whole);
        let change = if is_key {
            Change::put(Space::Rows, forged[..forged.len().min(60_000)].to_vec(), b"")
        } else {
            Change::put(Space::Rows, Vec::new(), forged)
        };
        let (mut log, _) = read(folder.path()).unwrap();
        log.commit(&[change]).unwrap();
        let torn = segment::path(folder.path(), 3);
        let committed = std::fs::read(&torn).unwrap();
        let end = *places(&committed).last().unwrap();
        for cut in (HEADER_BYTES..end).step_by(41) {
            // The tail was not written, or a part in the middle was not.
            for lost in [cut..end, cut..cut + 1] {
                let mut bytes = committed.clone();
                bytes[lost.clone()].iter_mut().for_each(|byte| *byte = !*byte & 0x7F);
                bytes[lost.start..].iter_mut().take(if lost.len() == 1 { 0 } else { end }).for_each(|byte| *byte = 0);
                std::fs::write(&torn, bytes).unwrap();
                assert_eq!(read(folder.path()).unwrap().1, changes(1..=6), "{lost:?}");
            }
        }
        std::fs::write(&torn, committed).unwrap();
        assert_eq!(read(folder.path()).unwrap().1.len(), 7);
    }
}

/// What a client sends decides neither how often bytes are read nor how far: a forged head is refused by itself.
#[test]
fn a_segment_full_of_forged_heads_is_searched_in_linear_time() {
    let folder = TempDir::new().unwrap();
    let mut log = Log::create(folder.path(), ID).unwrap();
    log.commit(&[change(1), change(1)]).unwrap();
    let forged = b"SLTB\xff\xff\xff\x03\x02\0\0\0".repeat(1_500_000);
    log.commit(&[Change::put(Space::Rows, Vec::new(), &forged)]).unwrap();
    drop(log);
    let path = segment::path(folder.path(), 1);
    let mut bytes = std::fs::read(&path).unwrap();
    let second = places(&bytes)[1];
    bytes[second + 20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(read(folder.path()).unwrap().1, changes(1..=1));
}

/// A head at `at` is looked at without what it claims to precede.
#[test]
fn a_commit_that_was_only_begun_proves_that_the_one_before_it_was_synced() {
    let folder = TempDir::new().unwrap();
    drop(log(folder.path()));
    let path = segment::path(folder.path(), 2);
    let mut bytes = std::fs::read(&path).unwrap();
    let places = places(&bytes);
    bytes[places[1] + 3] ^= 1;
    bytes[places[2] + entry::HEAD_BYTES..].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let error = refused(folder.path());
    assert!(error.contains("commit 5 should begin: commit 6 was begun after it"), "{error}");
}

#[test]
fn a_segment_that_was_not_even_begun_is_begun() {
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    drop(log(folder.path()));
    let whole = files(folder.path());
    let begun = {
        let (mut log, _) = read(folder.path()).unwrap();
        log.commit(&[change(7), change(7)]).unwrap();
        std::fs::read(segment::path(folder.path(), 3)).unwrap()
    };
    for bytes in [0, 5, HEADER_BYTES - 1, HEADER_BYTES, 9_000, GROWTH_BYTES] {
        for with_header in [false, true] {
            restore(folder.path(), &whole);
            let mut unused = vec![0; bytes];
            if with_header {
                let header = HEADER_BYTES.min(bytes);
                unused[..header].copy_from_slice(&begun[..header]);
            }
            std::fs::write(segment::path(folder.path(), 3), unused).unwrap();
            let (mut log, there) = read(folder.path()).unwrap();
            assert_eq!(there, changes(1..=6));
            log.commit(&[change(7), change(7)]).unwrap();
            assert_eq!(read(folder.path()).unwrap().1, changes(1..=7));
        }
    }
    // One that holds commits is no such segment.
    restore(folder.path(), &whole);
    drop(log(other.path()));
    for (bytes, number) in [(begun, 3), (std::fs::read(segment::path(other.path(), 2)).unwrap(), 4)] {
        let path = segment::path(folder.path(), number);
        std::fs::write(&path, bytes).unwrap();
        let error = refused(folder.path());
        assert!(error.contains(&format!("log/{number}.log is not listed")), "{error}");
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn damage_before_whole_commits_is_told_and_left_as_it_is() {
    let folder = TempDir::new().unwrap();
    drop(log(folder.path()));
    for (number, commits) in [(1, 3), (2, 2)] {
        let path = segment::path(folder.path(), number);
        let whole = std::fs::read(&path).unwrap();
        let end = places(&whole)[commits];
        for at in (0..end).step_by(7) {
            let mut bad = whole.clone();
            bad[at] ^= 0x55;
            std::fs::write(&path, &bad).unwrap();
            let error = refused(folder.path());
            assert!(error.contains(&format!("log/{number}.log")), "{number}, byte {at}: {error}");
        }
        std::fs::write(&path, whole).unwrap();
    }
    assert_eq!(read(folder.path()).unwrap().1, changes(1..=6));
}

/// A log in three segments, with each of them missing, emptied, zeroed or cut: it never opens with less.
#[test]
fn a_missing_emptied_zeroed_or_cut_segment_is_told() {
    let folder = TempDir::new().unwrap();
    let mut log = log(folder.path());
    log.rotate();
    log.commit(&[change(7), change(7)]).unwrap();
    log.upkeep().record(log.synced_end().unwrap()).unwrap();
    drop(log);
    let whole = files(folder.path());
    for number in 1..=3 {
        let path = segment::path(folder.path(), number);
        let bytes = &whole[&path];
        let used = *places(bytes).last().unwrap();
        let name = format!("log/{number}.log");

        std::fs::remove_file(&path).unwrap();
        let error = refused(folder.path());
        assert!(error.contains(&format!("{name} is missing, with commits from")), "{error}");

        std::fs::write(&path, vec![0; bytes.len()]).unwrap();
        assert!(refused(folder.path()).contains(&name));
        for cut in 0..used {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let error = refused(folder.path());
            assert!(error.contains(&name), "{error}");
        }
        // Where commits end is known of all of them: the last one's end was recorded.
        for zeroed in HEADER_BYTES..used {
            let mut bytes = bytes.clone();
            bytes[zeroed..].fill(0);
            std::fs::write(&path, bytes).unwrap();
            let error = refused(folder.path());
            assert!(error.contains(&name), "{error}");
        }
        restore(folder.path(), &whole);
    }
    let is_segment = |path: &Path| path.extension().is_some();
    whole.keys().filter(|path| is_segment(path)).for_each(|path| std::fs::remove_file(path).unwrap());
    assert!(refused(folder.path()).contains("log/1.log is missing"));
    restore(folder.path(), &whole);
    std::fs::write(folder.path().join("notes.txt"), "").unwrap();
    assert!(refused(folder.path()).contains("log/notes.txt"));
    std::fs::remove_file(folder.path().join("notes.txt")).unwrap();
    std::fs::remove_file(folder.path().join("MANIFEST")).unwrap();
    assert!(refused(folder.path()).contains("log/MANIFEST is missing"));
}

#[test]
fn segments_and_manifests_of_another_folder_are_told() {
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    drop(log(folder.path()));
    let mut theirs = Log::create(other.path(), FolderId::from_bytes([8; 16])).unwrap();
    for i in 1..=6 {
        theirs.commit(&[change(i), change(i + 100)]).unwrap();
        if i == 3 {
            theirs.rotate();
        }
    }
    let whole = files(folder.path());
    for name in ["1.log", "2.log", "MANIFEST"] {
        std::fs::copy(other.path().join(name), folder.path().join(name)).unwrap();
        let error = refused(folder.path());
        assert!(error.contains(&format!("log/{name} belongs to another folder")), "{error}");
        restore(folder.path(), &whole);
    }
    std::fs::copy(folder.path().join("1.log"), folder.path().join("2.log")).unwrap();
    assert!(refused(folder.path()).contains("log/2.log is corrupt"));
}

/// One segment and one manifest with every bit changed in turn.
#[test]
fn every_changed_bit_of_manifest_and_header_is_told() {
    let folder = TempDir::new().unwrap();
    drop(log(folder.path()));
    for (name, bytes) in [("MANIFEST", usize::MAX), ("1.log", HEADER_BYTES), ("2.log", HEADER_BYTES)] {
        let path = folder.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..bytes.min(whole.len()) {
            for bit in 0..8 {
                let mut bad = whole.clone();
                bad[at] ^= 1 << bit;
                std::fs::write(&path, bad).unwrap();
                let error = read(folder.path()).err().unwrap().to_string();
                assert!(error.contains(name), "bit {bit} of byte {at}: {error}");
            }
        }
        std::fs::write(&path, whole).unwrap();
    }
}

/// Nothing is synced twice for a commit: it has one write, and the steps before and after one sync.
#[test]
fn a_commit_is_one_write_and_one_sync() {
    let folder = TempDir::new().unwrap();
    let mut log = log(folder.path());
    crash_after(Some(1_000));
    for i in 0..100 {
        log.commit(&[change(i), change(i)]).unwrap();
    }
    assert_eq!(steps_left(), Some(700));
    crash_after(None);
}

/// What is done to a log, over and over, with the commits that were acknowledged and that are not yet in tables.
struct Script<'a> {
    folder: &'a Path,
    acknowledged: u64,
    retired: u64,
}

impl Script<'_> {
    /// Starts, adds commits, completes segments and retires them, all twice.
    fn run(&mut self) -> Result<(), LogDamage> {
        for _ in 0..2 {
            let (mut log, _) = read(self.folder)?;
            for _ in 0..2 {
                self.commit(&mut log)?;
                self.commit(&mut log)?;
                let (last, completed) = (log.rotate(), self.acknowledged);
                self.commit(&mut log)?;
                // In tables by now.
                self.retired = completed;
                log.upkeep().record(log.synced_end().unwrap())?;
                log.upkeep().retire_through(last)?;
            }
        }
        Ok(())
    }

    fn commit(&mut self, log: &mut Log) -> io::Result<()> {
        let next = self.acknowledged + 1;
        // More than fits into what is allocated, now and then.
        let filler =
            Change::put(Space::Rows, Vec::new(), &vec![0; if next.is_multiple_of(3) { GROWTH_BYTES } else { 9 }]);
        log.commit(&[change(next), filler])?;
        self.acknowledged = next;
        Ok(())
    }
}

/// A crash after every single step of starting, committing, completing and retiring, each followed by one at the next start.
#[test]
fn a_crash_after_any_step_loses_nothing() {
    let (mut steps, mut is_through) = (0, false);
    while !is_through {
        let folder = TempDir::new().unwrap();
        drop(Log::create(folder.path(), ID).unwrap());
        let mut script = Script { folder: folder.path(), acknowledged: 0, retired: 0 };
        for steps in [steps, steps % 7] {
            crash_after(Some(steps));
            let ran = script.run();
            crash_after(None);
            is_through = ran.is_ok();
            let (_, there) = read(folder.path()).unwrap();
            let there: Vec<_> =
                there.iter().map(|change| u64::from_be_bytes(*change.key().first_chunk().unwrap())).collect();
            // A commit whose sync did not return may be there or not. What has been retired may be there once more.
            let (first, last) = (there.first().copied(), there.last().copied().unwrap_or(script.retired));
            assert!(first.is_none_or(|first| first <= script.retired + 1), "{steps}: {there:?}");
            assert!(there.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{steps}: {there:?}");
            let expected = script.acknowledged..=script.acknowledged + 1;
            assert!(expected.contains(&last), "{steps}: {there:?} of {}", script.acknowledged);
            script.acknowledged = last;
            if is_through {
                break;
            }
        }
        steps += 1;
    }
    assert!(steps > 100, "{steps}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any change of a few bytes anywhere: the log opens with everything that was recorded as synced, or says what is wrong.
    #[test]
    fn random_damage_is_told(
        file in 0_usize..3,
        place: prop::sample::Index,
        bytes in prop::collection::vec(any::<u8>(), 1..40),
        is_recorded: bool,
    ) {
        let folder = TempDir::new().unwrap();
        let log = log(folder.path());
        if is_recorded {
            log.upkeep().record(log.synced_end().unwrap()).unwrap();
        }
        drop(log);
        let last_commit = places(&std::fs::read(segment::path(folder.path(), 2)).unwrap())[2];
        let (path, mut damaged) = files(folder.path()).into_iter().nth(file).unwrap();
        let used = damaged.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let at = place.index(used);
        let end = (at + bytes.len()).min(damaged.len());
        damaged[at..end].copy_from_slice(&bytes[..end - at]);
        std::fs::write(&path, damaged).unwrap();
        if let Ok((_, there)) = read(folder.path()) {
            // Damage of the newest segment that reaches its last commit looks like a torn one, unless the end is known.
            let is_torn = !is_recorded && path.ends_with("2.log") && end > last_commit;
            prop_assert!(there == changes(1..=6) || (is_torn && there == changes(1..=there.len() as u64)));
        }
    }
}
