use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct BoostsArgs {
    /// Measure this part alone
    #[arg(long, value_name = "PART")]
    pub(crate) only: Option<BoostsPart>,
    /// Partners of the market, all of them boosted everywhere at any time
    #[arg(long, default_value_t = 11_000, value_parser = clap::value_parser!(u32).range(50..=1_000_000))]
    pub(crate) partners: u32,
    /// Districts of the market; each partner serves 15 of them
    #[arg(long, default_value_t = 3_000, value_parser = clap::value_parser!(u32).range(15..=5_000))]
    pub(crate) districts: u32,
    /// Partners that serve all districts, in the second measurement of the expansion manifest
    #[arg(long, default_value_t = 110, value_name = "PARTNERS")]
    pub(crate) wide: u32,
    /// Latency: concurrent clients, one measurement each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64], value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) clients: Vec<u32>,
    /// Http: client connections
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pub(crate) connections: u32,
    /// Interleaved runs of what is timed; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// Seconds of load per run and side
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Count and time on DynamoDB too, at this address; needs a binary built with --features cloud
    #[arg(long, value_name = "ENDPOINT")]
    pub(crate) dynamodb: Option<String>,
    /// Folder for the temporary data folder; use a real disk [default: ./target, else the working folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// A part of `bench boosts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BoostsPart {
    Counts,
    Latency,
    Http,
}

#[derive(Debug, Args)]
pub(crate) struct RedisBoostsArgs {
    #[arg(long)]
    pub(crate) redis_port: u16,
}
