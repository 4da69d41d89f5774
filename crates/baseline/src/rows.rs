//! What several designs do to a store: put a row where none is, ask several ranges at once, turn ids into numbers.

use std::cmp::Reverse;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures_util::future::try_join_all;
use saltern_core::key::Key;
use saltern_core::message::Draft;
use saltern_core::record::{MessageRow, Record};
use saltern_store::{Condition, Put, PutOutcome, Query, Store, StoreError, query_all};

/// Another message has the key.
#[derive(Debug)]
struct Occupied;

impl fmt::Display for Occupied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another message has this key")
    }
}

impl Error for Occupied {}

/// One attempt. The same message already there is success; another one is `Unavailable`, for nothing happened.
pub(crate) async fn put_absent(store: &dyn Store, key: Key, draft: &Draft, now_ms: u64) -> Result<(), StoreError> {
    let record = Record::Message(MessageRow::new(draft, now_ms));
    match store.put(&Put { key, record, condition: Condition::Absent }).await? {
        PutOutcome::Applied => Ok(()),
        PutOutcome::Refused(Some(Record::Message(row))) if is_of(&row, draft) => Ok(()),
        PutOutcome::Refused(_) => Err(StoreError::Unavailable(Arc::new(Occupied))),
    }
}

fn is_of(row: &MessageRow, draft: &Draft) -> bool {
    row.message_id == draft.message_id && row.digest == draft.digest
}

/// Asks all queries at once and merges their messages by descending sort key. The designs write nothing but messages.
pub(crate) async fn newest_first(store: &dyn Store, queries: &[Query]) -> Result<Vec<(u64, MessageRow)>, StoreError> {
    let runs = try_join_all(queries.iter().map(|query| query_all(store, query))).await?;
    let message = |(sort, record)| match record {
        Record::Message(row) => Some((sort, row)),
        _ => None,
    };
    let mut rows: Vec<_> = runs.into_iter().flatten().filter_map(message).collect();
    rows.sort_by_key(|(sort, _)| Reverse(*sort));
    Ok(rows)
}

/// Fowler, Noll and Vo's hash: the same in every process, so that a retry can find its row.
pub(crate) fn fnv1a(id: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    id.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }
}
