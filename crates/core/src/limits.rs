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
/// The same before escapes are taken for the characters that they stand for: `\u0000` is six bytes for one.
pub const BODY_RAW_BYTES_MAX: usize = 2 * BODY_BYTES_MAX;
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

/// Messages whose content goes into one object of the archive.
pub const SEGMENT_MESSAGES_MAX: usize = 512;
/// Bytes of content that fill such an object.
pub const SEGMENT_BYTES: usize = 8 * 1024 * 1024;
/// Messages that are compressed together, and so read together.
pub const BLOCK_MESSAGES_MAX: usize = 64;
/// Bytes of content that fill such a block.
pub const BLOCK_BYTES: usize = 16 * 1024;

/// Areas of one campaign event, active and ended ones together.
pub const EVENT_AREAS_MAX: usize = 5_000;
/// Partners that one lookup may ask about.
pub const LOOKUP_PARTNERS_MAX: usize = 1_000;
/// Rows that one batch read may name: DynamoDB's own limit.
pub const BOOST_BATCH_MAX: usize = 100;
/// How far ahead of the server's clock an event may be dated.
pub const EVENT_AHEAD_MAX_MS: i64 = 5 * 60 * 1_000;
/// The year 2000: no campaign is older, and seconds taken for milliseconds lie before it.
pub const CAMPAIGN_TIME_MIN_MS: i64 = 946_684_800_000;
/// Slots that a market may define.
pub const MARKET_SLOTS_MAX: usize = 100;
/// The name of a slot, in bytes of UTF-8.
pub const SLOT_NAME_BYTES_MAX: usize = 64;
/// Dead letters kept; the oldest go first.
pub const DEAD_LETTERS_MAX: u64 = 10_000;
/// What is kept of a rejected event's text, far below DynamoDB's 400 KB for an item.
pub const DEAD_LETTER_BYTES_MAX: usize = 256 * 1024;
/// Text of dead letters that one call may look through for those that it asks for; it says where the next one goes on.
pub const DEAD_LETTERS_SEARCHED_BYTES: usize = 64 * 1024 * 1024;
/// Text of dead letters that one page may hold and go on to the next: what DynamoDB reads at a time.
pub const DEAD_LETTERS_PAGE_BYTES: usize = 1024 * 1024;

/// DynamoDB's limit on a partition key, which bounds what `enc` may blow ids up to.
pub const PARTITION_KEY_BYTES_MAX: usize = 2_048;

/// `enc` turns one byte into at most three.
const ENC_GROWTH: usize = 3;
const _: () = assert!(2 * ENC_GROWTH * ID_BYTES_MAX + "#id#".len() <= PARTITION_KEY_BYTES_MAX);
/// DynamoDB's limit on a sort key that is a text.
const SORT_KEY_BYTES_MAX: usize = 1_024;
const _: () = assert!(ENC_GROWTH * ID_BYTES_MAX <= SORT_KEY_BYTES_MAX);
const _: () = assert!(CONTENT_BYTES_MAX * 6 > BODY_BYTES_MAX && CONTENT_BYTES_MAX < BODY_BYTES_MAX);
/// Every message within the limits fits into a body, however it is escaped.
const _: () = assert!((CONTENT_BYTES_MAX + 3 * ID_BYTES_MAX + TIMESTAMP_BYTES_MAX) * 6 + 1_024 <= BODY_RAW_BYTES_MAX);
const _: () = assert!(BODY_RAW_BYTES_MAX <= BULK_BODY_BYTES_MAX);
const _: () = assert!(PAGE_LIMIT_DEFAULT <= PAGE_LIMIT_MAX);
const _: () = assert!(PAGE_LIMIT_MAX as u64 <= PAGE_LOOKED_AT_MAX);
const _: () = assert!(LEASE_MIN < LEASE_MAX && BATCH_MESSAGES_MAX as u64 <= LEASE_MAX);
const _: () = assert!(BLOCK_MESSAGES_MAX <= SEGMENT_MESSAGES_MAX && BLOCK_BYTES < SEGMENT_BYTES);
const _: () = assert!(PAGE_LIMIT_DEFAULT <= BLOCK_MESSAGES_MAX);
