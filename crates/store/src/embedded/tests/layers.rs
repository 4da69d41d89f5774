//! The log over the tables: what readers see is the same wherever rows are, and however a move into tables ends.

use rstest::rstest;
use saltern_core::campaigns::{Area, Boost, BoostKey, DeadLetter, Look, Moment, State};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_core::rng::SplitMix64;

use super::durability::copy;
use super::*;
use crate::campaigns::CampaignStore as _;
use crate::due::Due as _;
use crate::memory::MemoryStore;
use crate::port::Capabilities;
use crate::samples;
use crate::scan::Scan as _;

const THIN: EmbeddedOptions = EmbeddedOptions {
    cache_bytes: 1024 * 1024,
    layer_bytes: 4 * 1_024,
    queue_max: 16,
    batch_max: 16,
    dead_letters_max: 10,
};

/// The engine's files of rows. Keyspace 0 is the engine's own.
pub(super) const ROWS: &str = "engine/keyspaces/1";

pub(super) fn replace(from: &Path, to: &Path) {
    std::fs::remove_dir_all(to).unwrap();
    copy(from, to);
}

fn random_put(rng: &mut SplitMix64, model: &MemoryStore) -> Put {
    let conversation = ConversationId::new(&format!("c{}", rng.below(3))).unwrap();
    let seq = SeqNo::clamped(1 + rng.below(60));
    let there = model.rows();
    if rng.below(3) == 0 && !there.is_empty() {
        // What is there already, replaced or not.
        let (key, record) = there[usize::try_from(rng.below(there.len() as u64)).unwrap()].clone();
        let version = record.version() + rng.below(2);
        return Put { key, record: Record::Void, condition: Condition::Version(version) };
    }
    let salt = if rng.below(2) == 0 { Salt::Unsalted } else { Salt::Of(u16::try_from(rng.below(3)).unwrap()) };
    let mut put = append(seq.get()).pop().unwrap();
    put.key = Key::row(&conversation, salt, seq);
    if rng.below(4) == 0 {
        put.key = Key::claim(&conversation, &MessageId::new(&format!("m{}", rng.below(40))).unwrap());
        put.record = append(seq.get()).remove(0).record;
    }
    put
}

async fn write(store: &EmbeddedStore, model: &MemoryStore, rng: &mut SplitMix64) {
    let put = random_put(rng, model);
    assert_eq!(store.put(&put).await.unwrap(), model.put(&put).await.unwrap(), "{put:?}");
}

async fn pages_are_alike(store: &EmbeddedStore, model: &MemoryStore, rng: &mut SplitMix64) {
    for (key, record) in model.rows() {
        let found = store.get(std::slice::from_ref(&key), Consistency::Strong).await.unwrap();
        assert_eq!(found, [Some(record)], "{key:?}");
        let (a, b) = (rng.below(62), rng.below(62));
        let order = if rng.below(2) == 0 { Order::Ascending } else { Order::Descending };
        let limit = usize::try_from(1 + rng.below(12)).unwrap();
        let (from, to, consistency) = (a.min(b), a.max(b), Consistency::Strong);
        let query = Query { partition: key.partition, from, to, order, limit, consistency };
        assert_eq!(query_all(store, &query).await.unwrap(), query_all(model, &query).await.unwrap(), "{query:?}");
    }
}

async fn scans_are_alike(store: &EmbeddedStore, model: &MemoryStore) {
    let (mut rows, mut behind) = (Vec::new(), None);
    loop {
        let page = store.scan(behind.as_ref(), 7).await.unwrap();
        rows.extend(page.rows.into_iter().map(|(key, record)| (key, record.unwrap())));
        behind = page.resume;
        if behind.is_none() {
            break;
        }
    }
    rows.sort_by(|(a, _), (b, _)| a.cmp(b));
    assert_eq!(rows, model.rows());
}

/// Random writes through many thin layers, with restarts between them, clean or not.
#[rstest]
#[tokio::test]
async fn rows_are_the_same_wherever_they_are(#[values(1, 2, 3, 4, 5, 6)] seed: u64) {
    let folder = TempDir::new().unwrap();
    let mut rng = SplitMix64::new(seed);
    let model = MemoryStore::new(Capabilities { atomic_puts: true, exclusive: true });
    let (path, cut_off) = (&folder.path().join("live"), &folder.path().join("cut off"));
    let mut store = EmbeddedStore::open(path, THIN).unwrap();
    for _ in 0..400 {
        write(&store, &model, &mut rng).await;
        match rng.below(40) {
            0 => store.settle().await.unwrap(),
            1 => {
                store.close().await.unwrap();
                drop(store);
                store = EmbeddedStore::open(path, THIN).unwrap();
            }
            // All that a killed process leaves, too.
            2 => {
                drop(store);
                store = EmbeddedStore::open(path, THIN).unwrap();
            }
            // Or one that was killed when a layer's rows were in tables, and nothing had been told of it.
            3 => {
                store.settle().await.unwrap();
                for _ in 0..rng.below(5) {
                    write(&store, &model, &mut rng).await;
                }
                // While it is open, tables may come and go.
                drop(store);
                copy(path, cut_off);
                store = EmbeddedStore::open(path, THIN).unwrap();
                store.settle().await.unwrap();
                drop(store);
                replace(&path.join(ROWS), &cut_off.join(ROWS));
                replace(cut_off, path);
                std::fs::remove_dir_all(cut_off).unwrap();
                store = EmbeddedStore::open(path, THIN).unwrap();
            }
            4..6 => pages_are_alike(&store, &model, &mut rng).await,
            6 => scans_are_alike(&store, &model).await,
            _ => {}
        }
    }
    pages_are_alike(&store, &model, &mut rng).await;
    scans_are_alike(&store, &model).await;
}

fn boost_key(i: u64) -> BoostKey {
    let (tenant, partner) = (TenantId::new("de").unwrap(), PartnerId::new(&i.to_string()).unwrap());
    BoostKey::new(&tenant, &Area::Wildcard, &partner)
}

fn boost(ms: u64) -> Boost {
    Boost { state: State::Ended, last_updated: Moment::from_ms(ms.cast_signed()).unwrap() }
}

fn control(i: u64) -> Put {
    let key = Key::control(&ConversationId::new(&format!("due {i}")).unwrap());
    let Record::Control(mut record) = samples::control() else { unreachable!() };
    record.archive.oldest_ms = Some(1_000 + i);
    Put { key, record: Record::Control(record), condition: Condition::Absent }
}

/// Something in each space, of which something has been replaced and something removed.
async fn fill(store: &EmbeddedStore, round: u64) {
    append_all(store, round * 10 + 1..=round * 10 + 10).await;
    for i in 0..5 {
        store.put_boost(&boost_key(i), &boost(round + 1)).await.unwrap();
        store.put(&control(round * 5 + i)).await.unwrap();
        let letter = DeadLetter::new(Moment::from_ms(1).unwrap(), format!("{round}"), b"{");
        store.add_dead_letter(&letter).await.unwrap();
    }
}

async fn check(store: &EmbeddedStore, rounds: u64) {
    assert_eq!(count(store).await.unwrap() as u64, rounds * 10);
    let keys: Vec<_> = (0..5).map(boost_key).collect();
    let looks = store.boosts(&keys, Consistency::Strong).await.unwrap();
    assert_eq!(looks, vec![Look::Found(boost(rounds).into()); 5]);
    let due = store.due(u64::MAX, None, 1_000).await.unwrap();
    assert_eq!((due.conversations.len() as u64, due.resume), (rounds * 5, None));
    assert_eq!(store.due(1_002, None, 1_000).await.unwrap().conversations.len(), 3);
    let letters = store.dead_letters(None, 100).await.unwrap();
    assert_eq!(letters.len() as u64, (rounds * 5).min(10));
    assert!(letters.windows(2).all(|pair| pair[0].0.0 == pair[1].0.0 + 1));
    assert_eq!(letters[0].0.0, rounds * 5);
}

/// The engine takes a layer in space by space, and the segments go last: a process may be killed after any of it.
#[rstest]
#[tokio::test]
async fn a_move_that_was_cut_off_is_done_again(#[values(0, 1, 2, 3, 4)] spaces_moved: usize) {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let options = EmbeddedOptions { dead_letters_max: 10, ..EmbeddedOptions::default() };
    let store = EmbeddedStore::open(&path("live"), options).unwrap();
    fill(&store, 0).await;
    store.settle().await.unwrap();
    fill(&store, 1).await;
    check(&store, 2).await;
    copy(&path("live"), &path("before"));
    store.settle().await.unwrap();
    check(&store, 2).await;
    drop(store);

    for keyspace in 1..=spaces_moved {
        let name = format!("engine/keyspaces/{keyspace}");
        replace(&path("live").join(&name), &path("before").join(&name));
    }
    for clean in [false, true] {
        let store = EmbeddedStore::open(&path("before"), options).unwrap();
        check(&store, 2).await;
        if clean {
            fill(&store, 2).await;
            store.close().await.unwrap();
        }
    }
    let store = EmbeddedStore::open(&path("before"), options).unwrap();
    check(&store, 3).await;
    assert_eq!(std::fs::read_dir(path("before").join("log")).unwrap().count(), 1);
}
