//! The archive on a folder: a pass against copying the same bytes there, and pages of archived messages against pages of rows.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::limits::{BATCH_MESSAGES_MAX, PAGE_LIMIT_DEFAULT, SEGMENT_MESSAGES_MAX};
use saltern_core::message::{Body, Draft};
use saltern_core::rng::SplitMix64;
use saltern_core::seq::SeqNo;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{Config, Conversations, PassOptions};
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore};
use saltern_store::objects::ObjectRoot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::measure::{Comparison, Measured};
use super::report::Report;
use super::take_turns;
use crate::args::ArchiveBenchArgs;
use crate::scratch::Scratch;
use crate::service::now_ms;

/// A store whose conversations `old-…` are archived at once, and nothing of which is remembered.
struct Bench {
    store: Arc<EmbeddedStore>,
    service: Conversations,
    args: ArchiveBenchArgs,
    scratch: Scratch,
}

pub(super) async fn archive(args: &ArchiveBenchArgs) -> Result<()> {
    let scratch = Scratch::create(args.measure.scratch.data.as_deref())?;
    let store = Arc::new(EmbeddedStore::open(&scratch.path().join("data"), EmbeddedOptions::default())?);
    let config = Config {
        objects: Some(Arc::new(ObjectRoot::folder(&scratch.path().join("archive"))?)),
        cache_bytes_max: 0,
        archive_cache_bytes_max: 0,
        ..Config::new(Arc::new(now_ms), 1)
    };
    let service = Conversations::new(store.clone(), Arc::new(LocalRegistry::new(100_000)), config);
    let bench = Bench { store, service, args: args.clone(), scratch };
    let runs = bench.passes().await?;
    let mut comparisons = vec![Comparison::of("pass, bytes of content".into(), "copy to files of that size", &runs)];
    bench.fill("live", 1).await?;
    let seconds = Duration::from_secs(args.measure.seconds.into());
    let runs = take_turns(
        args.measure.runs,
        "pages",
        async || bench.pages("old-0", seconds).await,
        async || bench.pages("live", seconds).await,
    );
    comparisons.push(Comparison::of("archived page of 20".into(), "page of rows", &runs.await?));
    bench.service.shut_down().await;
    bench.store.close().await?;
    let report = Report {
        bench: "archive",
        runs: args.measure.runs,
        seconds: args.measure.seconds,
        content_bytes: Some(args.measure.scratch.content_bytes),
        debug_build: cfg!(debug_assertions),
        comparisons,
        how: format!(
            "A pass over {} conversations of {} messages, without HTTP, in bytes of content per second; its peer writes the same \
             bytes to files in the same folder, one for each {SEGMENT_MESSAGES_MAX} messages, each synced. Pages are read one after the \
             other, at random places, with nothing in memory but the log and the engine's blocks.",
            args.conversations, args.messages
        ),
    };
    report.print(args.measure.scratch.json)
}

impl Bench {
    fn texts(&self, seed: u64) -> impl FnMut() -> String + use<> {
        const WORDS: [&str; 16] = [
            "tea", "at", "four", "cake", "and", "the", "salt", "of", "yes", "tomorrow", "maybe", "we", "should",
            "meet", "again", "ok",
        ];
        let (mut rng, bytes) = (SplitMix64::new(seed), self.args.measure.scratch.content_bytes.max(1) as usize);
        move || {
            let mut text = String::with_capacity(bytes + 16);
            while text.len() < bytes {
                text.push_str(WORDS[usize::try_from(rng.below(16)).unwrap_or(0)]);
                text.push(' ');
            }
            text.truncate(bytes);
            text
        }
    }

    async fn fill(&self, name: &str, seed: u64) -> Result<u64> {
        let conversation = ConversationId::new(name)?;
        let mut text = self.texts(seed);
        let mut bytes = 0;
        let mut drafts = Vec::with_capacity(self.args.messages as usize);
        for n in 0..self.args.messages {
            let content = text();
            bytes += content.len() as u64;
            let body = Body { sender_id: ParticipantId::new("alice")?, receiver_id: None, content, timestamp: None };
            drafts.push(Draft::new(MessageId::new(&n.to_string())?, body)?);
        }
        for some in drafts.chunks(BATCH_MESSAGES_MAX) {
            for appended in self.service.append_batch(&conversation, some.to_vec()).await {
                appended?;
            }
        }
        Ok(bytes)
    }

    /// Each run archives conversations of its own.
    async fn passes(&self) -> Result<Vec<(Measured, Measured)>> {
        let mut runs = Vec::new();
        for run in 0..self.args.measure.runs {
            super::progress(&format!("passes: run {} of {}", run + 1, self.args.measure.runs));
            let (mut bytes, first) = (0, run * self.args.conversations);
            for i in first..first + self.args.conversations {
                bytes += self.fill(&format!("old-{i}"), i.into()).await?;
            }
            let copied = self.copy(bytes)?;
            let began = Instant::now();
            let options = PassOptions { older_than: Duration::ZERO, messages_per_s: None, dry_run: false };
            let done = self.service.archive().pass(&*self.store, &options, &CancellationToken::new(), |_| ()).await?;
            ensure!(done.content_bytes == bytes, "moved {} of {bytes} bytes", done.content_bytes);
            let ours = Measured { done: bytes, elapsed: began.elapsed(), ..Measured::default() };
            runs.push((ours, copied));
        }
        super::progress("");
        Ok(runs)
    }

    fn copy(&self, bytes: u64) -> Result<Measured> {
        let folder = self.scratch.path().join("copy");
        let size = u64::from(self.args.measure.scratch.content_bytes.max(1)) * SEGMENT_MESSAGES_MAX as u64;
        let content = vec![b'x'; usize::try_from(size)?];
        std::fs::create_dir_all(&folder)?;
        let began = Instant::now();
        let mut left = bytes;
        for n in 0.. {
            if left == 0 {
                break;
            }
            let part = left.min(size);
            write(&folder.join(n.to_string()), &content[..usize::try_from(part)?])?;
            left -= part;
        }
        let elapsed = began.elapsed();
        std::fs::remove_dir_all(&folder).context("removing the copy")?;
        Ok(Measured { done: bytes, elapsed, ..Measured::default() })
    }

    async fn pages(&self, name: &str, seconds: Duration) -> Result<Measured> {
        let conversation = ConversationId::new(name)?;
        let (mut rng, mut measured, began) = (SplitMix64::new(7), Measured::default(), Instant::now());
        let places = u64::from(self.args.messages).saturating_sub(PAGE_LIMIT_DEFAULT as u64).max(1);
        while began.elapsed() < seconds {
            let before = SeqNo::clamped(PAGE_LIMIT_DEFAULT as u64 + 1 + rng.below(places));
            let asked = Instant::now();
            let page = self.service.older(&conversation, Some(before), PAGE_LIMIT_DEFAULT).await?;
            measured.latency.record(asked.elapsed());
            ensure!(page.messages.iter().all(|m| m.value.text().is_some()), "a content is missing");
            measured.done += 1;
        }
        measured.elapsed = began.elapsed();
        Ok(measured)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    Ok(file.sync_all()?)
}
