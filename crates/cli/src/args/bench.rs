//! What `saltern bench` is asked.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{BoostsArgs, RedisBoostsArgs, partitions};

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Appends over HTTP against a no-op endpoint, and the store alone against a plain file
    #[command(after_help = "Example:\n  saltern bench append --connections 64 --seconds 1 --runs 3")]
    Append(AppendArgs),
    /// An archive pass against copying the same bytes, and archived pages against pages of rows
    #[command(after_help = "Example:\n  saltern bench archive --conversations 20 --seconds 1 --runs 3")]
    Archive(ArchiveBenchArgs),
    /// Pages of history over HTTP against a no-op endpoint
    #[command(after_help = "Example:\n  saltern bench history --conversations 100 --seconds 1 --runs 3")]
    History(HistoryArgs),
    /// Millions of messages in many conversations: the rate over time, and memory
    #[command(after_help = "Example:\n  saltern bench volume --messages 1000000 --conversations 10000")]
    Volume(VolumeArgs),
    /// One hot conversation under partition limits, beside other designs
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
    /// Counts calls and units of appends and pages, at one partition and at five, as DynamoDB itself reports them. Without
    /// --endpoint it starts DynamoDB Local from the folder that SALTERN_DYNAMODB_LOCAL names (scripts/dynamodb-local
    /// fetches it).
    #[cfg(feature = "cloud")]
    #[command(after_help = "Example:\n  SALTERN_DYNAMODB_LOCAL=$(scripts/dynamodb-local) saltern bench requests")]
    Requests(RequestsArgs),
    /// Searches for boosted partners, beside earlier designs, Redis and a map in memory
    ///
    /// A market of partners that are boosted everywhere, and searches that each know 50 of them. Counts: what a search reads
    /// and an event writes. Latency: without HTTP, on the embedded store and, in a binary with the cloud mode, on
    /// DynamoDB. Http: the server, against a no-op endpoint and against the same lookup through Redis.
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

#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveBenchArgs {
    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
    /// Conversations that a pass moves
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) conversations: u32,
    /// Messages of each
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(21..=1_000_000))]
    pub(crate) messages: u32,
}

#[derive(Debug, Clone, Args)]
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

#[derive(Debug, Clone, Args)]
pub(crate) struct ScratchArgs {
    /// Bytes of content per message
    #[arg(long, default_value_t = 100, value_name = "BYTES",
          value_parser = clap::value_parser!(u32).range(..=saltern_core::limits::CONTENT_BYTES_MAX as i64))]
    pub(crate) content_bytes: u32,
    /// Folder for the temporary data folder; use a real disk [default: ./target, else the working folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// Client connections, one measurement each
    #[arg(long, value_delimiter = ',', default_values_t = [64, 256], value_parser = clap::value_parser!(u32).range(1..=4_096))]
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
    #[arg(long, value_delimiter = ',', default_values_t = [64], value_parser = clap::value_parser!(u32).range(1..=4_096))]
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
    /// Folder for the temporary data folder; use a real disk [default: ./target, else the working folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON object at the end
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
    /// Print one JSON object at the end
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
    /// Print one JSON object at the end
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
