//! The `saltern` command.

mod archive;
mod args;
mod bench;
mod campaigns;
mod config;
mod disk_watch;
mod histogram;
mod http;
mod inspect;
mod log;
mod offer;
mod open_files;
mod out;
mod printable;
mod ramp;
mod scratch;
mod serve;
mod service;
mod status;
mod stop;
mod table;
mod time_zones;
mod verify;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser as _;

use crate::args::{BenchCommand, CampaignsCommand, Cli, Command, ConfigCommand};
use crate::config::Config;

/// Requests are parsed on one thread and freed on another, which the system's allocator is slow at: with it, a quarter of
/// the time of an append went into `malloc` and `free`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(e) => return told(&e),
    };
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            out::note(format_args!("error: {}", one_line(&e)));
            ExitCode::FAILURE
        }
    }
}

/// Help and usage, on standard output or standard error.
fn told(text: &clap::Error) -> ExitCode {
    match (text.print(), text.exit_code()) {
        (Ok(()), code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        (Err(_), 0) => ExitCode::FAILURE,
        (Err(_), _) => ExitCode::from(2),
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Serve(args) => {
            let config = Config::load(&args)?;
            log::start(config.log_format.value)?;
            runtime()?.block_on(serve::serve(&config))
        }
        Command::Init(args) => runtime()?.block_on(service::init(&Config::load(&args.config)?, &args)),
        Command::Ramp(args) => runtime()?.block_on(ramp::ramp(&args)),
        Command::Campaigns(CampaignsCommand::Load(args)) => runtime()?.block_on(campaigns::load(&args)),
        Command::Campaigns(CampaignsCommand::Consume(args)) => {
            log::start(args.log_format.unwrap_or_default())?;
            runtime()?.block_on(campaigns::consume(&args))
        }
        Command::Archive(args) => runtime()?.block_on(archive::archive(&args)),
        Command::Verify(args) => runtime()?.block_on(verify::verify(&args)),
        Command::Inspect(args) => runtime()?.block_on(inspect::inspect(&args)),
        Command::Bench(BenchCommand::ServeTrivial(args)) => runtime()?.block_on(bench::serve_trivial(&args)),
        Command::Bench(BenchCommand::ServeRedisBoosts(args)) => runtime()?.block_on(bench::serve_redis_boosts(&args)),
        Command::Bench(command) => runtime()?.block_on(bench::bench(&command)),
        Command::Config(ConfigCommand::Check(args)) => {
            let config = Config::load(&args)?.into_toml();
            out::print(format_args!("{config}\n# Time zones: {}\n", time_zones::newest()))
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start the runtime")
}

/// A failure and its causes as one line. Causes that the text before already tells are left out.
fn one_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain() {
        let text = cause.to_string();
        if line.is_empty() {
            line = text;
        } else if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
    }
    line
}
