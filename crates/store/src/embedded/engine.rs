//! The engine as we use it: four keyspaces in a sub-folder, which are given whole tables, and no wait without an end.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fjall::compaction::Leveled;
use fjall::config::{BlockSizePolicy, BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};
use saltern_core::page::Order;

use super::error::{EngineFailure, OpenError, is_full, read_failed};
use super::options::{EmbeddedOptions, OPEN_TABLES_MAX};
use super::physical::Space;
use crate::port::StoreError;

/// Tables that may wait for compaction before another comes: each is one more to be looked at by whoever reads.
const UNCOMPACTED_MAX: usize = 26;
const COMPACTION_PATIENCE: Duration = Duration::from_secs(30);
const BUSY_PAUSE: Duration = Duration::from_millis(2);

/// Claims are asked of tables only where one is there, most often, and never by range: there may be many tables of them.
/// Small ones, so that merging what has come in with what is there does not keep that of rows waiting for long.
fn rarely() -> Leveled {
    Leveled::default().with_l0_threshold(16).with_table_target_size(32 * 1_024 * 1_024)
}

#[derive(Clone)]
pub(super) struct Engine {
    db: Database,
    rows: Keyspace,
    claims: Keyspace,
    campaigns: Keyspace,
    due: Keyspace,
    probe: Arc<Probe>,
}

/// Finds out whether there is room for what the engine failed to write.
struct Probe {
    file: PathBuf,
    bytes: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("the engine panicked over its files: {0}")]
struct Panicked(String);

impl Engine {
    pub(super) fn open(folder: &Path, path: &Path, options: &EmbeddedOptions) -> Result<Self, OpenError> {
        // Only helps where panics unwind; with `panic = "abort"` the process ends here, with the files untouched.
        let probe = Arc::new(Probe { file: folder.join("PROBE"), bytes: options.layer_bytes as u64 });
        match catch_unwind(AssertUnwindSafe(|| Self::try_open(path, options, probe))) {
            Ok(opened) => opened.map_err(|error| OpenError::engine(folder, error)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
                Err(OpenError::damaged(folder, Panicked(text.to_owned())))
            }
        }
    }

    fn try_open(path: &Path, options: &EmbeddedOptions, probe: Arc<Probe>) -> fjall::Result<Self> {
        // Of several workers the engine keeps the first free for flushes, which are rare here, and it spins as long as others
        // compact.
        let db = Database::builder(path)
            .worker_threads(1)
            .cache_size(options.cache_bytes)
            .max_cached_files(Some(OPEN_TABLES_MAX))
            .open()?;
        let base = KeyspaceCreateOptions::default;
        // A page is a few KiB of neighbours: larger blocks compress better and need fewer index entries.
        let rows = db.keyspace("rows", || base().data_block_size_policy(BlockSizePolicy::all(8 * 1_024)))?;
        // Until the claims that are in tables are known (`recall.rs`), every look for a new one should end at a filter.
        let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.001));
        let claims = db.keyspace("claims", || {
            base().filter_policy(FilterPolicy::all(filter)).compaction_strategy(Arc::new(rarely()))
        })?;
        // Most partners that a search asks about are not boosted.
        let campaigns = db.keyspace("campaigns", || base().filter_policy(FilterPolicy::all(filter)))?;
        let due = db.keyspace("due", base)?;
        Ok(Self { db, rows, claims, campaigns, due, probe })
    }

    pub(super) fn space(&self, space: Space) -> &Keyspace {
        match space {
            Space::Rows => &self.rows,
            Space::Claims => &self.claims,
            Space::Campaigns => &self.campaigns,
            Space::Due => &self.due,
        }
    }

    pub(super) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Slice>, StoreError> {
        self.space(space).get(key).map_err(read_failed)
    }

    /// Rows between two keys, as they are now.
    pub(super) fn range<K: AsRef<[u8]>>(
        &self,
        space: Space,
        bounds: (Bound<K>, Bound<K>),
        order: Order,
    ) -> impl Iterator<Item = Result<(Slice, Slice), StoreError>> + use<K> {
        let mut rows = self.space(space).range(bounds);
        std::iter::from_fn(move || {
            let row = match order {
                Order::Ascending => rows.next(),
                Order::Descending => rows.next_back(),
            };
            row.map(|row| row.into_inner().map_err(read_failed))
        })
    }

    /// Keys of all rows, as they are now.
    pub(super) fn keys(&self, space: Space) -> impl Iterator<Item = Result<Slice, StoreError>> + use<> {
        self.space(space).iter().map(|row| row.key().map_err(read_failed))
    }

    /// Makes a table of changes in the order of their keys. Returns when it is on the disk and visible. A key without a value
    /// is removed.
    pub(super) fn take_in(
        &self,
        space: Space,
        changes: impl Iterator<Item = Result<(Slice, Option<Slice>), StoreError>>,
    ) -> Result<(), EngineFailure> {
        let mut changes = changes.peekable();
        if changes.peek().is_none() {
            return Ok(());
        }
        self.wait_until_ready(space)?;
        let failed = |error| self.failed(error);
        let mut table = self.space(space).start_ingestion().map_err(failed)?;
        for change in changes {
            let (key, value) = change.map_err(EngineFailure::unread)?;
            let written = match value {
                Some(value) => table.write(key, value),
                None => table.write_tombstone(key),
            };
            written.map_err(failed)?;
        }
        table.finish().map_err(failed)
    }

    /// Lets compaction catch up, for a while.
    fn wait_until_ready(&self, space: Space) -> Result<(), EngineFailure> {
        let deadline = Instant::now() + COMPACTION_PATIENCE;
        self.check()?;
        while self.space(space).l0_table_count() >= UNCOMPACTED_MAX && Instant::now() < deadline {
            std::thread::sleep(BUSY_PAUSE);
            self.check()?;
        }
        Ok(())
    }

    /// Fails if a thread of the engine has failed.
    fn check(&self) -> Result<(), EngineFailure> {
        self.db.persist(PersistMode::Buffer).map_err(|error| self.failed(error))
    }

    /// A failed flush only says that it failed, and is most often a full disk.
    fn failed(&self, error: fjall::Error) -> EngineFailure {
        match error {
            fjall::Error::Poisoned => match self.probe.write() {
                Err(full) if is_full(&full) => EngineFailure::Full(Arc::new(full)),
                _ => EngineFailure::Engine(Arc::new(error)),
            },
            error => EngineFailure::new(error),
        }
    }

    /// Writes all tables anew, without what was overwritten or removed.
    pub(super) fn compact(&self) -> Result<(), EngineFailure> {
        for space in Space::ALL {
            self.space(space).major_compact().map_err(|error| self.failed(error))?;
        }
        Ok(())
    }
}

impl Probe {
    fn write(&self) -> io::Result<()> {
        let mut bytes = io::repeat(1).take(self.bytes);
        let written = File::create(&self.file).and_then(|mut file| io::copy(&mut bytes, &mut file));
        std::fs::remove_file(&self.file)?;
        written.map(|_| ())
    }
}
