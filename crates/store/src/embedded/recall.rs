//! At a start, tells the filter which claims are in the engine's tables: in a thread of its own, while requests are served
//! without the filter.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use super::filter::Filter;
use super::physical::Space;
use super::view::View;
use crate::port::StoreError;

pub(super) struct Recall {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Recall {
    pub(super) fn start(view: View) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let told_to_stop = Arc::clone(&stop);
        let recall = move || match recall(&view, &told_to_stop) {
            Ok(()) => {}
            // Whoever asks the tables will be told the same.
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "claims could not be read"),
        };
        let thread = std::thread::Builder::new().name("store-recall".into()).spawn(recall)?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Recall {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that reads claims panicked");
        }
    }
}

fn recall(view: &View, told_to_stop: &AtomicBool) -> Result<(), StoreError> {
    let began = Instant::now();
    if view.engine.space(Space::Claims).approximate_len() > Filter::CLAIMS_MAX {
        return Ok(());
    }
    let mut claims = 0_u64;
    for claim in view.engine.keys(Space::Claims) {
        if told_to_stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        view.fresh.has_moved(&claim?);
        claims += 1;
    }
    view.fresh.has_told_all();
    tracing::debug!(claims, seconds = began.elapsed().as_secs_f64(), "all claims in tables are known");
    Ok(())
}
