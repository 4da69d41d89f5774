//! The store without HTTP, against a plain file: what does it cost to be more than a file?

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::Key;
use saltern_core::layout::Salt;
use saltern_core::message::Body;
use saltern_core::record::{Claim, MessageRow, Record};
use saltern_core::seq::SeqNo;
use saltern_store::embedded::{EmbeddedOptions, EmbeddedStore};
use saltern_store::{Condition, Put, PutOutcome, Store};
use tokio::task::JoinSet;

use super::measure::{Comparison, Measured};
use super::messages::ID_DIGITS;
use super::plain_file::PlainFile;
use super::{WARM_UP, take_turns};
use crate::args::AppendArgs;
use crate::scratch::Scratch;

pub(super) async fn compare(args: &AppendArgs, scratch: &Scratch) -> Result<Comparison> {
    let rows = Arc::new(Rows::new(args)?);
    let store = Arc::new(EmbeddedStore::open(&scratch.path().join("store"), EmbeddedOptions::default())?);
    let write_store = |duration| {
        let (rows, store) = (Arc::clone(&rows), Arc::clone(&store));
        writers(args.writers, duration, move || put(Arc::clone(&store), rows.next()))
    };
    let mut files = 0;
    let mut write_file = async |duration| {
        files += 1;
        let file = Arc::new(PlainFile::create(&scratch.path().join(format!("plain-{files}")))?);
        let (rows, writer) = (Arc::clone(&rows), Arc::clone(&file));
        let measured = writers(args.writers, duration, move || append(Arc::clone(&writer), rows.next())).await?;
        if let Some(file) = Arc::into_inner(file) {
            file.close()?;
        }
        anyhow::Ok(measured)
    };
    write_store(WARM_UP).await?;
    write_file(WARM_UP).await?;
    let what = format!("store without HTTP, {} writers", args.writers);
    let duration = Duration::from_secs(args.measure.seconds.into());
    let runs =
        take_turns(args.measure.runs, &what, async || write_store(duration).await, async || write_file(duration).await)
            .await?;
    Ok(Comparison::of(what, "plain file", &runs))
}

async fn put(store: Arc<EmbeddedStore>, puts: Vec<Put>) -> Result<()> {
    let outcomes = store.put_all(&puts).await?;
    if outcomes.iter().all(|outcome| *outcome == PutOutcome::Applied) { Ok(()) } else { bail!("refused") }
}

async fn append(file: Arc<PlainFile>, puts: Vec<Put>) -> Result<()> {
    file.append(bytes_of(&puts)).await
}

/// Tasks that each write one thing after the other.
pub(super) async fn writers<W, F>(count: u32, duration: Duration, write: W) -> Result<Measured>
where
    W: Fn() -> F + Clone + Send + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for _ in 0..count {
        let write = write.clone();
        tasks.spawn(async move {
            let mut measured = Measured::default();
            while started.elapsed() < duration {
                let begun = Instant::now();
                match write().await {
                    Ok(()) => measured.done += 1,
                    Err(_) => measured.errors += 1,
                }
                measured.latency.record(begun.elapsed());
            }
            measured.elapsed = started.elapsed();
            measured
        });
    }
    let mut total = Measured::default();
    while let Some(task) = tasks.join_next().await {
        total.add(&task?);
    }
    Ok(total)
}

/// Makes the rows that an append writes: claim and message, spread over conversations.
struct Rows {
    conversations: Vec<ConversationId>,
    body: Body,
    issued: AtomicU64,
}

impl Rows {
    fn new(args: &AppendArgs) -> Result<Self> {
        let id = |i| ConversationId::new(&format!("bench-{i}"));
        let body = Body {
            sender_id: ParticipantId::new("alice")?,
            receiver_id: Some(ParticipantId::new("bob")?),
            content: "x".repeat(args.measure.scratch.content_bytes as usize),
            timestamp: Some("2026-11-15T04:20:00Z".into()),
        };
        let conversations = (0..args.conversations).map(id).collect::<Result<_, _>>()?;
        Ok(Self { conversations, body, issued: AtomicU64::new(0) })
    }

    /// The digest is taken as it would be for a real message: both sides pay for it.
    fn next(&self) -> Vec<Put> {
        let i = self.issued.fetch_add(1, Ordering::Relaxed);
        let count = self.conversations.len() as u64;
        let conversation = &self.conversations[usize::try_from(i % count).unwrap_or(0)];
        let seq = SeqNo::clamped(i / count + 1);
        let Ok(message_id) = MessageId::new(&format!("{i:0ID_DIGITS$x}")) else { return Vec::new() };
        let digest = self.body.digest();
        let claim = Record::Claim(Claim { seq, digest });
        let claim = Put { key: Key::claim(conversation, &message_id), record: claim, condition: Condition::Absent };
        let row = MessageRow::with_digest(message_id, self.body.clone(), digest, i);
        let key = Key::row(conversation, Salt::Unsalted, seq);
        vec![claim, Put { key, record: Record::Message(row), condition: Condition::Absent }]
    }
}

/// What the rows hold, one after the other.
fn bytes_of(puts: &[Put]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    for put in puts {
        bytes.extend_from_slice(put.key.partition.as_str().as_bytes());
        bytes.extend_from_slice(&put.key.sort.to_be_bytes());
        match &put.record {
            Record::Message(row) => {
                let receiver = row.receiver_id.as_ref().map_or("", ParticipantId::as_str);
                let timestamp = row.timestamp.as_deref().unwrap_or("");
                let texts = [
                    row.message_id.as_str(),
                    row.sender_id.as_str(),
                    receiver,
                    row.text().unwrap_or_default(),
                    timestamp,
                ];
                texts.iter().for_each(|text| bytes.extend_from_slice(text.as_bytes()));
                bytes.extend_from_slice(&row.digest.0);
                bytes.extend_from_slice(&row.ingested_at_ms.to_be_bytes());
            }
            Record::Claim(claim) => {
                bytes.extend_from_slice(&claim.seq.get().to_be_bytes());
                bytes.extend_from_slice(&claim.digest.0);
            }
            Record::Void | Record::Control(_) => {}
        }
    }
    bytes
}
