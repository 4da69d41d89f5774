//! `saltern campaigns`: events from a file or from Kafka, to a server or into a store.

mod checkpoint;
#[cfg(feature = "kafka")]
mod consume;
mod progress;
mod source;
mod target;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use tokio::time::sleep;

use self::checkpoint::Checkpoint;
#[cfg(feature = "kafka")]
pub(crate) use self::consume::consume;
use self::progress::Progress;
use self::source::{Piece, Source};
use self::target::{Done, Target};
use crate::args::LoadArgs;
use crate::out;
use crate::table::thousands;

/// Pieces under way at once. Order makes no difference to events, so they may overtake one another.
const PIECES_AT_ONCE: usize = 4;
/// Rejections that are shown; all of them are dead letters.
const SHOWN_MAX: usize = 10;
const SAVE_EVERY: Duration = Duration::from_secs(1);
/// A server or store that is away is tried again this often, with a pause in between.
const ATTEMPTS_MAX: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

/// What has become of the events so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, serde::Deserialize)]
struct Counts {
    applied: u64,
    stale: u64,
    rejected: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.applied += other.applied;
        self.stale += other.stale;
        self.rejected += other.rejected;
    }
}

#[derive(Serialize)]
struct Summary {
    #[serde(flatten)]
    counts: Counts,
    lines: u64,
    seconds: f64,
}

pub(crate) async fn load(args: &LoadArgs) -> Result<()> {
    let source = Source::open(&args.file)?;
    let target = Target::open(&args.target).await?;
    let loaded = load_into(args, source, &target).await;
    target.close().await;
    let summary = loaded?;
    if args.json {
        out::line(serde_json::to_string(&summary)?)?;
    } else {
        print_summary(&summary)?;
    }
    if summary.counts.rejected > 0 {
        bail!(
            "{} events were rejected; they are dead letters now, and GET /v1/dead-letters says why",
            summary.counts.rejected
        );
    }
    Ok(())
}

async fn load_into(args: &LoadArgs, source: Source, target: &Target) -> Result<Summary> {
    let mut checkpoint = Checkpoint::of(&args.file, &target.name())?;
    if !args.restart && checkpoint.resume()? {
        out::note(format_args!(
            "resuming after line {}, where an earlier load stopped",
            thousands(checkpoint.lines as f64)
        ));
    }
    let (began, first_line) = (Instant::now(), checkpoint.lines);
    let mut progress = Progress::new(source.meter(), first_line);
    let pieces = source.pieces(first_line)?;
    let send = |piece: Result<Piece>| async move {
        let piece = piece?;
        let done = send_patiently(target, &piece).await.with_context(|| format!("at line {}", piece.first_line + 1))?;
        Ok::<_, anyhow::Error>((piece, done))
    };
    let pieces = stream::unfold(pieces, |mut pieces| async { pieces.recv().await.map(|piece| (piece, pieces)) });
    let mut sent = std::pin::pin!(pieces.map(send).buffered(PIECES_AT_ONCE));
    let (mut shown, mut saved) = (0, Instant::now());
    let outcome = loop {
        let (piece, done) = match sent.try_next().await {
            Ok(Some(done)) => done,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        checkpoint.lines = piece.first_line + piece.lines;
        checkpoint.counts.add(done.counts);
        progress.clear_for(done.rejected.len().min(SHOWN_MAX - shown));
        for (line, reason) in done.rejected.iter().take(SHOWN_MAX - shown) {
            out::note(format_args!("line {}: {reason}", line + 1));
            shown += 1;
        }
        progress.show(checkpoint.lines);
        if saved.elapsed() >= SAVE_EVERY {
            checkpoint.save();
            saved = Instant::now();
        }
    };
    progress.end();
    if let Err(error) = outcome {
        checkpoint.save();
        return Err(error);
    }
    checkpoint.remove();
    let (counts, lines) = (checkpoint.counts, checkpoint.lines);
    Ok(Summary { counts, lines, seconds: began.elapsed().as_secs_f64() })
}

async fn send_patiently(target: &Target, piece: &Piece) -> Result<Done> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        match target.send(piece).await {
            Ok(done) => return Ok(done),
            Err(not_taken) if not_taken.passing && attempts < ATTEMPTS_MAX => sleep(PAUSE).await,
            Err(not_taken) => return Err(not_taken.error),
        }
    }
}

#[cfg(not(feature = "kafka"))]
pub(crate) async fn consume(_: &crate::args::ConsumeArgs) -> Result<()> {
    bail!("this binary was built without Kafka; build it with --features kafka (or cloud)")
}

fn print_summary(summary: &Summary) -> Result<()> {
    let Summary { counts: Counts { applied, stale, rejected }, lines, seconds } = summary;
    let [applied, stale, rejected, lines_shown] =
        [applied, stale, rejected, lines].map(|count| thousands(*count as f64));
    out::line(format_args!("applied   {applied:>12}"))?;
    out::line(format_args!("stale     {stale:>12}"))?;
    out::line(format_args!("rejected  {rejected:>12}"))?;
    out::line(format_args!("lines     {lines_shown:>12}  in {seconds:.1} s"))
}
