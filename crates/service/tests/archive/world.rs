//! A table and a bucket that servers come and go over, on virtual time.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use saltern_core::archive::folder;
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::message::{Body, Draft};
use saltern_core::record::{Content, Record};
use saltern_core::seq::SeqNo;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{
    ArchiveError, Config, Conversations, ObjectLayout, PassOptions, PassReport, Progress,
};
use saltern_service::verify::{Notice, Verifier};
use saltern_store::memory::MemoryStore;
use saltern_store::objects::{ObjectRoot, Objects};
use saltern_store::{Capabilities, Due};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::stepping::{Stepping, Steps};

pub(crate) const EMBEDDED: Capabilities = Capabilities { atomic_puts: true, exclusive: true };
pub(crate) const CLOUD: Capabilities = Capabilities { atomic_puts: false, exclusive: false };

/// Objects in memory carry the time of the machine: this world begins long after it.
const START_MS: u64 = 4_000_000_000_000;
const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn seq(n: u64) -> SeqNo {
    SeqNo::new(n).unwrap()
}

pub(crate) fn conversation(i: u64) -> ConversationId {
    ConversationId::new(&format!("../talk#{i}")).unwrap()
}

/// Texts with all that can go wrong with texts, each found by a word of its own.
pub(crate) fn text(n: u64) -> String {
    format!("word-{n}-end 👩‍👩‍👧 \u{0} \u{202e}مرحبا\r\n\u{fffd}{}", "ü".repeat(usize::try_from(n % 50).unwrap()))
}

pub(crate) fn word(n: u64) -> String {
    format!("word-{n}-end")
}

pub(crate) fn draft(n: u64) -> Draft {
    let sender_id = ParticipantId::new("alice").unwrap();
    let body = Body { sender_id, receiver_id: None, content: text(n), timestamp: Some(format!("t{n}")) };
    Draft::new(MessageId::new(&format!("m/{n}")).unwrap(), body).unwrap()
}

pub(crate) struct World {
    pub(crate) store: MemoryStore,
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) layout: ObjectLayout,
    pub(crate) began: Instant,
}

impl World {
    pub(crate) fn new(capabilities: Capabilities, layout: ObjectLayout) -> Self {
        let objects = Arc::new(ObjectRoot::in_memory());
        Self { store: MemoryStore::new(capabilities), objects, layout, began: Instant::now() }
    }

    /// A wall clock that goes with the runtime's.
    pub(crate) fn clock(&self) -> saltern_service::WallClock {
        let began = self.began;
        Arc::new(move || START_MS + u64::try_from(began.elapsed().as_millis()).unwrap())
    }

    fn config(&self, objects: Arc<dyn Objects>, seed: u64) -> Config {
        Config { objects: Some(objects), object_layout: self.layout, ..Config::new(self.clock(), seed) }
    }

    pub(crate) fn server(&self, seed: u64) -> Conversations {
        let config = self.config(Arc::clone(&self.objects), seed);
        Conversations::new(Arc::new(self.store.clone()), Arc::new(LocalRegistry::new(100)), config)
    }

    /// One that fails or stalls at a step, and its index.
    pub(crate) fn stepping(&self, steps: &Arc<Steps>) -> (Conversations, Stepping<MemoryStore>) {
        let beneath = || Stepping { beneath: self.store.clone(), steps: Arc::clone(steps) };
        let objects = Arc::new(Stepping { beneath: Arc::clone(&self.objects), steps: Arc::clone(steps) });
        let config = self.config(objects, 99);
        (Conversations::new(Arc::new(beneath()), Arc::new(LocalRegistry::new(100)), config), beneath())
    }

    /// Messages in conversation `i`, by a server that is gone afterwards.
    pub(crate) async fn fill(&self, i: u64, messages: RangeInclusive<u64>) {
        let server = self.server(i);
        self.append(&server, i, messages).await;
        server.abort();
    }

    pub(crate) async fn append(&self, server: &Conversations, i: u64, messages: RangeInclusive<u64>) {
        let drafts: Vec<_> = messages.map(draft).collect();
        for some in drafts.chunks(500) {
            for appended in server.append_batch(&conversation(i), some.to_vec()).await {
                appended.unwrap();
            }
        }
    }

    pub(crate) async fn pass(&self, server: &Conversations) -> Result<PassReport, ArchiveError> {
        pass(server, &self.store, false).await
    }

    /// Every message of a conversation is read with its text, page by page; of those erased, that they were.
    pub(crate) async fn all_read(&self, server: &Conversations, i: u64, count: u64, erased: &BTreeSet<u64>) {
        let mut before = None;
        let mut expected = count;
        loop {
            let page = server.older(&conversation(i), before, 50).await.unwrap();
            for message in &page.messages {
                assert_eq!(message.seq, seq(expected));
                let n = expected;
                match erased.contains(&n) {
                    true => assert_eq!((message.value.text(), &message.value.content), (None, &Content::Erased)),
                    false => assert_eq!(message.value.text(), Some(text(n).as_str()), "{n}"),
                }
                assert_eq!(message.value.timestamp, Some(format!("t{n}")));
                expected -= 1;
            }
            before = page.next_before;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(expected, 0);
    }

    pub(crate) async fn object_names(&self) -> BTreeSet<String> {
        let page = self.objects.list("", None, 1_000).await.unwrap();
        let names = page.objects.into_iter().map(|object| object.name);
        names.filter(|name| !name.starts_with("_saltern/")).collect()
    }

    /// The objects that rows refer to.
    pub(crate) fn referred(&self) -> BTreeSet<String> {
        let rows = self.store.rows().into_iter().filter_map(|(key, record)| match (key.place(), record) {
            (Some(saltern_core::key::Place::Row { conversation, .. }), Record::Message(row)) => {
                row.archived_at().map(|at| format!("{}/{}", folder(&conversation), at.leaf))
            }
            _ => None,
        });
        rows.collect()
    }

    pub(crate) fn in_rows(&self) -> u64 {
        let here = |(_, record): &(_, Record)| matches!(record, Record::Message(row) if matches!(row.content, Content::Here(_)));
        self.store.rows().iter().filter(|row| here(row)).count() as u64
    }

    pub(crate) async fn verify(&self) -> Vec<String> {
        let verifier = Verifier {
            store: Arc::new(self.store.clone()),
            scan: Arc::new(self.store.clone()),
            objects: Some(Arc::clone(&self.objects)),
            claims_kept_ms: None,
            wall_clock: self.clock(),
            patience: saltern_service::Patience::default(),
        };
        let mut faults = Vec::new();
        let checked = verifier
            .run(|notice| {
                if let Notice::Fault(fault) = notice {
                    faults.push(fault.to_string());
                }
            })
            .await
            .unwrap();
        assert_eq!(checked.faults, faults.len() as u64);
        faults
    }

    /// A word of an erased text, wherever rows and objects hold it, compressed or not.
    pub(crate) async fn places_of(&self, n: u64) -> Vec<String> {
        let word = word(n);
        let mut places = Vec::new();
        for (key, record) in self.store.rows() {
            if format!("{record:?}").contains(&word) {
                places.push(format!("{key:?}"));
            }
        }
        for name in self.object_names().await {
            let bytes = self.objects.get(&name, None).await.unwrap();
            let texts = match saltern_core::archive::read_header(&bytes) {
                Ok(segment) => segment
                    .blocks
                    .iter()
                    .flat_map(|block| {
                        let range = usize::try_from(block.at.offset).unwrap()..usize::try_from(block.at.end()).unwrap();
                        saltern_core::archive::read_block(&bytes[range]).unwrap()
                    })
                    .map(|entry| entry.text.unwrap())
                    .collect::<String>(),
                Err(_) => String::from_utf8(bytes.to_vec()).unwrap(),
            };
            if texts.contains(&word) {
                places.push(name);
            }
        }
        places
    }
}

pub(crate) async fn pass(server: &Conversations, due: &dyn Due, dry_run: bool) -> Result<PassReport, ArchiveError> {
    let options = PassOptions { older_than: 90 * DAY, messages_per_s: None, dry_run };
    server.archive().pass(due, &options, &CancellationToken::new(), |_: Progress<'_>| ()).await
}

/// Time goes by until all that was written so far is due.
pub(crate) async fn days(count: u32) {
    tokio::time::advance(count * DAY).await;
}
