//! S7: several rows in one step.

use std::sync::Arc;

use super::fixtures::{absent, claim, claim_key, message, put, read, row_key, write};
use crate::port::{Condition, Put, PutOutcome, Store, StoreError};

const RACES: u64 = 16;

async fn put_all(store: &dyn Store, puts: Vec<Put>) -> Vec<PutOutcome> {
    store.put_all(&puts).await.expect("a put_all is answered")
}

/// S7, S3: all puts are applied, or none, and then each answer says whether that put stood in the way.
pub async fn atom_is_all_or_nothing(store: &dyn Store) {
    let name = "all-or-nothing";
    let (first, second, third) = (row_key(name, 1), claim_key(name, "m"), row_key(name, 2));
    let puts = |text: &str| {
        vec![
            absent(first.clone(), message("m1", text)),
            absent(second.clone(), claim(1)),
            absent(third.clone(), message("m2", text)),
        ]
    };
    write(store, second.clone(), claim(9)).await;
    let outcomes = put_all(store, puts("refused")).await;
    assert_eq!(outcomes, [PutOutcome::Applied, PutOutcome::Refused(Some(claim(9))), PutOutcome::Applied]);
    assert_eq!(read(store, &first).await, None);
    assert_eq!(read(store, &third).await, None);

    let mut guarded = puts("applied");
    guarded[1].condition = Condition::Version(9);
    assert_eq!(put_all(store, guarded.clone()).await, vec![PutOutcome::Applied; 3]);
    for put in &guarded {
        assert_eq!(read(store, &put.key).await.as_ref(), Some(&put.record));
    }
    let refused = put_all(store, guarded.clone()).await;
    let rows = guarded.into_iter().map(|put| PutOutcome::Refused(Some(put.record)));
    assert_eq!(refused, rows.collect::<Vec<_>>());

    let missing = Put { key: row_key(name, 3), record: claim(1), condition: Condition::Version(1) };
    assert_eq!(put_all(store, vec![missing]).await, [PutOutcome::Refused(None)]);
    assert_eq!(put_all(store, Vec::new()).await, []);
}

/// S1, S7: an atom and a plain put that meet in one row never both win, and a beaten atom leaves nothing.
pub async fn atoms_race_with_puts(store: Arc<dyn Store>) {
    for i in 1..=RACES {
        let (row, other) = (row_key("atom-race", i), claim_key("atom-race", &format!("m{i}")));
        let atom = vec![absent(other.clone(), claim(i)), absent(row.clone(), message("atom", "a"))];
        let single = absent(row.clone(), message("single", "s"));
        let atom = tokio::spawn({
            let store = Arc::clone(&store);
            async move { put_all(&*store, atom).await }
        });
        let single = tokio::spawn({
            let store = Arc::clone(&store);
            async move { put(&*store, single).await }
        });
        let (atom, single) = (atom.await.expect("an atom ends"), single.await.expect("a put ends"));
        let (row, other) = (read(&*store, &row).await, read(&*store, &other).await);
        if single == PutOutcome::Applied {
            assert_eq!(atom, [PutOutcome::Applied, PutOutcome::Refused(Some(message("single", "s")))]);
            assert_eq!((row, other), (Some(message("single", "s")), None));
        } else {
            assert_eq!(atom, [PutOutcome::Applied, PutOutcome::Applied]);
            assert_eq!(single, PutOutcome::Refused(Some(message("atom", "a"))));
            assert_eq!((row, other), (Some(message("atom", "a")), Some(claim(i))));
        }
    }
}

/// S4: what an adapter cannot do in one step it does not do at all.
pub async fn atoms_refuse_what_they_cannot_do(store: &dyn Store) {
    let key = row_key("misuse", 1);
    let puts = match store.capabilities().atomic_puts {
        true => vec![absent(key.clone(), message("a", "a")), absent(key.clone(), message("b", "b"))],
        false => vec![absent(key.clone(), message("a", "a"))],
    };
    let answer = store.put_all(&puts).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    assert_eq!(read(store, &key).await, None);
}
