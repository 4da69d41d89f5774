//! The peer of the store: one file, one writer that syncs whatever has come in as one batch.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};

/// Entries that may wait for the writer.
const QUEUE_MAX: usize = 4_096;

struct Entry {
    bytes: Vec<u8>,
    synced: oneshot::Sender<()>,
}

pub(super) struct PlainFile {
    submit: mpsc::Sender<Entry>,
    writer: JoinHandle<std::io::Result<()>>,
}

impl PlainFile {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create_new(path).with_context(|| format!("cannot make {}", path.display()))?;
        let (submit, entries) = mpsc::channel(QUEUE_MAX);
        let writer = std::thread::Builder::new().name("plain-file".into()).spawn(move || write_all(file, entries))?;
        Ok(Self { submit, writer })
    }

    /// Returns when the bytes are on the disk.
    pub(super) async fn append(&self, bytes: Vec<u8>) -> Result<()> {
        let (synced, done) = oneshot::channel();
        self.submit.send(Entry { bytes, synced }).await.context("the writer has ended")?;
        done.await.context("the writer has failed")
    }

    pub(super) fn close(self) -> Result<()> {
        drop(self.submit);
        self.writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))??;
        Ok(())
    }
}

fn write_all(mut file: File, mut entries: mpsc::Receiver<Entry>) -> std::io::Result<()> {
    let mut batch = Vec::new();
    let mut bytes = Vec::new();
    while entries.blocking_recv_many(&mut batch, QUEUE_MAX) > 0 {
        bytes.clear();
        batch.iter().for_each(|entry| bytes.extend_from_slice(&entry.bytes));
        file.write_all(&bytes)?;
        file.sync_data()?;
        for entry in batch.drain(..) {
            let _ = entry.synced.send(());
        }
    }
    Ok(())
}
