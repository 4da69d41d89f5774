//! `verify` finds what was planted, each thing by its name, and nothing in a store that was written as it should be. With the
//! feature `cloud-tests` on DynamoDB Local.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[cfg(feature = "cloud-tests")]
mod tables;

use std::sync::Arc;

use bytes::Bytes;
use rstest::rstest;
use saltern_core::archive::{ArchiveState, ContentRef, folder, pack};
use saltern_core::control::ControlRecord;
use saltern_core::ids::{ConversationId, MessageId, ParticipantId};
use saltern_core::key::{Key, PartitionKey};
use saltern_core::layout::{Epoch, Layout, Salt};
use saltern_core::message::{Body, Digest, Draft};
use saltern_core::record::{Claim, Content, MessageRow, Record};
use saltern_core::seq::{SeqNo, SeqRange};
use saltern_core::voids::VoidRuns;
use saltern_registry::local::LocalRegistry;
use saltern_service::conversations::{Config, Conversations};
use saltern_service::verify::{Checked, Notice, Verifier};
use saltern_store::objects::{ObjectRoot, Objects};
use saltern_store::{Condition, Put, PutOutcome, Store};

#[cfg(feature = "cloud-tests")]
use self::tables::table;

#[cfg(not(feature = "cloud-tests"))]
async fn table() -> saltern_store::memory::MemoryStore {
    let capabilities = saltern_store::Capabilities { atomic_puts: false, exclusive: false };
    saltern_store::memory::MemoryStore::new(capabilities)
}

#[cfg(feature = "cloud-tests")]
type Table = saltern_store::dynamodb::DynamoStore;
#[cfg(not(feature = "cloud-tests"))]
type Table = saltern_store::memory::MemoryStore;

const NOW_MS: u64 = 1_700_000_000_000;
const HEAD: u64 = 300;

fn seq(n: u64) -> SeqNo {
    SeqNo::new(n).unwrap()
}

fn conversation() -> ConversationId {
    ConversationId::new("c#1").unwrap()
}

fn message(n: u64) -> MessageId {
    MessageId::new(&format!("m{n}")).unwrap()
}

fn draft(n: u64) -> Draft {
    let sender_id = ParticipantId::new("alice").unwrap();
    let body = Body { sender_id, receiver_id: None, content: format!("text {n}"), timestamp: None };
    Draft::new(message(n), body).unwrap()
}

fn row(n: u64) -> MessageRow {
    MessageRow::new(&draft(n), NOW_MS)
}

async fn put(store: &Table, key: Key, record: Record) {
    let put = Put { key, record, condition: Condition::Absent };
    assert_eq!(store.put(&put).await.unwrap(), PutOutcome::Applied);
}

/// Rows 1 to 300, salted from 101 on; 7 is void.
fn control() -> ControlRecord {
    let epochs = vec![Epoch { from: seq(1), n: 1 }, Epoch { from: seq(101), n: 5 }];
    let layout = Layout::from_parts(epochs, seq(HEAD + 50)).unwrap();
    ControlRecord { layout, resolved: seq(HEAD + 1), ..ControlRecord::create(1, NOW_MS) }
}

fn place(n: u64) -> Key {
    Key::row(&conversation(), control().layout.salt(seq(n)).unwrap(), seq(n))
}

/// A sound store, but for what one of these leaves out or does differently.
#[derive(Default)]
struct Plan {
    control: Option<ControlRecord>,
    without_control: bool,
    without_row: Option<u64>,
    without_claim: Option<u64>,
    row: Option<(u64, MessageRow)>,
    claim: Option<(u64, Claim)>,
    beside: Vec<(Key, Record)>,
    object: Option<Vec<u8>>,
}

struct Planted {
    table: Arc<Table>,
    objects: Arc<ObjectRoot>,
}

const SEGMENT: &str = "seg-0000000000000009-00000000000000ab";

async fn planted(plan: Plan) -> Planted {
    let store = table().await;
    if !plan.without_control {
        let control = plan.control.unwrap_or_else(control);
        put(&store, Key::control(&conversation()), Record::Control(control)).await;
    }
    for n in (1..=HEAD).filter(|n| Some(*n) != plan.without_row) {
        if n == 7 {
            put(&store, place(n), Record::Void).await;
            continue;
        }
        let row = plan.row.iter().find(|(at, _)| *at == n).map_or_else(|| row(n), |(_, row)| row.clone());
        let claim = plan.claim.filter(|(at, _)| *at == n).map_or(Claim { seq: seq(n), digest: row.digest }, |(_, c)| c);
        put(&store, place(n), Record::Message(row)).await;
        if Some(n) != plan.without_claim {
            put(&store, Key::claim(&conversation(), &message(n)), Record::Claim(claim)).await;
        }
    }
    for (key, record) in plan.beside {
        put(&store, key, record).await;
    }
    let objects = ObjectRoot::in_memory();
    if let Some(bytes) = plan.object {
        objects.put(&format!("{}/{SEGMENT}", folder(&conversation())), Bytes::from(bytes)).await.unwrap();
    }
    Planted { table: Arc::new(store), objects: Arc::new(objects) }
}

async fn verify(store: &Planted, claims_kept_ms: Option<u64>, now_ms: u64) -> (Checked, Vec<(&'static str, String)>) {
    let Planted { table, objects } = store;
    let verifier = Verifier {
        store: table.clone(),
        scan: table.clone(),
        objects: Some(objects.clone()),
        claims_kept_ms,
        wall_clock: Arc::new(move || now_ms),
        patience: saltern_service::Patience::default(),
    };
    let mut faults = Vec::new();
    let checked = verifier.run(|notice| {
        if let Notice::Fault(fault) = notice {
            faults.push((fault.name(), fault.to_string()));
        }
    });
    let checked = checked.await.unwrap();
    assert_eq!(checked.faults, faults.len() as u64);
    (checked, faults)
}

fn beside(key: Key, record: Record) -> Plan {
    Plan { beside: vec![(key, record)], ..Plan::default() }
}

fn misplaced() -> Plan {
    Plan { beside: vec![(Key::row(&conversation(), Salt::Of(9), seq(200)), Record::Void)], ..Plan::default() }
}

fn hidden() -> ControlRecord {
    let run = SeqRange::new(seq(20), seq(199)).unwrap();
    ControlRecord { voids: VoidRuns::from_runs([run]), ..control() }
}

/// Message 9 is where this segment has it, or would.
fn archived(text: &str, object: Option<Vec<u8>>) -> Plan {
    let block = pack(&conversation(), &[(seq(9), text)]).blocks.pop();
    let content = Content::Archived { at: ContentRef { leaf: SEGMENT.into(), block }, text: None };
    Plan { row: Some((9, MessageRow { content, ..row(9) })), object, ..Plan::default() }
}

/// A sound segment, of another text.
fn archived_otherwise() -> Plan {
    archived("text 8", Some(pack(&conversation(), &[(seq(9), "text 8")]).bytes))
}

fn archived_in_name_only() -> ControlRecord {
    ControlRecord { archive: ArchiveState { through: seq(12), ..ArchiveState::new(NOW_MS) }, ..control() }
}

fn strange(partition: &str) -> Key {
    Key { partition: PartitionKey::stored(partition.into()), sort: 1 }
}

const NOBODY: Claim = Claim { seq: SeqNo::FIRST, digest: Digest([0; 16]) };

#[rstest]
#[case::missing(Plan { without_row: Some(150), ..Plan::default() }, "missing", 1, "150 to 150")]
#[case::resolved_too_far(Plan { control: Some(ControlRecord { resolved: seq(310), ..control() }), ..Plan::default() },
                         "missing", 1, "301 to 309")]
#[case::resolved_into_the_blue(Plan { control: Some(ControlRecord { resolved: seq(1 << 50), layout: Layout::from_parts(
    vec![Epoch { from: seq(1), n: 1 }, Epoch { from: seq(101), n: 5 }], seq(1 << 51)).unwrap(), ..control() }), ..Plan::default() },
                         "missing", 1, "301 to 1125899906842623")]
#[case::resolved_beyond(Plan { control: Some(ControlRecord { resolved: seq(301), layout: Layout::new(299), ..control() }), ..Plan::default() },
                        "resolved-beyond-horizon", 1, "301")]
#[case::no_control(Plan { without_control: true, ..Plan::default() }, "no-control", 1, "c#1")]
#[case::misplaced(misplaced(), "misplaced", 1, "200")]
#[case::beyond_the_horizon(beside(Key::row(&conversation(), Salt::Unsalted, seq(400)), Record::Void),
                           "beyond-horizon", 1, "400")]
#[case::hidden(Plan { control: Some(hidden()), ..Plan::default() }, "hidden-by-voids", 180, "recorded as void")]
#[case::altered(Plan { row: Some((9, MessageRow { content: row(8).content, ..row(9) })), ..Plan::default() },
                "altered", 1, "seq_no 9")]
#[case::unclaimed(Plan { without_claim: Some(9), ..Plan::default() }, "unclaimed", 1, "\"m9\"")]
#[case::claimed_elsewhere(Plan { claim: Some((9, Claim { seq: seq(10), digest: row(9).digest })), ..Plan::default() },
                          "claimed-elsewhere", 1, "10")]
#[case::claim_differs(Plan { claim: Some((9, Claim { seq: seq(9), digest: Digest([9; 16]) })), ..Plan::default() },
                      "claim-differs", 1, "\"m9\"")]
#[case::claim_beyond(beside(Key::claim(&conversation(), &message(1_000)), Record::Claim(Claim { seq: seq(350), ..NOBODY })),
                     "claim-beyond-horizon", 1, "350")]
#[case::other_kind(beside(Key::claim(&conversation(), &message(1_000)), Record::Void), "other-kind", 1, "m1000")]
#[case::content_missing(archived("text 9", None), "content-missing", 1, "seq_no 9")]
#[case::content_cut(archived("text 9", Some(b"SALTSEG".to_vec())), "content-damaged", 1, "seq_no 9")]
#[case::content_of_another(archived_otherwise(), "content-damaged", 1, "seq_no 9")]
#[case::not_archived(Plan { control: Some(archived_in_name_only()), ..Plan::default() }, "not-archived", 10, "below 12")]
#[case::strange_key(beside(strange("c#x"), Record::Void), "strange-key", 1, "c#x")]
#[tokio::test]
async fn every_planted_fault_is_named(
    #[case] plan: Plan,
    #[case] name: &str,
    #[case] times: usize,
    #[case] told: &str,
) {
    let store = planted(plan).await;
    let (_, faults) = verify(&store, None, NOW_MS).await;
    let found: Vec<_> = faults.iter().filter(|(found, _)| *found == name).collect();
    assert_eq!(found.len(), times, "{faults:?}");
    assert!(found[0].1.contains(told), "{:?}", found[0]);
    // A record that contradicts the rest shows in more than one way.
    if name != "resolved-beyond-horizon" {
        assert_eq!(faults.len(), times, "{faults:?}");
    }
}

#[tokio::test]
async fn a_sound_store_has_no_fault() {
    let store = planted(Plan::default()).await;
    let (checked, faults) = verify(&store, None, NOW_MS).await;
    assert_eq!(faults, []);
    assert_eq!(checked, Checked { conversations: 1, rows: HEAD, claims: HEAD - 1, archived: 0, faults: 0 });
}

#[tokio::test]
async fn what_is_archived_as_it_should_be_is_no_fault() {
    let store = planted(archived("text 9", Some(pack(&conversation(), &[(seq(9), "text 9")]).bytes))).await;
    let (checked, faults) = verify(&store, None, NOW_MS).await;
    assert_eq!((checked.archived, faults), (1, vec![]));
}

/// Where claims expire, one that is missing is a fault only while it must be there.
#[tokio::test]
async fn claims_that_have_expired_are_not_missed() {
    let store = planted(Plan { without_claim: Some(9), ..Plan::default() }).await;
    assert_eq!(verify(&store, Some(1_000), NOW_MS + 999).await.1.len(), 1);
    assert_eq!(verify(&store, Some(1_000), NOW_MS + 1_000).await.1, []);
}

/// What appends leave, batches, conflicts and retries among them, while more of them come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_leave_no_fault_while_they_go_on() {
    let store = Planted { table: Arc::new(table().await), objects: Arc::new(ObjectRoot::in_memory()) };
    let registry = Arc::new(LocalRegistry::new(100));
    let service = Conversations::new(store.table.clone(), registry, Config::new(Arc::new(|| NOW_MS), 1));
    let writers: Vec<_> = (0..8_u64)
        .map(|writer| {
            let service = service.clone();
            tokio::spawn(async move {
                for n in 0..400 {
                    let conversation = ConversationId::new(&format!("c{}", n % 3)).unwrap();
                    let draft = draft(n * 8 + writer);
                    service.append(&conversation, draft.clone()).await.unwrap();
                    service.append(&conversation, draft).await.unwrap();
                }
            })
        })
        .collect();
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        assert_eq!(verify(&store, None, NOW_MS).await.1, []);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let (checked, faults) = verify(&store, None, NOW_MS).await;
    assert_eq!(faults, []);
    assert_eq!((checked.conversations, checked.claims), (3, 3_200));
}
