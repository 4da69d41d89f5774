//! The contract of the port as executable checks, one per promise. Each panics where an adapter breaks it.
//!
//! Every check keeps to conversations of its own, so that one store, old or new, serves all of them once.

mod atoms;
mod conditions;
mod due;
mod fixtures;
mod queries;
mod records;
mod scan;

use std::sync::Arc;

pub use atoms::{atom_is_all_or_nothing, atoms_race_with_puts, atoms_refuse_what_they_cannot_do};
pub use conditions::{one_of_many_absent_puts_wins, versions_guard_updates};
pub use due::names_what_is_due;
pub use queries::{
    pages_follow_order_bounds_and_limit, partitions_do_not_mix, queries_go_on_past_a_megabyte,
    strong_reads_see_answered_puts,
};
pub use records::{every_record_comes_back, gets_answer_key_by_key};
pub use scan::finds_every_row_once;

use crate::port::Store;

/// Everything, by what the store says it can do.
pub async fn all(store: Arc<dyn Store>) {
    every_record_comes_back(&*store).await;
    gets_answer_key_by_key(&*store).await;
    one_of_many_absent_puts_wins(Arc::clone(&store)).await;
    versions_guard_updates(Arc::clone(&store)).await;
    strong_reads_see_answered_puts(Arc::clone(&store)).await;
    pages_follow_order_bounds_and_limit(&*store).await;
    partitions_do_not_mix(&*store).await;
    queries_go_on_past_a_megabyte(&*store).await;
    if store.capabilities().atomic_puts {
        atom_is_all_or_nothing(&*store).await;
        atoms_race_with_puts(Arc::clone(&store)).await;
    }
    atoms_refuse_what_they_cannot_do(&*store).await;
}
