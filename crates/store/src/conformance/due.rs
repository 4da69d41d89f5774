//! U1 and U2, for adapters with an index of what is due.

use std::collections::BTreeSet;

use saltern_core::archive::ArchiveState;
use saltern_core::control::ControlRecord;
use saltern_core::key::Key;
use saltern_core::record::Record;

use super::fixtures::{conversation, write};
use crate::due::Due;
use crate::port::{Condition, Put, PutOutcome, Store};

/// Conversations are named by what their control record says, whatever it said before.
pub async fn names_what_is_due(store: &dyn Store, due: &dyn Due) {
    let name = |i: u64| format!("due#{i}");
    let first = ControlRecord::create(1, 0);
    for i in 0..40 {
        let record = first.with_archive(ArchiveState { oldest_ms: Some(1_000 + i), ..first.archive.clone() });
        write(store, Key::control(&conversation(&name(i))), Record::Control(record)).await;
    }
    let unknown = first.with_archive(ArchiveState::unknown());
    write(store, Key::control(&conversation("due of old")), Record::Control(unknown)).await;
    // Ten that have been looked at, and are due later.
    for i in 0..10 {
        let later = ControlRecord { ver: 3, ..first.clone() };
        let later =
            ControlRecord { archive: ArchiveState { oldest_ms: Some(5_000), ..first.archive.clone() }, ..later };
        let key = Key::control(&conversation(&name(i)));
        let put = Put { key, record: Record::Control(later), condition: Condition::Version(2) };
        assert_eq!(store.put(&put).await.expect("a put is answered"), PutOutcome::Applied);
    }
    let names = |range: std::ops::Range<u64>| range.map(name).collect::<BTreeSet<_>>();
    for limit in [1, 7, 1_000] {
        assert_eq!(named(due, 999, limit).await, names(0..0), "in pages of {limit}");
        assert_eq!(named(due, 1_029, limit).await, names(10..30), "in pages of {limit}");
        assert_eq!(named(due, 4_999, limit).await, names(10..40), "in pages of {limit}");
        assert_eq!(named(due, 5_000, limit).await, names(0..40), "in pages of {limit}");
    }
}

async fn named(due: &dyn Due, oldest_ms_max: u64, limit: usize) -> BTreeSet<String> {
    let (mut found, mut behind) = (BTreeSet::new(), None);
    loop {
        let page = due.due(oldest_ms_max, behind.as_ref(), limit).await.expect("the index answers");
        assert!(page.conversations.len() <= limit);
        for conversation in page.conversations {
            // Other checks have written at time 0 and the like.
            if conversation.as_str().starts_with("due") {
                assert!(found.insert(conversation.to_string()), "{conversation} came twice");
            }
        }
        behind = page.resume;
        if behind.is_none() {
            return found;
        }
    }
}
