use saltern_core::limits::DEAD_LETTERS_MAX;

const MIB: u64 = 1_024 * 1_024;

/// How much the store may take of the machine. The defaults stay far below 1 GiB of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddedOptions {
    /// Blocks of tables kept in memory.
    pub cache_bytes: u64,
    /// What the log may hold before it moves into tables. Twice as much may be in memory while it moves.
    pub layer_bytes: usize,
    /// Requests that may wait for the commit thread; further ones wait to be let in.
    pub queue_max: usize,
    /// Requests that one commit may take up.
    pub batch_max: usize,
    /// Dead letters kept; the oldest go first. Always the same for one folder.
    pub dead_letters_max: u64,
}

impl Default for EmbeddedOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 128 * MIB,
            layer_bytes: 128 * 1_024 * 1_024,
            queue_max: 1_024,
            batch_max: 1_024,
            dead_letters_max: DEAD_LETTERS_MAX,
        }
    }
}

/// Values that one commit takes up before it goes to disk.
pub(super) const COMMIT_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Values of one page of a query, as in DynamoDB.
pub(super) const PAGE_BYTES_MAX: usize = 1_024 * 1_024;
/// Decoded boosts kept in memory for lookups, about 30 MB of them, more if few share an area; those not used of
/// late go first.
pub(super) const BOOSTS_REMEMBERED_MAX: usize = 100_000;
/// Well below the usual limit of 1,024 open files, which connections need too.
pub(super) const OPEN_TABLES_MAX: usize = 256;
