//! The threads that serve, each on a core of its own.
//!
//! Who is woken through a socket is put where its waker runs, and a core that waits for the disk is not given the threads that
//! wait for another one. Bound, the threads that serve are where the cores are.

use anyhow::{Context as _, Result};
use tokio::runtime::{Builder, Runtime};

/// A runtime with one thread for each core that the process may use, bound to it if that is wanted. Where it may use less than
/// whole cores, as in a container with a quota, all processes would crowd on the same ones: there nothing is bound.
pub(crate) fn runtime(bind: bool) -> Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.enable_all();
    build(builder, bind).context("cannot start the runtime")
}

#[cfg(not(target_os = "linux"))]
fn build(mut builder: Builder, _: bool) -> std::io::Result<Runtime> {
    builder.build()
}

#[cfg(target_os = "linux")]
fn build(mut builder: Builder, bind: bool) -> std::io::Result<Runtime> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread::available_parallelism;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    // A server that does not know its cores still serves.
    let Ok(all) = sched_getaffinity(None) else { return builder.build() };
    let cores: Vec<CpuSet> = (0..CpuSet::MAX_CPU).filter(|core| all.is_set(*core)).map(only).collect();
    let workers = cores.len();
    if !bind || workers < 2 || !available_parallelism().is_ok_and(|usable| usable.get() == workers) {
        return builder.build();
    }
    let (started, starts) = mpsc::channel();
    let nth = AtomicUsize::new(0);
    builder.worker_threads(workers).on_thread_start(move || {
        // A thread that a worker starts later would inherit its core.
        let here = cores.get(nth.fetch_add(1, Ordering::Relaxed)).unwrap_or(&all);
        if let Err(error) = sched_setaffinity(None, here) {
            tracing::debug!(%error, "a thread stays where the system puts it");
        }
        let _ = started.send(());
    });
    let runtime = builder.build()?;
    // Its first threads are its workers, as long as nobody asks for others before these have started.
    starts.iter().take(workers).for_each(drop);
    Ok(runtime)
}

#[cfg(target_os = "linux")]
fn only(core: usize) -> rustix::thread::CpuSet {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    set
}
