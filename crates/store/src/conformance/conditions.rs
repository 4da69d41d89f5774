//! S1 and S3: conditions, judged in the same step as the write.

use std::sync::Arc;

use saltern_core::record::Record;

use super::fixtures::{absent, claim, claim_key, message, put, read, row_key, write};
use crate::port::{Condition, Put, PutOutcome, Store};

const WRITERS: u64 = 32;

/// S1, S3: of many puts on an absent row exactly one is applied, and all others are told its row.
pub async fn one_of_many_absent_puts_wins(store: Arc<dyn Store>) {
    for sort in 1..=4 {
        let key = row_key("one-wins", sort);
        let rows: Vec<_> = (0..WRITERS).map(|i| message(&format!("m{i}"), &format!("from writer {i}"))).collect();
        let outcomes = race(&store, rows.iter().map(|row| absent(key.clone(), row.clone()))).await;
        let winner = read(&*store, &key).await.expect("one of them is there");
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == PutOutcome::Applied).count(), 1);
        for (row, outcome) in rows.iter().zip(outcomes) {
            match outcome {
                PutOutcome::Applied => assert_eq!(*row, winner),
                PutOutcome::Refused(present) => assert_eq!(present.as_ref(), Some(&winner)),
            }
        }
    }
}

/// S1, S3: an update happens only on the version it names; a stale one is told the present row, one on a missing row
/// that there is none. Of many updates of one version exactly one is applied.
pub async fn versions_guard_updates(store: Arc<dyn Store>) {
    let key = claim_key("versions", "m");
    let update = |from: u64, to: u64| Put { key: key.clone(), record: claim(to), condition: Condition::Version(from) };
    assert_eq!(put(&*store, update(1, 2)).await, PutOutcome::Refused(None));
    assert_eq!(read(&*store, &key).await, None);
    write(&*store, key.clone(), claim(1)).await;
    assert_eq!(put(&*store, update(1, 5)).await, PutOutcome::Applied);
    assert_eq!(put(&*store, update(1, 6)).await, PutOutcome::Refused(Some(claim(5))));
    assert_eq!(put(&*store, absent(key.clone(), claim(7))).await, PutOutcome::Refused(Some(claim(5))));
    assert_eq!(read(&*store, &key).await, Some(claim(5)));

    let outcomes = race(&store, (0..WRITERS).map(|i| update(5, 100 + i))).await;
    let winner = read(&*store, &key).await;
    let applied: Vec<_> = (100..).zip(&outcomes).filter(|(_, o)| **o == PutOutcome::Applied).collect();
    assert_eq!(applied.len(), 1);
    assert_eq!(winner, Some(claim(applied[0].0)));
    let others = outcomes.into_iter().filter(|outcome| *outcome != PutOutcome::Applied);
    others.for_each(|outcome| assert_eq!(outcome, PutOutcome::Refused(winner.clone())));

    let void = row_key("versions", 9);
    write(&*store, void.clone(), Record::Void).await;
    let over = Put { key: void, record: message("m", "late"), condition: Condition::Version(1) };
    assert_eq!(put(&*store, over).await, PutOutcome::Refused(Some(Record::Void)));
}

async fn race(store: &Arc<dyn Store>, puts: impl Iterator<Item = Put>) -> Vec<PutOutcome> {
    let tasks: Vec<_> = puts
        .map(|one| {
            let store = Arc::clone(store);
            tokio::spawn(async move { put(&*store, one).await })
        })
        .collect();
    let mut outcomes = Vec::new();
    for task in tasks {
        outcomes.push(task.await.expect("a writer ends"));
    }
    outcomes
}
