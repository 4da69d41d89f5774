//! Store calls with deadlines: what may be tried again is tried again, on the same key, until time is up.

use std::sync::Arc;

use saltern_core::cost::write_units;
use saltern_core::key::Key;
use saltern_core::record::Record;
use saltern_core::seq::SeqNo;
use saltern_registry::ThrottledRow;
use saltern_store::{Consistency, Put, PutOutcome, Query, StoreError, query_all};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, sleep};

use super::Inner;
use super::known::Known;
use crate::deadline::by;

#[derive(Debug, thiserror::Error)]
#[error("deadline passed")]
pub(super) struct DeadlinePassed;

/// The attempts at one store call. The last error stands for all of them, but a write that may have happened once
/// stays `Unknown`.
struct Attempts<'a> {
    inner: &'a Inner,
    known: &'a Known,
    /// The message row that is being written, if one is, until it is throttled.
    row: Option<RowWrite>,
    deadline: Instant,
    made: u32,
    unknown: Option<StoreError>,
}

impl Attempts<'_> {
    /// Judges an attempt: its result if that is final, or `None`, after a pause, if it is worth another.
    async fn judge<T>(&mut self, attempt: Result<Result<T, StoreError>, Elapsed>) -> Option<Result<T, StoreError>> {
        let error = match attempt {
            Ok(Ok(value)) => return Some(Ok(value)),
            Ok(Err(error)) => error,
            Err(_) => StoreError::Unknown(Arc::new(DeadlinePassed)),
        };
        match &error {
            StoreError::Damaged(_) => return Some(Err(error)),
            StoreError::Throttled => self.note_throttle().await,
            StoreError::Unknown(_) => self.unknown = self.unknown.take().or_else(|| Some(error.clone())),
            StoreError::Unavailable(_) => {}
        }
        let pause = self.inner.jitter.pause(self.made);
        if self.inner.stop.is_cancelled() || Instant::now() + pause >= self.deadline {
            return Some(Err(self.unknown.take().unwrap_or(error)));
        }
        self.made += 1;
        self.inner.metrics.store_retries.inc();
        sleep(pause).await;
        None
    }

    /// Rows alone tell of heat: claims and control records are spread by themselves, whatever n is. Each tells once,
    /// however often it is tried.
    async fn note_throttle(&mut self) {
        self.inner.metrics.store_throttles.inc();
        let Some(RowWrite { seq, wcu }) = self.row.take() else { return };
        let Some(control) = self.known.control() else { return };
        // Heat is advice: if the registry cannot hear it, the next throttle will tell.
        let row = ThrottledRow { wcu, epoch: control.layout.epoch_start(seq) };
        let _ = self.inner.registry.throttled(&self.known.conversation, row).await;
    }
}

/// A message row on its way to the store.
struct RowWrite {
    seq: SeqNo,
    wcu: u64,
}

impl RowWrite {
    fn among(puts: &[Put]) -> Option<Self> {
        let put = puts.iter().find(|put| matches!(put.record, Record::Message(_)))?;
        Some(Self { seq: SeqNo::clamped(put.key.sort), wcu: write_units(put.record.item_bytes()) })
    }
}

impl Inner {
    fn attempts<'a>(&'a self, known: &'a Known, row: Option<RowWrite>, deadline: Instant) -> Attempts<'a> {
        Attempts { inner: self, known, row, deadline, made: 0, unknown: None }
    }

    pub(super) async fn put(&self, known: &Known, put: &Put, deadline: Instant) -> Result<PutOutcome, StoreError> {
        let mut attempts = self.attempts(known, RowWrite::among(std::slice::from_ref(put)), deadline);
        loop {
            let attempt = by(deadline, self.store.put(put)).await;
            if let Some(settled) = attempts.judge(attempt).await {
                return settled;
            }
        }
    }

    pub(super) async fn put_all(
        &self,
        known: &Known,
        puts: &[Put],
        deadline: Instant,
    ) -> Result<Vec<PutOutcome>, StoreError> {
        let mut attempts = self.attempts(known, RowWrite::among(puts), deadline);
        loop {
            let attempt = by(deadline, self.store.put_all(puts)).await;
            if let Some(settled) = attempts.judge(attempt).await {
                return settled;
            }
        }
    }

    /// One row, by a strong read.
    pub(super) async fn get(&self, known: &Known, key: &Key, deadline: Instant) -> Result<Option<Record>, StoreError> {
        let mut attempts = self.attempts(known, None, deadline);
        loop {
            let attempt = by(deadline, self.store.get(std::slice::from_ref(key), Consistency::Strong)).await;
            if let Some(settled) = attempts.judge(attempt).await {
                return settled.map(|mut found| found.pop().flatten());
            }
        }
    }

    /// Rows of one partition, through every continuation.
    pub(super) async fn query(
        &self,
        known: &Known,
        query: &Query,
        deadline: Instant,
    ) -> Result<Vec<(u64, Record)>, StoreError> {
        let mut attempts = self.attempts(known, None, deadline);
        loop {
            let attempt = by(deadline, query_all(&*self.store, query)).await;
            if let Some(settled) = attempts.judge(attempt).await {
                return settled;
            }
        }
    }
}
