//! Thousands of seeds, and the proof that they would find the defects they are meant to find.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use saltern_service::conversations::Sabotage;
use saltern_sim::{Failure, Report, run};

/// `SALTERN_SIM_SEEDS` for more.
fn seeds() -> u64 {
    std::env::var("SALTERN_SIM_SEEDS").map_or(5_000, |n| n.parse().expect("SALTERN_SIM_SEEDS is a number"))
}

/// Runs seeds on all cores until `stop` says so or there are no more.
fn each_seed(sabotage: Option<Sabotage>, stop: impl Fn(Result<Report, Box<Failure>>) -> bool + Sync) {
    let (next, end) = (AtomicU64::new(1), seeds());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > end {
                        return;
                    }
                    if stop(run(seed, sabotage)) {
                        next.store(end + 1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

#[test]
fn promises_hold_in_every_seed() {
    let failures = Mutex::new(Vec::new());
    let faults = Mutex::new(BTreeMap::<String, u64>::new());
    let [calls, faulty, acknowledged, salted, shrunk, widened, collided] = [const { AtomicU64::new(0) }; 7];
    each_seed(None, |result| {
        match result {
            Ok(report) => {
                let mut faults = faults.lock().unwrap();
                for (kind, count) in report.faults {
                    *faults.entry(kind).or_default() += count;
                }
                calls.fetch_add(report.store_calls, Ordering::Relaxed);
                faulty.fetch_add(report.store_faults, Ordering::Relaxed);
                acknowledged.fetch_add(report.acknowledged as u64, Ordering::Relaxed);
                salted.fetch_add(u64::from(report.n_max > 1), Ordering::Relaxed);
                shrunk.fetch_add(u64::from(report.n_shrunk), Ordering::Relaxed);
                widened.fetch_add(u64::from(report.widened), Ordering::Relaxed);
                collided.fetch_add(u64::from(report.widened && report.collided), Ordering::Relaxed);
            }
            Err(failure) => failures.lock().unwrap().push(failure.to_string()),
        }
        failures.lock().unwrap().len() >= 10
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));

    let faults = faults.into_inner().unwrap();
    let [calls, faulty, acknowledged, salted, shrunk, widened, collided] =
        [calls, faulty, acknowledged, salted, shrunk, widened, collided].map(AtomicU64::into_inner);
    println!("{} seeds: {acknowledged} acknowledgements, {calls} store calls, {faulty} of them faulty", seeds());
    println!(
        "{salted} seeds salted, {shrunk} shrunk again, {widened} widened on full partitions, {collided} of those with colliding salts; faults: {faults:#?}"
    );
    let kinds = faults.values().filter(|count| **count > 0).count();
    let [passes, cut_off] = ["archive pass", "archive pass cut off"].map(|kind| faults.get(kind).copied().unwrap_or(0));
    assert!(
        passes * 2 >= seeds() && cut_off * 2 >= seeds(),
        "only {passes} passes moved anything, {cut_off} were cut off"
    );
    assert!(kinds >= 6, "only {kinds} kinds of fault struck");
    assert!(faulty * 10 >= calls, "only {faulty} of {calls} store calls were faulty");
    assert!(salted * 4 >= seeds(), "n grew in only {salted} seeds");
    assert!(collided * 50 >= seeds(), "colliding salts widened the spread in only {collided} seeds");
    assert!(shrunk * 20 >= seeds(), "n shrank in only {shrunk} seeds");
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 1..=20 {
        let [first, second] = [run(seed, None), run(seed, None)].map(|r| r.map_err(|f| f.to_string()).unwrap().trace);
        assert_eq!(first, second, "seed {seed}");
    }
}

/// The number of the first seed that finds the defect.
fn found_by(defect: Sabotage) -> u64 {
    let found = AtomicU64::new(0);
    each_seed(Some(defect), |result| {
        let Err(failure) = result else { return false };
        println!("{defect:?}: {failure}");
        found.store(failure.seed, Ordering::Relaxed);
        true
    });
    found.into_inner()
}

#[test]
fn every_defect_is_found() {
    let defects = [
        Sabotage::AcknowledgeBeforeRow,
        Sabotage::SaltByMessageId,
        Sabotage::SealerOverwrites,
        Sabotage::EpochBelowHorizon,
        Sabotage::ClaimsSkipped,
        Sabotage::JoinStartedReads,
    ];
    for defect in defects {
        assert_ne!(found_by(defect), 0, "{defect:?} is not found by {} seeds", seeds());
    }
}
