//! A client sends bytes that look like commits of the log, and then a commit is torn: by a full disk, a kill, a power cut.

use rstest::rstest;
use saltern_core::rng::SplitMix64;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64_with_seed};

use super::durability::copy;
use super::*;

/// A commit with a number, as it would be valid if there were no secret: with the checksum over number and changes alone, and
/// with the layout of today under a key of zeroes. Only ASCII, so that it fits into any text.
fn forged(number: u64, position: u64, rng: &mut SplitMix64) -> String {
    let numbers = [number, number | 0x2020_2020_2020_2000];
    loop {
        let changes = format!("\0\x01\0\x08\0\0\0k{:08}", rng.below(100_000_000));
        let number = numbers[usize::try_from(rng.below(2)).unwrap()].to_le_bytes();
        let mut commit = [b"SLTB", &u32::try_from(changes.len()).unwrap().to_le_bytes()[..], &number].concat();
        if rng.below(2) == 0 {
            let mut sum = Xxh3Default::new();
            sum.update(&number);
            sum.update(changes.as_bytes());
            commit.extend(sum.digest().to_le_bytes());
        } else {
            commit.extend(xxh3_64_with_seed(changes.as_bytes(), 0).to_le_bytes());
            let place = [0, 1, position].map(u64::to_le_bytes).concat();
            commit.extend(xxh3_64_with_seed(&[&place, &commit[..]].concat(), 0).to_le_bytes());
        }
        commit.extend(changes.as_bytes());
        if let Some(text) = String::from_utf8(commit).ok().filter(|text| text.is_ascii()) {
            return text;
        }
    }
}

/// The texts of one message: its id, its sender, its content.
fn message(seq: u64, forged: &[String], place: usize) -> Vec<Put> {
    let text = |at: usize, usual: &str| if at == place { forged[0].clone() } else { usual.to_owned() };
    let seq = SeqNo::clamped(seq);
    let content = if place == 2 { forged.concat() } else { "hey".into() };
    let sender_id = ParticipantId::new(&text(1, "alice")).unwrap();
    let timestamp = (place == 3).then(|| forged[0].clone());
    let body = Body { sender_id, receiver_id: None, content, timestamp };
    let draft = Draft::new(MessageId::new(&text(0, &format!("m{seq}"))).unwrap(), body).unwrap();
    let claim = Record::Claim(Claim { seq, digest: draft.digest });
    let row = Record::Message(MessageRow::new(&draft, 0));
    let absent = |key, record| Put { key, record, condition: Condition::Absent };
    vec![
        absent(Key::claim(&conversation(), &draft.message_id), claim),
        absent(Key::row(&conversation(), Salt::Unsalted, seq), row),
    ]
}

/// Torn at any byte, the folder opens with everything acknowledged before.
#[rstest]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_commits_never_lock_a_folder(#[values(0, 1, 2, 3)] place: usize) {
    let folder = TempDir::new().unwrap();
    let (live, killed) = (folder.path().join("live"), folder.path().join("killed"));
    let mut rng = SplitMix64::new(1);
    let store = open(&live);
    append_all(&store, 1..=3).await;
    let path = live.join("log/1.log");
    let used = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let before = used(&std::fs::read(&path).unwrap());
    let mut forgeries: Vec<_> = (0..12).map(|number| forged(number, before as u64, &mut rng)).collect();
    forgeries.push(" ".repeat(usize::try_from(rng.below(16)).unwrap()));
    assert_eq!(
        store.put_all(&message(4, &forgeries, place)).await.unwrap(),
        [PutOutcome::Applied, PutOutcome::Applied]
    );
    let whole = std::fs::read(&path).unwrap();
    let end = used(&whole);
    copy(&live, &killed);
    drop(store);
    super::damage::drop_unused(&killed.join("engine/0.jnl"));
    let step = 1 + (end - before) / 24;
    for cut in (before + 1..end - 1).step_by(step) {
        for with_tail in [false, true] {
            let mut torn = whole.clone();
            // Pages reach the disk in any order: the front may be missing, or the back.
            let lost = if with_tail { before + 1..cut + 1 } else { cut..end };
            torn[lost].fill(0);
            let case = folder.path().join("case");
            copy(&killed, &case);
            std::fs::write(case.join("log/1.log"), torn).unwrap();
            log_is_unrecorded(&case);
            assert_eq!(count(&open(&case)).await.unwrap(), 3, "cut at {cut}");
            std::fs::remove_dir_all(case).unwrap();
        }
    }
}

/// The commit was torn, so nobody can have recorded that it was synced.
fn log_is_unrecorded(folder: &Path) {
    let marker = std::fs::read_to_string(folder.join("SALTERN")).unwrap();
    let id = marker.lines().find_map(|line| line.strip_prefix("folder ")).unwrap();
    log::unrecord(&folder.join("log"), folder_id::FolderId::parse(id).unwrap());
}
