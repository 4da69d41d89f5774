use std::time::Duration;

use saltern_core::limits::DEAD_LETTERS_MAX;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Which tables, where, and how long to wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DynamoOptions {
    pub messages_table: String,
    pub campaigns_table: String,
    /// Address of a compatible server, as in `http://127.0.0.1:8000`. Without it the address follows from the region.
    pub endpoint: Option<String>,
    /// Without it the usual chain decides: environment, profile, the machine's own.
    pub region: Option<String>,
    /// How long the claim of a message_id is kept, and with it the promise that a retry is the same message (I2).
    pub claim_ttl: Duration,
    /// Time of one call, from its first byte to its answer.
    pub call_timeout: Duration,
    /// Dead letters kept; the oldest go first. Always the same for one table.
    pub dead_letters_max: u64,
}

impl Default for DynamoOptions {
    fn default() -> Self {
        Self {
            messages_table: "saltern-messages".into(),
            campaigns_table: "saltern-campaigns".into(),
            endpoint: None,
            region: None,
            claim_ttl: 7 * DAY,
            call_timeout: Duration::from_secs(2),
            dead_letters_max: DEAD_LETTERS_MAX,
        }
    }
}

/// Connecting is over much sooner than a call, or will not be: the rest of the time is better spent on another try.
pub(super) const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(1);
/// DynamoDB's limit on the keys of one BatchGetItem.
pub(super) const BATCH_KEYS_MAX: usize = 100;
/// How often keys are asked for that a batch left out, with a pause that doubles in between.
pub(super) const BATCH_ROUNDS_MAX: u32 = 5;
pub(super) const BATCH_FIRST_PAUSE: Duration = Duration::from_millis(10);
/// How long a new table may take until it can be used.
pub(super) const TABLE_WAIT_MAX: Duration = Duration::from_secs(120);
pub(super) const TABLE_WAIT_STEP: Duration = Duration::from_millis(250);
