//! What people type, and what `--help` teaches them.

mod boosts;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::boosts::{BoostsArgs, BoostsPart, RedisBoostsArgs};
use crate::config::LogFormat;

/// The API key of client commands.
pub(crate) const KEY_ENV: &str = "SALTERN_KEY";

const ABOUT: &str = "Saltern keeps conversations: append logs with a dense order, idempotent appends and stable pages of history. \
     It spreads a conversation over as many partitions as its traffic needs, and clients never see them.";

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

Exit status: 0 done, 1 failed (one line on standard error says why), 2 wrong usage."#;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the service
    ///
    /// Run the service over an embedded store in a folder. Prints one line on standard output when it is ready; logs go
    /// to standard error (SALTERN_LOG sets the filter, e.g. SALTERN_LOG=debug). SIGINT and SIGTERM end it gracefully.
    #[command(after_help = "Example:\n  saltern serve --listen 127.0.0.1:8080 --data ./saltern-data")]
    Serve(ConfigArgs),
    /// Create the tables of the cloud mode
    ///
    /// Creates the DynamoDB tables that the configuration names, billed by use, and waits until they can be used. Safe to
    /// repeat. Needs a binary built with --features cloud, and mode = "cloud".
    #[command(after_help = "Examples:\n  SALTERN_MODE=cloud saltern init\n  \
                            saltern init --warm-writes 20000    ready for a launch, not only after its first hour")]
    Init(InitArgs),
    /// See one conversation outgrow its partition, and Saltern spread it
    ///
    /// One conversation takes 200, 900, 2,200 and 4,000 writes per second over partitions that take 1,000 each, as
    /// DynamoDB's do. Shows live how many partitions it is spread over and what each of them takes, then a summary beside
    /// the figures that the design was made for, and reads everything back. Brings its own store, which is gone afterwards.
    #[command(after_help = "Examples:\n  saltern ramp\n  saltern ramp --fixed-n 1    what happens without salting\n  \
                            saltern ramp --peak 8000 --physical-partitions 50    salts that meet on one partition")]
    Ramp(RampArgs),
    /// Feed campaign events
    #[command(subcommand)]
    #[command(after_help = "Example:\n  saltern campaigns load events.ndjson.gz --url http://127.0.0.1:8080")]
    Campaigns(CampaignsCommand),
    /// Show how a conversation is laid out
    ///
    /// Show a conversation's head, layout, epochs, partitions and recent gaps. Asks a running server with --url;
    /// otherwise opens the data folder itself, which works only while no server holds it. An API key needs the scope
    /// `messages:read`.
    #[command(after_help = "Example:\n  saltern inspect tea --url http://127.0.0.1:8080")]
    Inspect(InspectArgs),
    /// Check all that is kept of conversations against what is promised
    ///
    /// Looks at every row: is it where its conversation's layout says, does its content match its digest, is its message_id
    /// claimed for it and nothing else, is nothing missing below what is known to be complete? Prints one line for each
    /// fault; exit status 1 if there are any. Changes no row. Opens the data folder, which works only while no server holds
    /// it; in cloud mode it reads the tables, servers or not, and DynamoDB charges for every row, more than twice.
    #[command(after_help = "Example:\n  saltern verify --data ./saltern-data")]
    Verify(VerifyArgs),
    /// Measure, as a ratio against a peer in the same run
    ///
    /// Each measurement runs against a peer in the same run. A binary built with --features cloud has two more: tickets
    /// and requests.
    #[command(subcommand)]
    #[command(after_help = "Example:\n  saltern bench append --connections 64,256 --runs 5")]
    Bench(BenchCommand),
    /// Look at the configuration
    #[command(subcommand)]
    #[command(after_help = "Example:\n  saltern config check")]
    Config(ConfigCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CampaignsCommand {
    /// Load a file of campaign events, one JSON object per line
    ///
    /// Reads plain, gzip and Zstandard files, told apart by their content. Sends to a running server with --url; otherwise
    /// opens the data folder itself, which works only while no server holds it. Events may come in any order and more
    /// than once. A load that was interrupted goes on where it was when it is started again: how far it came is kept in
    /// FILE.progress until it is done. Exit status 1 if events were rejected; these are dead letters then. An API key needs
    /// the scope `campaigns:write`.
    #[command(after_help = "Example:\n  saltern campaigns load events.ndjson.gz --url http://127.0.0.1:8080")]
    Load(LoadArgs),
    /// Read campaign events from Kafka, one JSON object per message
    ///
    /// Runs as a member of a consumer group until SIGINT or SIGTERM, and writes to a running server with --url; otherwise
    /// to the tables or the folder that the configuration names. An offset is committed only when all before it has been
    /// written, so nothing is lost however it ends; what is read again changes nothing. Partitions are worked on side by
    /// side, each in its order. A message that is no event becomes a dead letter. A store or server that is away is waited
    /// for. Needs a binary built with --features kafka (or cloud). An API key needs the scope `campaigns:write`.
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
    /// Begin anew, whatever an earlier load has done
    #[arg(long)]
    pub(crate) restart: bool,
    /// Print one JSON object in the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConsumeArgs {
    /// Kafka brokers to begin with, as in broker1:9092,broker2:9092
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
    /// How log lines look [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Open this data folder [default: the one that `saltern serve` would use here]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file that names the data folder, or the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON objects: one for each fault, and a summary in the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// A running server, or the data itself.
#[derive(Debug, Default, Args)]
pub(crate) struct TargetArgs {
    /// Ask the server at this address
    #[arg(long, conflicts_with_all = ["data", "config"])]
    pub(crate) url: Option<String>,
    /// API key, if the server wants one
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
    /// Prints the effective configuration as TOML, each value with where it comes from. Values come from saltern.toml,
    /// overridden by variables (limits.appends_max is SALTERN_LIMITS_APPENDS_MAX), overridden by flags.
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
    /// Folder of the embedded store, made if absent [default: ./saltern-data]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// How log lines look [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Give the store DynamoDB's partition limits, to see how conversations would fare there
    ///
    /// Partition keys are hashed onto emulate.physical_partitions (250), each of which takes 1,000 write units and 3,000
    /// read units per second and saves up emulate.burst_s (300) seconds of them. What is beyond is throttled and tried
    /// again within the deadline.
    #[arg(long)]
    pub(crate) emulate_limits: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// Write units per second that the tables must be able to take at once (AWS charges for it, once)
    #[arg(long, value_name = "UNITS", default_value_t = 0, hide_default_value = true)]
    pub(crate) warm_writes: u32,
    /// Read units per second, likewise
    #[arg(long, value_name = "UNITS", default_value_t = 0, hide_default_value = true)]
    pub(crate) warm_reads: u32,
}

#[derive(Debug, Args)]
pub(crate) struct RampArgs {
    /// Seconds in all, a quarter for each step
    #[arg(long, default_value_t = 40, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(8..=86_400))]
    pub(crate) duration: u32,
    /// Writes per second of the last step; the others are scaled with it
    #[arg(long, default_value_t = 4_000, value_name = "WCU", value_parser = clap::value_parser!(u32).range(20..=100_000))]
    pub(crate) peak: u32,
    /// Spread over this many partitions, whatever the traffic; 1 is a conversation without salts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=i64::from(saltern_core::limits::N_MAX)))]
    pub(crate) fixed_n: Option<u16>,
    /// Physical partitions of the emulated table; few make salts meet
    #[arg(long, default_value_t = default_partitions(), value_name = "P", value_parser = partitions)]
    pub(crate) physical_partitions: NonZeroU32,
    /// Seconds of unused capacity that a partition may save up; DynamoDB's 300 are not guaranteed
    #[arg(long, default_value_t = 0, value_name = "SECONDS")]
    pub(crate) burst: u32,
    /// Where to make the temporary data folder [default: ./target, else the working folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON object in the end
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

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Appends over HTTP against a trivial endpoint, and the store alone against a plain file
    #[command(after_help = "Example:\n  saltern bench append --connections 64 --seconds 1 --runs 3")]
    Append(AppendArgs),
    /// Pages of history over HTTP against a trivial endpoint
    #[command(after_help = "Example:\n  saltern bench history --conversations 100 --seconds 1 --runs 3")]
    History(HistoryArgs),
    /// Many messages in many conversations: does the rate hold, does memory stay bounded?
    #[command(after_help = "Example:\n  saltern bench volume --messages 1000000 --conversations 10000")]
    Volume(VolumeArgs),
    /// One hot conversation under partition limits: Saltern beside the designs that others build
    ///
    /// Writes: one conversation at a steady rate over emulated partition limits. Reads: what a page of 20 asks of the store,
    /// and how long it takes. Hot: one conversation against many, without limits.
    #[command(after_help = "Example:\n  saltern bench partitions --only writes --physical-partitions 50 --settle 5")]
    Partitions(PartitionsArgs),
    /// Tickets from Redis against a script that only counts
    ///
    /// Clients take one ticket after the other from a redis-server that this command starts, over a connection each, and
    /// then over one that they share; the peer is a script of one HINCRBY, over as many connections of the same kind.
    #[cfg(feature = "cloud")]
    #[command(after_help = "Example:\n  saltern bench tickets --clients 50 --seconds 1 --runs 3")]
    Tickets(TicketsArgs),
    /// What an append and a page ask of DynamoDB, and what it charges
    ///
    /// Counts calls and units of appends and pages, at one partition and at five, as DynamoDB itself tells them. Without
    /// --endpoint it starts DynamoDB Local from the folder that SALTERN_DYNAMODB_LOCAL names (scripts/dynamodb-local
    /// fetches it).
    #[cfg(feature = "cloud")]
    #[command(after_help = "Example:\n  SALTERN_DYNAMODB_LOCAL=$(scripts/dynamodb-local) saltern bench requests")]
    Requests(RequestsArgs),
    /// Searches for boosted partners: Saltern beside the designs before it, Redis and a map in memory
    ///
    /// A market of partners that are boosted everywhere, and searches that each know 50 of them. Counts: what a search reads
    /// and an event writes. Latency: without HTTP, on the embedded store and, in a binary with the cloud mode, on
    /// DynamoDB. Http: the server, against a trivial endpoint and against the same lookup through Redis.
    #[command(
        after_help = "Examples:\n  saltern bench boosts\n  saltern bench boosts --only http --connections 16 --runs 3"
    )]
    Boosts(BoostsArgs),
    /// A peer of `bench boosts`: answers its requests out of Redis
    #[command(hide = true)]
    ServeRedisBoosts(RedisBoostsArgs),
    /// The peer of the HTTP measurements: answers every request with the same bytes
    #[command(hide = true)]
    ServeTrivial(TrivialArgs),
}

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// Interleaved runs; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Seconds of load per run and side
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    #[command(flatten)]
    pub(crate) scratch: ScratchArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ScratchArgs {
    /// Bytes of content per message
    #[arg(long, default_value_t = 100, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(..=saltern_core::limits::CONTENT_BYTES_MAX as i64))]
    pub(crate) content_bytes: u32,
    /// Where to make the temporary data folder; use a real disk [default: ./target, else the working folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// Client connections, one measurement each
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256])]
    pub(crate) connections: Vec<u32>,
    /// Conversations that the messages are spread over
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) conversations: u32,
    /// Concurrent writers of the measurement without HTTP; 0 leaves it out
    #[arg(long, default_value_t = 256)]
    pub(crate) writers: u32,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// Client connections, one measurement each
    #[arg(long, value_delimiter = ',', default_values_t = [64])]
    pub(crate) connections: Vec<u32>,
    /// Conversations to read from
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) conversations: u32,
    /// Messages in each conversation
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(40..))]
    pub(crate) messages: u32,
    /// How many of 100 pages in the mixed measurement are newest pages
    #[arg(long, default_value_t = 50, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(..=100))]
    pub(crate) newest: u32,
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VolumeArgs {
    /// Messages to append
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) messages: u64,
    /// Conversations that they are spread over
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) conversations: u32,
    /// Messages per request; 1 uses the endpoint for single messages
    #[arg(long, default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=saltern_core::limits::BATCH_MESSAGES_MAX as i64))]
    pub(crate) batch: u32,
    /// Client connections
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    #[command(flatten)]
    pub(crate) scratch: ScratchArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PartitionsArgs {
    /// Measure this part alone
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<Part>,
    /// Writes: WCU per second offered to the one conversation
    #[arg(long, default_value_t = 4_000, value_name = "WCU", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rate: u32,
    /// Writes: seconds at that rate before anything is measured
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    pub(crate) settle: u32,
    /// Writes: seconds measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Writes: physical partitions of the emulated store, one measurement each
    #[arg(long, value_name = "P", value_delimiter = ',', value_parser = partitions,
          default_values_t = [10, 50, 250].map(|count| NonZeroU32::MIN.saturating_add(count - 1)))]
    pub(crate) physical_partitions: Vec<NonZeroU32>,
    /// Writes: name of the conversation, which decides whether salts meet; of hot-0, two of five do on 10 and on 50
    #[arg(long, default_value = "hot", value_name = "ID")]
    pub(crate) conversation: String,
    /// Reads: pages per measurement
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pages: u32,
    /// Reads: messages in each conversation
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(40..=1_000_000))]
    pub(crate) messages: u32,
    /// Reads and hot: interleaved runs of what is timed; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Hot: concurrent writers
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) writers: u32,
    /// Hot: seconds of load per run and side
    #[arg(long, default_value_t = 3, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) hot_seconds: u32,
    /// Where to make the temporary data folder; use a real disk [default: ./target, else the working folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of `bench partitions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Writes,
    Reads,
    Hot,
}

#[cfg(feature = "cloud")]
#[derive(Debug, Args)]
pub(crate) struct TicketsArgs {
    /// Clients that each take one ticket at a time
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) clients: u32,
    /// Conversations that the tickets are for, chosen at random
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) conversations: u32,
    /// Use the server at this address, and leave keys there that expire [default: a redis-server of its own]
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// Interleaved runs; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Seconds of load per run and side
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(feature = "cloud")]
#[derive(Debug, Args)]
pub(crate) struct RequestsArgs {
    /// Use the DynamoDB at this address, as in http://127.0.0.1:8000 [default: DynamoDB Local of its own]
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Table to use there, made if absent, and left behind
    #[arg(long, default_value = "saltern-bench", value_name = "NAME")]
    pub(crate) table: String,
    /// Messages appended one by one, and as many again in batches of 10, at each n
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(100..=100_000))]
    pub(crate) messages: u32,
    /// Pages of 20 of each kind, at each n
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) pages: u32,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TrivialArgs {
    #[arg(long)]
    pub(crate) status: u16,
    #[arg(long)]
    pub(crate) response_bytes: usize,
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
