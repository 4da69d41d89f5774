//! What people type, and what `--help` teaches them.

mod bench;
mod boosts;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

pub(crate) use self::bench::*;
pub(crate) use self::boosts::{BoostsArgs, BoostsPart, RedisBoostsArgs};
use crate::config::LogFormat;

/// The API key of client commands.
pub(crate) const KEY_ENV: &str = "SALTERN_KEY";

const ABOUT: &str = "Saltern stores chat histories and answers exact lookups for services that run into DynamoDB's limits. It spreads a busy conversation over as many \
     partitions as its traffic needs, gives every message one number in one order, and never turns a retry into a second message.";

#[derive(Debug, Parser)]
#[command(name = "saltern", version, about = ABOUT, max_term_width = 120, after_help = SESSION)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const SESSION: &str = r#"A first session:
  saltern serve &
  curl --json '{"message_id":"m1","sender_id":"alice","content":"hey"}' \
       http://127.0.0.1:8080/v1/conversations/tea/messages
  curl http://127.0.0.1:8080/v1/conversations/tea/messages

Each command explains itself: saltern serve --help. The server describes its HTTP API at /openapi.json.

Exit status: 0 done, 1 failed (one line on standard error says why), 2 wrong usage."#;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service
    ///
    /// Runs the service over an embedded store in a folder, or, with mode = "cloud", over DynamoDB and Redis. It prints one
    /// line on standard output when it is ready; logs go to standard error (SALTERN_LOG sets the filter, as in
    /// SALTERN_LOG=debug). SIGINT and SIGTERM stop it: requests in flight end first.
    #[command(after_help = "Example:\n  saltern serve --listen 127.0.0.1:8080 --data ./saltern-data")]
    Serve(ConfigArgs),
    /// Create the DynamoDB tables of the cloud mode
    ///
    /// Creates the tables that the configuration names, with on-demand billing, and waits until they are active. It is safe
    /// to repeat. It needs a binary built with --features cloud, and mode = "cloud".
    #[command(after_help = "Examples:\n  SALTERN_MODE=cloud saltern init\n  \
                            saltern init --warm-writes 20000    warm tables, for a launch")]
    Init(InitArgs),
    /// Watch one conversation outgrow its partition, and Saltern spread it
    ///
    /// One conversation takes 200, 900, 2,200 and 4,000 writes per second over partitions that take 1,000 each, as
    /// DynamoDB's do. The command shows live how many partitions the conversation is spread over and what each of them
    /// takes, reads every message back, and ends with a summary beside the figures of the design. It creates a temporary
    /// store of its own and removes it at the end.
    #[command(after_help = "Examples:\n  saltern ramp\n  saltern ramp --fixed-n 1    the same without salting\n  \
                            saltern ramp --peak 8000 --physical-partitions 50    salts that share a partition")]
    Ramp(RampArgs),
    /// Load campaign events from a file or from Kafka
    #[command(subcommand)]
    #[command(after_help = "Example:\n  saltern campaigns load events.ndjson.gz --url http://127.0.0.1:8080")]
    Campaigns(CampaignsCommand),
    /// Show a conversation's layout
    ///
    /// Shows a conversation's head, epochs, partitions and recent gaps. With --url it asks a running server, and an API key
    /// needs the scope `messages:read`. Without, it opens the data folder itself, which works only while no server has it
    /// open.
    #[command(after_help = "Example:\n  saltern inspect tea --url http://127.0.0.1:8080")]
    Inspect(InspectArgs),
    /// Check every stored message against the promises
    ///
    /// Reads every row and checks that it is where its conversation's layout says, that its content matches its digest, that
    /// its message_id is claimed for it and for nothing else, that no row is missing below `resolved`, and that archived
    /// content is where its row says, unchanged. It prints one line for each fault, and exits with 1 if there are any. It
    /// changes no row. With --url it asks a running server, and an API key needs the scope `admin`. Without, it opens the
    /// data folder itself, which works only while no server has it open. In cloud mode it reads the tables while servers
    /// run; DynamoDB charges for each row more than twice.
    #[command(
        after_help = "Examples:\n  saltern verify --data ./saltern-data\n  saltern verify --url http://127.0.0.1:8080"
    )]
    Verify(VerifyArgs),
    /// Move old contents to the archive
    ///
    /// Moves the contents of messages older than archive.after_days (90) to object storage: S3, or a folder. Rows stay, and
    /// clients see no difference but a little latency. A pass reads only conversations that have something due. It can be
    /// stopped at any time, with Ctrl-C or kill -9; the next one resumes there. Servers may run meanwhile, and run passes
    /// themselves every archive.every_s seconds. With --url it asks a running server, and an API key needs the scope
    /// `admin`. Without, it opens the tables, or the data folder, which works only while no server has it open.
    #[command(after_help = "Examples:\n  saltern archive --dry-run    what a pass would move, and save\n  \
                            saltern archive --older-than 30d --rate 5000 --url http://127.0.0.1:8080")]
    Archive(ArchiveArgs),
    /// Measure Saltern beside a peer in the same run
    ///
    /// Each measurement is a ratio against a peer in the same run, so that it means something on your machine too. A binary
    /// built with --features cloud has two more: tickets and requests.
    #[command(subcommand)]
    #[command(after_help = "Example:\n  saltern bench append --connections 64,256 --runs 5")]
    Bench(BenchCommand),
    /// Check the configuration
    #[command(subcommand)]
    #[command(after_help = "Example:\n  saltern config check")]
    Config(ConfigCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CampaignsCommand {
    /// Load a file of campaign events, one JSON object per line
    ///
    /// Reads plain, gzip and Zstandard files and recognises them by their content. With --url it sends to a running server,
    /// and an API key needs the scope `campaigns:write`. Without, it opens the data folder itself, which works only while no
    /// server has it open. Events may come in any order and more than once. An interrupted load resumes when the command is
    /// repeated: FILE.progress holds its position until it is done. Rejected events become dead letters, and the exit
    /// status is 1.
    #[command(after_help = "Example:\n  saltern campaigns load events.ndjson.gz --url http://127.0.0.1:8080")]
    Load(LoadArgs),
    /// Read campaign events from Kafka, one JSON object per message
    ///
    /// Runs as a member of a consumer group until SIGINT or SIGTERM. With --url it writes to a running server, and an API
    /// key needs the scope `campaigns:write`; otherwise it writes to the tables or the folder that the configuration names.
    /// It commits an offset only after all events before it have been written, so a crash loses nothing, and events that
    /// are read twice change nothing. It works on partitions in parallel, on each in order. A message that is not an event
    /// becomes a dead letter. If the store or the server cannot be reached, it waits. It needs a binary built with
    /// --features kafka (or cloud).
    #[command(
        after_help = "Examples:\n  saltern campaigns consume --brokers 127.0.0.1:9092 --topic campaign-events \\\n    \
                            --url http://127.0.0.1:8080 --metrics 127.0.0.1:9464\n  \
                            SALTERN_MODE=cloud saltern campaigns consume --brokers broker:9093 --topic campaign-events \\\n    \
                            --kafka-config ./kafka.properties"
    )]
    Consume(ConsumeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// The file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Start from the beginning, even if an earlier load was interrupted
    #[arg(long)]
    pub(crate) restart: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// Bootstrap brokers, as in broker1:9092,broker2:9092
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) brokers: String,
    /// Topic to read; may be given more than once
    #[arg(long = "topic", value_name = "TOPIC", required = true)]
    pub(crate) topics: Vec<String>,
    /// Consumer group; its members share the partitions
    #[arg(long, default_value = "saltern-campaigns", value_name = "GROUP")]
    pub(crate) group: String,
    /// Setting of the Kafka client (librdkafka), as in security.protocol=ssl; may be given more than once
    #[arg(long = "kafka-option", value_name = "NAME=VALUE")]
    pub(crate) kafka_options: Vec<String>,
    /// File of such settings, one per line: the place for passwords
    #[arg(long, value_name = "FILE")]
    pub(crate) kafka_config: Option<PathBuf>,
    /// Serve /metrics at this address; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Format of log lines [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Archive messages older than this, as in 90d, 12h or 0s [default: archive.after_days]
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Duration>,
    /// Move at most this many messages per second
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// Only report what would move, and what it would save
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Check all objects for orphans, not only those written since the last sweep
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) sweep_all: bool,
    /// Then compact the embedded store, so that archived and erased contents leave its files
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) compact: bool,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// A number and its unit.
fn age(text: &str) -> Result<Duration, String> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let parsed = units.into_iter().find_map(|(unit, seconds)| {
        let number: u32 = text.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(u64::from(number) * seconds))
    });
    parsed.ok_or_else(|| "must be a whole number with s, m, h or d, as in 90d".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Print JSON objects: one for each fault, and a summary at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// A running server, or the data itself.
#[derive(Debug, Default, Args)]
pub(crate) struct TargetArgs {
    /// Ask the server at this address
    #[arg(long, conflicts_with_all = ["data", "config"])]
    pub(crate) url: Option<String>,
    /// API key, if the server requires one
    #[arg(long, env = KEY_ENV, hide_env_values = true, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Open this data folder [default: the one that `saltern serve` would use here]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file that names the data folder, or the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Validate the configuration and print what is in effect
    ///
    /// Prints the effective configuration as TOML, each value with its source. Values come from saltern.toml, overridden by
    /// variables (limits.appends_max is SALTERN_LIMITS_APPENDS_MAX), overridden by flags.
    #[command(after_help = "Example:\n  SALTERN_LIMITS_READS_MAX=200 saltern config check --config ./saltern.toml")]
    Check(ConfigArgs),
}

#[derive(Debug, Default, Args)]
pub(crate) struct ConfigArgs {
    /// Configuration file [default: saltern.toml in the working folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Folder of the embedded store, created if absent [default: ./saltern-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Format of log lines [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Emulate DynamoDB's partition limits, to try your traffic against them
    ///
    /// Partition keys are hashed onto emulate.physical_partitions (250), each of which takes 1,000 write units and 3,000
    /// read units per second and saves up emulate.burst_s (300) seconds of unused capacity. Calls beyond that are throttled
    /// and retried until the deadline.
    #[arg(long)]
    pub(crate) emulate_limits: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Write units per second that the tables must take from the start (AWS charges for it once)
    #[arg(long, value_name = "UNITS", default_value_t = 0, hide_default_value = true)]
    pub(crate) warm_writes: u32,
    /// Read units per second that the tables must serve from the start (AWS charges for it once)
    #[arg(long, value_name = "UNITS", default_value_t = 0, hide_default_value = true)]
    pub(crate) warm_reads: u32,
}

#[derive(Debug, Args)]
pub(crate) struct RampArgs {
    /// Total seconds, a quarter for each step
    #[arg(long, default_value_t = 40, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(8..=86_400))]
    pub(crate) duration: u32,
    /// Writes per second of the last step; the other steps scale with it
    #[arg(long, default_value_t = 4_000, value_name = "WCU", value_parser = clap::value_parser!(u32).range(20..=100_000))]
    pub(crate) peak: u32,
    /// Spread over this many partitions, whatever the traffic; 1 means no salts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(saltern_core::limits::N_MAX)))]
    pub(crate) fixed_n: Option<u16>,
    /// Physical partitions of the emulated table; with few, salts share one
    #[arg(long, default_value_t = default_partitions(), value_name = "P", value_parser = partitions)]
    pub(crate) physical_partitions: NonZeroU32,
    /// Seconds of unused capacity that a partition may save up; DynamoDB does not guarantee its 300
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub(crate) burst: u32,
    /// Folder for the temporary data folder [default: ./target, else the working folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// Each takes some memory.
fn partitions(text: &str) -> Result<NonZeroU32, String> {
    let max = crate::config::PHYSICAL_PARTITIONS_MAX;
    let parsed = text.parse().ok().filter(|partitions: &NonZeroU32| partitions.get() <= max);
    parsed.ok_or_else(|| format!("must be a whole number from 1 to {max}"))
}

fn default_partitions() -> NonZeroU32 {
    NonZeroU32::new(crate::config::PHYSICAL_PARTITIONS).unwrap_or(NonZeroU32::MIN)
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The conversation's id, as clients write it
    pub(crate) conversation: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_holds() {
        Cli::command().debug_assert();
    }
}
