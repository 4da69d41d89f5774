use std::sync::atomic::{AtomicU32, Ordering};

use saltern_core::campaigns::{
    Area, Boost, BoostKey, BoostPartition, DaySet, DeadLetter, LetterNo, Look, Market, MarketModel, Moment, Schedule,
    Score, Standing, State, Terms, Window,
};
use saltern_core::ids::{PartnerId, TenantId};

use super::durability::copy;
use super::*;
use crate::campaigns::{BoostPut, CampaignStore, conformance};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_the_contract_of_campaigns() {
    let folder = TempDir::new().unwrap();
    conformance::all(Arc::new(open(folder.path()))).await;
    conformance::all(Arc::new(open(folder.path().join("other").as_path()))).await;
}

#[tokio::test]
async fn dead_letters_are_bounded_and_go_on_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let options = EmbeddedOptions { dead_letters_max: 7, ..EmbeddedOptions::default() };
    let open = || EmbeddedStore::open(folder.path(), options).unwrap();
    conformance::dead_letters_are_bounded(&open(), 7).await;
    let store = open();
    let before = store.dead_letters(None, 100).await.unwrap();
    let letter = DeadLetter::new(Moment::from_ms(1).unwrap(), "why".into(), b"{");
    store.add_dead_letter(&letter).await.unwrap();
    let after = store.dead_letters(None, 100).await.unwrap();
    assert_eq!((after.len(), &after[0].1, &after[1..]), (7, &letter, &before[..6]));
    assert_eq!(after[0].0.0, before[0].0.0 + 1);
}

/// C6: a number is that of one letter for ever, also if none is left and the folder is opened again.
#[tokio::test]
async fn numbers_of_dead_letters_are_not_given_twice() {
    let folder = TempDir::new().unwrap();
    let mut last = 0;
    for _ in 0..3 {
        let store = open(folder.path());
        let letter = DeadLetter::new(Moment::from_ms(1).unwrap(), "why".into(), b"{");
        for _ in 0..2 {
            store.add_dead_letter(&letter).await.unwrap();
        }
        let letters = store.dead_letters(None, 100).await.unwrap();
        assert_eq!(letters.iter().map(|(number, _)| number.0).collect::<Vec<_>>(), [last + 2, last + 1]);
        last += 2;
        for (number, _) in letters {
            store.remove_dead_letter(number).await.unwrap();
            assert_eq!(store.dead_letter(number).await.unwrap(), None);
        }
        assert_eq!(store.dead_letters(None, 100).await.unwrap(), []);
        store.remove_dead_letter(LetterNo(last + 100)).await.unwrap();
    }
}

fn partition() -> BoostPartition {
    BoostPartition::new(&TenantId::new("de").unwrap(), &Area::Wildcard)
}

fn partner(i: u32) -> PartnerId {
    PartnerId::new(&i.to_string()).unwrap()
}

fn key(i: u32) -> BoostKey {
    partition().key(&partner(i))
}

async fn standing(store: &EmbeddedStore, i: u32) -> Result<Standing, StoreError> {
    let market = Market::new(MarketModel::Wildcard, "UTC", []).unwrap();
    let now = market.local_time(Moment::from_ms(0).unwrap());
    let standings = store.standings(&[partition()], &[partner(i)], &now, Consistency::Strong).await?;
    let [standing] = standings[..] else { panic!("{standings:?}") };
    Ok(standing)
}

fn boost(ms: i64) -> Boost {
    Boost { state: State::Ended, last_updated: Moment::from_ms(ms).unwrap() }
}

/// C2: what is on disk right after an answer is what a killed process leaves behind.
#[tokio::test]
async fn answered_boosts_are_on_disk_while_the_store_is_open() {
    let folder = TempDir::new().unwrap();
    let store = open(&folder.path().join("live"));
    for i in 0..20 {
        assert_eq!(store.put_boost(&key(i), &boost(5)).await.unwrap(), BoostPut::Applied);
        assert_eq!(store.put_boost(&key(i), &boost(4)).await.unwrap(), BoostPut::Stale);
    }
    append_all(&store, 1..=20).await;
    let killed = folder.path().join("killed");
    copy(&folder.path().join("live"), &killed);
    let store = open(&killed);
    let keys: Vec<_> = (0..20).map(key).collect();
    assert_eq!(store.boosts(&keys, Consistency::Strong).await.unwrap(), vec![Look::Found(boost(5).into()); 20]);
    assert_eq!(count(&store).await.unwrap(), 20);
}

#[tokio::test]
async fn damaged_bytes_are_told() {
    let folder = TempDir::new().unwrap();
    let store = open(folder.path());
    plant(&store, physical::Space::Campaigns, physical::boost_key(&key(1)), b"\x06").await;
    let damaged = |error: Option<StoreError>| assert!(matches!(error, Some(StoreError::Damaged(_))), "{error:?}");
    damaged(store.boosts(&[key(1)], Consistency::Strong).await.err());
    damaged(standing(&store, 1).await.err());
    damaged(store.put_boost(&key(1), &boost(1)).await.err());
    assert_eq!(store.boosts(&[key(2)], Consistency::Strong).await.unwrap(), [Look::Absent]);
    assert_eq!(standing(&store, 2).await.unwrap(), Standing::Idle);
}

/// C4: what is remembered of a boost is never older than the last put that was answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_lookup_sees_every_put_that_was_answered_before_it() {
    const PUTS: u32 = 300;
    let folder = TempDir::new().unwrap();
    let store = Arc::new(open(folder.path()));
    let answered = Arc::new(AtomicU32::new(0));
    let read = |store: Arc<EmbeddedStore>, answered: Arc<AtomicU32>| async move {
        loop {
            let least = answered.load(Ordering::SeqCst);
            let seen = match standing(&store, 1).await.unwrap() {
                Standing::Active(score) => score.get(),
                Standing::Idle => 0.0,
                Standing::Unread => panic!("unread"),
            };
            assert!(seen >= f64::from(least), "saw {seen} after {least}");
            if least == PUTS {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let readers: Vec<_> = (0..2).map(|_| tokio::spawn(read(Arc::clone(&store), Arc::clone(&answered)))).collect();
    for i in 1..=PUTS {
        let schedule = Schedule::new(DaySet::EVERY_DAY, Vec::new(), Window::default());
        let terms = Terms { score: Score::new(f64::from(i)).unwrap(), schedule };
        let boost = Boost { state: State::Active(terms), last_updated: Moment::from_ms(i64::from(i)).unwrap() };
        assert_eq!(store.put_boost(&key(1), &boost).await.unwrap(), BoostPut::Applied);
        answered.store(i, Ordering::SeqCst);
    }
    for reader in readers {
        reader.await.unwrap();
    }
}
