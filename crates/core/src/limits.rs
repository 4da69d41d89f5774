//! Every limit of Saltern, in one place, with the relations between them checked at compile time.

/// Consecutive seq_nos that share a salt.
pub const STRIPE: u64 = 32;

/// seq_nos are below 2^53, so that every JSON reader holds them exactly.
pub const SEQ_NO_END: u64 = 1 << 53;

/// Conversation, message and participant ids, in bytes of UTF-8.
pub const ID_BYTES_MAX: usize = 256;
/// Message content, in bytes of UTF-8.
pub const CONTENT_BYTES_MAX: usize = 64 * 1024;
/// The client's display timestamp, in bytes of UTF-8.
pub const TIMESTAMP_BYTES_MAX: usize = 64;

/// Body of an ordinary request.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Body of a batch or of campaign events.
pub const BULK_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Messages in one batch.
pub const BATCH_MESSAGES_MAX: usize = 500;

pub const PAGE_LIMIT_DEFAULT: usize = 20;
pub const PAGE_LIMIT_MAX: usize = 200;
/// seq_nos one page may look at: a page inside a desert of voids comes back short, with its cursor.
pub const PAGE_LOOKED_AT_MAX: u64 = 4_096;

/// Salts of one conversation.
pub const N_MAX: u16 = 256;
/// Epochs of one conversation; beyond it N only grows, so a layout holds at most this and `N_MAX` more.
pub const EPOCHS_MAX: usize = 512;

/// What one salt is planned to carry: DynamoDB's 1,000 WCU/s less a fifth of headroom.
pub const TARGET_WCU_PER_S: f64 = 800.0;

pub const LEASE_MIN: u64 = 8;
pub const LEASE_MAX: u64 = 4_096;

/// Runs of voids shorter than this are read row by row.
pub const VOID_RUN_MIN: u64 = 64;
/// Void runs that a control record remembers; the shortest go first.
pub const VOID_RUNS_MAX: usize = 64;

/// DynamoDB's limit on a partition key, which bounds what `enc` may blow ids up to.
pub const PARTITION_KEY_BYTES_MAX: usize = 2_048;

/// `enc` turns one byte into at most three.
const ENC_GROWTH: usize = 3;
const _: () = assert!(2 * ENC_GROWTH * ID_BYTES_MAX + "#id#".len() <= PARTITION_KEY_BYTES_MAX);
const _: () = assert!(CONTENT_BYTES_MAX * 6 > BODY_BYTES_MAX && CONTENT_BYTES_MAX < BODY_BYTES_MAX);
const _: () = assert!(PAGE_LIMIT_DEFAULT <= PAGE_LIMIT_MAX);
const _: () = assert!(PAGE_LIMIT_MAX as u64 <= PAGE_LOOKED_AT_MAX);
const _: () = assert!(LEASE_MIN < LEASE_MAX && BATCH_MESSAGES_MAX as u64 <= LEASE_MAX);
