//! A table and a bucket that servers come and go over.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use saltern_core::archive::{Move, folder};
use saltern_core::control::ControlRecord;
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::{Key, Place};
use saltern_core::message::{Body, Draft};
use saltern_core::record::{Claim, Content, MessageRow, Record};
use saltern_core::seq::SeqNo;
use saltern_registry::local::LocalRegistry;
use saltern_service::Patience;
use saltern_service::conversations::{
    ArchiveError, Config, Conversations, ObjectLayout, PassOptions, PassReport, Progress,
};
use saltern_service::verify::{Notice, Verifier};
use saltern_store::memory::MemoryStore;
use saltern_store::objects::{ObjectRoot, Objects};
use saltern_store::{Capabilities, Condition, Consistency, Due, Put, PutOutcome, Scan, Store};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::stepping::{Stepping, Steps};

pub(crate) const EMBEDDED: Capabilities = Capabilities { atomic_puts: true, exclusive: true };
pub(crate) const CLOUD: Capabilities = Capabilities { atomic_puts: false, exclusive: false };

pub(crate) const SEGMENTS: ObjectLayout = ObjectLayout::Segments;
pub(crate) const SINGLES: ObjectLayout = ObjectLayout::Messages;

/// Objects in memory carry the time of the machine: this world begins long after it.
const START_MS: u64 = 4_000_000_000_000;
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn seq(n: u64) -> SeqNo {
    SeqNo::new(n).unwrap()
}

pub(crate) fn none() -> BTreeSet<u64> {
    BTreeSet::new()
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

/// What servers and tests need of a table.
pub(crate) trait Table: Store + Due + Scan {}

impl<T: Store + Due + Scan> Table for T {}

#[derive(Clone)]
pub(crate) struct World {
    pub(crate) table: Arc<dyn Table>,
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) layout: ObjectLayout,
    /// Nobody waits for real time.
    pub(crate) real: bool,
    pub(crate) began: Instant,
    pub(crate) skipped_ms: Arc<AtomicU64>,
    pub(crate) servers: Arc<Servers>,
}

/// They end with their world.
#[derive(Default)]
pub(crate) struct Servers(Mutex<Vec<Conversations>>);

impl Drop for Servers {
    fn drop(&mut self) {
        self.0.lock().unwrap().iter().for_each(Conversations::abort);
    }
}

impl World {
    /// In memory.
    pub(crate) fn new(capabilities: Capabilities, layout: ObjectLayout) -> Self {
        Self::on(Arc::new(MemoryStore::new(capabilities)), Arc::new(ObjectRoot::in_memory()), layout)
    }

    pub(crate) fn on(table: Arc<dyn Table>, objects: Arc<dyn Objects>, layout: ObjectLayout) -> Self {
        let (began, skipped_ms, servers) = (Instant::now(), Arc::default(), Arc::default());
        Self { table, objects, layout, real: false, began, skipped_ms, servers }
    }

    /// A wall clock that goes with the runtime's, but for the days that are skipped.
    pub(crate) fn clock(&self) -> saltern_service::WallClock {
        let (began, skipped_ms) = (self.began, Arc::clone(&self.skipped_ms));
        let elapsed_ms = move || u64::try_from(began.elapsed().as_millis()).unwrap();
        Arc::new(move || START_MS + skipped_ms.load(Ordering::SeqCst) + elapsed_ms())
    }

    pub(crate) fn skip(&self, time: Duration) {
        self.skipped_ms.fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::SeqCst);
    }

    /// Time goes by until all that was written so far is due.
    pub(crate) fn days(&self, count: u32) {
        self.skip(count * DAY);
    }

    /// Time goes by until nobody is waited for any more. In memory it is the others who wait.
    pub(crate) fn a_while(&self) {
        if self.real {
            self.skip(Duration::from_secs(60));
        }
    }

    fn serve(&self, table: Arc<dyn Store>, config: Config) -> Conversations {
        let config = Config { object_layout: self.layout, ..config };
        let server = Conversations::new(table, Arc::new(LocalRegistry::new(100)), config);
        self.servers.0.lock().unwrap().push(server.clone());
        server
    }

    pub(crate) fn server(&self, seed: u64) -> Conversations {
        let objects = Some(Arc::clone(&self.objects));
        self.serve(Arc::clone(&self.table) as _, Config { objects, ..Config::new(self.clock(), seed) })
    }

    /// One that fails or stalls at a step, and its index.
    pub(crate) fn stepping(&self, steps: &Arc<Steps>) -> (Conversations, Stepping<dyn Table>) {
        let table = || Stepping { beneath: Arc::clone(&self.table), steps: Arc::clone(steps) };
        let objects = Arc::new(Stepping { beneath: Arc::clone(&self.objects), steps: Arc::clone(steps) });
        let patience = if self.real && steps.crashes() { Patience { attempts: 2 } } else { Patience::default() };
        let config = Config { objects: Some(objects), patience, ..Config::new(self.clock(), 99) };
        (self.serve(Arc::new(table()), config), table())
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

    /// Room for more messages, over `salts` partitions.
    pub(crate) async fn raise(&self, i: u64, horizon: u64, salts: u16) {
        let control = self.control(i).await;
        let layout = control.layout.raised(seq(horizon), salts);
        let record = Record::Control(ControlRecord { ver: control.ver + 1, layout, ..control });
        let put = Put { key: Key::control(&conversation(i)), record, condition: Condition::Version(control.ver) };
        assert_eq!(self.table.put(&put).await.unwrap(), PutOutcome::Applied);
    }

    /// A message at a place of one's choice below the horizon: whoever held the tickets before it is gone.
    pub(crate) async fn append_at(&self, i: u64, n: u64) {
        let (conversation, draft) = (conversation(i), draft(n));
        let salt = self.control(i).await.layout.salt(seq(n)).unwrap();
        let claim = Record::Claim(Claim { seq: seq(n), digest: draft.digest });
        let row = Record::Message(MessageRow::new(&draft, self.clock()()));
        let claimed = (Key::claim(&conversation, &draft.message_id), claim);
        for (key, record) in [claimed, (Key::row(&conversation, salt, seq(n)), row)] {
            let put = Put { key, record, condition: Condition::Absent };
            assert_eq!(self.table.put(&put).await.unwrap(), PutOutcome::Applied);
        }
    }

    pub(crate) async fn control(&self, i: u64) -> ControlRecord {
        let keys = [Key::control(&conversation(i))];
        match self.table.get(&keys, Consistency::Strong).await.unwrap().pop().flatten() {
            Some(Record::Control(control)) => control,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn pass(&self, server: &Conversations) -> Result<PassReport, ArchiveError> {
        pass(server, &*self.table, false).await
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

    async fn rows(&self) -> Vec<(Key, Record)> {
        let (mut rows, mut behind) = (Vec::new(), None);
        loop {
            let page = self.table.scan(behind.as_ref(), 1_000).await.unwrap();
            rows.extend(page.rows.into_iter().map(|(key, record)| (key, record.unwrap())));
            behind = page.resume;
            if behind.is_none() {
                return rows;
            }
        }
    }

    /// The objects that rows refer to.
    pub(crate) async fn referred(&self) -> BTreeSet<String> {
        let rows = self.rows().await.into_iter().filter_map(|(key, record)| match (key.place(), record) {
            (Some(Place::Row { conversation, .. }), Record::Message(row)) => {
                row.archived_at().map(|at| format!("{}/{}", folder(&conversation), at.leaf))
            }
            _ => None,
        });
        rows.collect()
    }

    /// A note that is in a control record.
    pub(crate) async fn moving(&self) -> Option<Box<Move>> {
        self.rows().await.into_iter().find_map(|(_, record)| match record {
            Record::Control(control) => control.archive.moving,
            _ => None,
        })
    }

    pub(crate) async fn in_rows(&self) -> u64 {
        let here = |(_, record): &(_, Record)| matches!(record, Record::Message(row) if matches!(row.content, Content::Here(_)));
        self.rows().await.iter().filter(|row| here(row)).count() as u64
    }

    pub(crate) async fn verify(&self) -> Vec<String> {
        self.verify_through(Arc::clone(&self.table) as _).await
    }

    pub(crate) async fn verify_through(&self, scan: Arc<dyn Scan>) -> Vec<String> {
        let verifier = Verifier {
            store: Arc::clone(&self.table) as _,
            scan,
            objects: Some(Arc::clone(&self.objects)),
            claims_kept_ms: None,
            wall_clock: self.clock(),
            patience: Patience::default(),
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
        for (key, record) in self.rows().await {
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
