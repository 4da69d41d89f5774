//! The engine as we use it: four keyspaces in a sub-folder, synced batches, and no wait without an end.

use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fjall::config::{BlockSizePolicy, BloomConstructionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};

use saltern_core::rng::SplitMix64;

use super::error::{EngineFailure, OpenError, is_full};
use super::options::{EmbeddedOptions, JOURNAL_BYTES_MIN, OPEN_TABLES_MAX};
use super::physical::Space;

/// The engine stops writers at 4 unflushed buffers and at 30 tables that wait for compaction, and never lets go of
/// them if the thread that should help has died. We wait before that, with an eye on its health.
const UNFLUSHED_MAX: usize = 3;
const UNCOMPACTED_MAX: usize = 26;
const BUSY_PAUSE: Duration = Duration::from_millis(2);
/// A clean shutdown gives flushes this long; what is not flushed then is in the journal anyway.
const FLUSH_PATIENCE: Duration = Duration::from_secs(30);

/// The engine's own threshold for a journal, and what fills one up: under a key of the index that is never due.
const JOURNAL_FULL_BYTES: usize = 64_000_000;
const FILL_BYTES: usize = 1024 * 1024;
pub(super) const FILL_KEY: [u8; 9] = [0xFF; 9];

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
        let probe = Arc::new(Probe { file: folder.join("PROBE"), bytes: options.memtable_bytes });
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
        let db = Database::builder(path)
            .cache_size(options.cache_bytes)
            .max_journaling_size(options.journal_bytes.max(JOURNAL_BYTES_MIN))
            .max_cached_files(Some(OPEN_TABLES_MAX))
            .open()?;
        let base = || KeyspaceCreateOptions::default().max_memtable_size(options.memtable_bytes);
        // A page is a few KiB of neighbours: larger blocks compress better and need fewer index entries.
        let rows = db.keyspace("rows", || base().data_block_size_policy(BlockSizePolicy::all(8 * 1_024)))?;
        // Nearly every claim is new, so nearly every look for one should end at a filter.
        let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::FalsePositiveRate(0.001));
        let claims = db.keyspace("claims", || base().filter_policy(FilterPolicy::all(filter)))?;
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

    /// A key without a value is removed.
    pub(super) fn commit(&self, writes: Vec<(Space, Slice, Option<Slice>)>) -> Result<(), EngineFailure> {
        self.wait_until_ready(&writes)?;
        let mut batch = fjall::OwnedWriteBatch::with_capacity(self.db.clone(), writes.len())
            .durability(Some(PersistMode::SyncData));
        for (space, key, value) in writes {
            match value {
                Some(value) => batch.insert(self.space(space), key, value),
                None => batch.remove(self.space(space), key),
            }
        }
        batch.commit().map_err(|error| self.failed(error))
    }

    /// Messages do not wait for a load of campaigns to be flushed, nor the other way round.
    fn wait_until_ready(&self, writes: &[(Space, Slice, Option<Slice>)]) -> Result<(), EngineFailure> {
        let busy = |keyspace: &Keyspace| {
            keyspace.sealed_memtable_count() >= UNFLUSHED_MAX || keyspace.l0_table_count() >= UNCOMPACTED_MAX
        };
        let written = Space::ALL.map(|space| writes.iter().any(|write| write.0 == space).then(|| self.space(space)));
        while written.into_iter().flatten().any(busy) {
            self.check()?;
            std::thread::sleep(BUSY_PAUSE);
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

    /// Writes all tables anew, without what was overwritten or removed; the journal that had it goes too.
    ///
    /// The engine closes a journal only when it is long enough, and removes it when all it holds is in tables. So it is made
    /// long enough, and flushed twice: the first time it is closed, the second it goes.
    pub(super) fn compact(&self) -> Result<(), EngineFailure> {
        let failed = |error| self.failed(error);
        let mut random = SplitMix64::new(0);
        let noise: Vec<u8> = (0..FILL_BYTES / 8).flat_map(|_| random.next_u64().to_le_bytes()).collect();
        for _ in 0..JOURNAL_FULL_BYTES.div_ceil(FILL_BYTES) + 1 {
            self.wait_until_ready(&[(Space::Due, Slice::from(FILL_KEY), None)])?;
            self.due.insert(FILL_KEY, &noise).map_err(failed)?;
        }
        self.due.remove(FILL_KEY).map_err(failed)?;
        self.flush()?;
        self.flush()?;
        for space in Space::ALL {
            self.space(space).major_compact().map_err(|error| self.failed(error))?;
        }
        Ok(())
    }

    /// Moves everything from the journal into tables, so that the next start has nothing to replay.
    pub(super) fn flush(&self) -> Result<(), EngineFailure> {
        let deadline = Instant::now() + FLUSH_PATIENCE;
        let keyspaces = Space::ALL.map(|space| self.space(space));
        for keyspace in keyspaces {
            keyspace.rotate_memtable().map_err(|error| self.failed(error))?;
        }
        while keyspaces.iter().any(|keyspace| keyspace.sealed_memtable_count() > 0) && Instant::now() < deadline {
            self.check()?;
            std::thread::sleep(BUSY_PAUSE);
        }
        self.db.persist(PersistMode::SyncAll).map_err(|error| self.failed(error))
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
