//! The contract of the campaigns port as executable checks. Each panics where an adapter breaks it.
//!
//! Every check keeps to tenants of its own, so that one store, old or new, serves all of them once.

use std::sync::Arc;

use saltern_core::campaigns::{
    Area, Boost, BoostKey, BoostPartition, Day, DaySet, DeadLetter, LetterNo, Look, Market, MarketModel, Moment,
    Schedule, Score, Slot, SlotName, Standing, State, Terms, TimeOfDay, Window,
};
use saltern_core::ids::{PartnerId, TenantId};
use saltern_core::limits::{BOOST_BATCH_MAX, DEAD_LETTER_BYTES_MAX, DEAD_LETTERS_PAGE_BYTES};
use saltern_core::rng::SplitMix64;

use super::port::{BoostPut, CampaignStore, MarketPut, MarketRecord};
use crate::port::{Consistency, StoreError};

const WRITERS: u32 = 32;
const BASE_MS: i64 = 1_763_200_000_000;

/// Everything but the bound on dead letters, which depends on how the store was opened.
pub async fn all(store: Arc<dyn CampaignStore>) {
    every_boost_comes_back(&*store).await;
    every_score_comes_back(&*store).await;
    standings_are_what_the_rows_come_to(&*store).await;
    look_alikes_are_boosts_of_their_own(&*store).await;
    the_highest_rank_stays(&*store).await;
    of_many_puts_at_once_the_highest_stays(Arc::clone(&store)).await;
    batches_are_bounded(&*store).await;
    markets_are_guarded(&*store).await;
    dead_letters_are_listed_and_removed(&*store).await;
    dead_letters_are_listed_page_by_page(&*store).await;
}

fn moment(ms: i64) -> Moment {
    Moment::from_ms(ms).expect("a moment")
}

fn key(tenant: &str, area: &str, partner: &str) -> BoostKey {
    let tenant = TenantId::new(tenant).expect("a legal id");
    let area = Area::new(area).expect("a legal area");
    BoostKey::new(&tenant, &area, &PartnerId::new(partner).expect("a legal id"))
}

fn terms(score: f64) -> Terms {
    let schedule = Schedule::new(DaySet::EVERY_DAY, Vec::new(), Window::default());
    Terms { score: Score::new(score).expect("a score"), schedule }
}

fn active(score: f64, at: i64) -> Boost {
    Boost { state: State::Active(terms(score)), last_updated: moment(BASE_MS + at) }
}

fn ended(at: i64) -> Boost {
    Boost { state: State::Ended, last_updated: moment(BASE_MS + at) }
}

async fn put(store: &dyn CampaignStore, key: &BoostKey, boost: &Boost) -> BoostPut {
    store.put_boost(key, boost).await.expect("a put is answered")
}

async fn look(store: &dyn CampaignStore, keys: &[BoostKey]) -> Vec<Look> {
    store.boosts(keys, Consistency::Strong).await.expect("a read is answered")
}

/// C4: rows of every shape, as they were written and in the order asked for, with absent ones in between.
pub async fn every_boost_comes_back(store: &dyn CampaignStore) {
    let slots = ["lunch", "späti 🧂"].map(|name| SlotName::new(name).expect("a name"));
    let window = Window { starts_at: Some(moment(BASE_MS)), ends_at: Some(moment(BASE_MS + 1)) };
    let full = Schedule::new(DaySet::new([Day::Monday, Day::Sunday]), slots.to_vec(), window);
    let boosts = [
        active(1.5, 0),
        ended(0),
        Boost { state: State::Active(Terms { schedule: full, ..terms(0.1 + 0.2) }), last_updated: moment(BASE_MS) },
        active(f64::MAX, 1),
        active(f64::MIN_POSITIVE, 2),
    ];
    let keys: Vec<_> = (0..boosts.len()).map(|i| key("comes-back", "BER-01", &format!("p{i}"))).collect();
    for (key, boost) in keys.iter().zip(&boosts) {
        assert_eq!(put(store, key, boost).await, BoostPut::Applied, "{key:?}");
    }
    let mut asked = vec![key("comes-back", "BER-01", "nobody")];
    asked.extend(keys.iter().rev().cloned());
    let mut expected = vec![Look::Absent];
    expected.extend(boosts.into_iter().rev().map(|boost| Look::Found(boost.into())));
    assert_eq!(look(store, &asked).await, expected);
    assert_eq!(look(store, &[]).await, []);
}

/// C4: a score is read as exactly the number that was written: every bit of it, whatever its exponent.
pub async fn every_score_comes_back(store: &dyn CampaignStore) {
    let mut rng = SplitMix64::new(1);
    let random = std::iter::repeat_with(|| f64::from_bits(rng.next_u64())).filter_map(|bits| Score::new(bits).ok());
    let edges = [f64::from_bits(1), f64::MIN_POSITIVE.next_down(), 1e-120, 1e120, 1e23, 5e-324, 1.0_f64.next_up()];
    let edges = edges.map(|edge| Score::new(edge).expect("a score"));
    let scores: Vec<_> = edges.into_iter().chain(random).take(2 * BOOST_BATCH_MAX).collect();
    for (batch, scores) in scores.chunks(BOOST_BATCH_MAX).enumerate() {
        let keys: Vec<_> = (0..scores.len()).map(|i| key("scores", "*", &format!("{batch}/{i}"))).collect();
        for (key, score) in keys.iter().zip(scores) {
            assert_eq!(put(store, key, &active(score.get(), 0)).await, BoostPut::Applied, "{key:?}");
        }
        for (look, score) in look(store, &keys).await.iter().zip(scores) {
            let Look::Found(boost) = look else { panic!("{score:?} is {look:?}") };
            let State::Active(terms) = &boost.state else { panic!("{score:?} is {look:?}") };
            assert_eq!(terms.score.get().to_bits(), score.get().to_bits());
        }
    }
}

/// C4: told partner by partner and area by area, as the rows are when it is asked; of odd ids, too, and again after each put.
pub async fn standings_are_what_the_rows_come_to(store: &dyn CampaignStore) {
    let tenant = TenantId::new("standings").expect("a legal id");
    let partitions =
        ["BER-01", "a#*", "*"].map(|area| BoostPartition::new(&tenant, &Area::new(area).expect("an area")));
    let partners = ["p1", "p#2", "p\0%", "nobody", "ein längerer Name 🧂 als andere"];
    let partners = partners.map(|partner| PartnerId::new(partner).expect("a legal id"));
    let market = Market::new(MarketModel::Zoned, "UTC", []).expect("a market");
    let now = market.local_time(moment(BASE_MS));
    let standings = async || {
        let standings = store.standings(&partitions, &partners, &now, Consistency::Strong).await;
        standings.expect("a read is answered")
    };
    let mut expected = vec![Standing::Idle; partitions.len() * partners.len()];
    assert_eq!(standings().await, expected);
    let ended_before = Window { starts_at: None, ends_at: Some(moment(BASE_MS)) };
    let over = Schedule::new(DaySet::EVERY_DAY, Vec::new(), ended_before);
    for (i, expected_here) in [(0, 1.5), (4, 2.5), (6, 3.5), (14, 4.5), (0, 5.5)] {
        let key = partitions[i % partitions.len()].key(&partners[i / partitions.len()]);
        let at = if expected[i] == Standing::Idle { 1 } else { 2 };
        assert_eq!(put(store, &key, &active(expected_here, at)).await, BoostPut::Applied);
        expected[i] = Standing::Active(Score::new(expected_here).expect("a score"));
        assert_eq!(standings().await, expected);
    }
    let off = Boost { state: State::Active(Terms { schedule: over, ..terms(1.0) }), last_updated: moment(BASE_MS + 3) };
    assert_eq!(put(store, &partitions[0].key(&partners[0]), &off).await, BoostPut::Applied);
    assert_eq!(put(store, &partitions[2].key(&partners[4]), &ended(3)).await, BoostPut::Applied);
    (expected[0], expected[14]) = (Standing::Idle, Standing::Idle);
    assert_eq!(standings().await, expected);
    let many: Vec<_> = (0..=BOOST_BATCH_MAX).map(|i| PartnerId::new(&i.to_string()).expect("a legal id")).collect();
    assert!(store.standings(&partitions[..1], &many[1..], &now, Consistency::Eventual).await.is_ok());
    assert!(store.standings(&partitions[..1], &many, &now, Consistency::Eventual).await.is_err());
}

/// I9: whatever characters ids hold, each has its own row.
pub async fn look_alikes_are_boosts_of_their_own(store: &dyn CampaignStore) {
    let names = ["like", "like#*", "like#a", "like%23a", "like\0a", "#tenant#like", "#dead-letters"];
    let keys: Vec<_> = names
        .iter()
        .flat_map(|tenant| ["*", "**", "a", "a#*", "*#a"].map(|area| (tenant, area)))
        .flat_map(|(tenant, area)| ["p", "p#", "p\0"].map(|partner| key(tenant, area, partner)))
        .collect();
    for (i, key) in (0..).zip(&keys) {
        assert_eq!(put(store, key, &active(1.0, i)).await, BoostPut::Applied, "{key:?}");
    }
    for (i, part) in keys.chunks(BOOST_BATCH_MAX).enumerate() {
        let first = i64::try_from(i * BOOST_BATCH_MAX).expect("a small number");
        let expected: Vec<_> = (first..).zip(part).map(|(i, _)| Look::Found(active(1.0, i).into())).collect();
        assert_eq!(look(store, part).await, expected);
    }
}

/// C1: later beats earlier, an end beats what ties with it, the digest decides between the rest, and nothing beats itself.
pub async fn the_highest_rank_stays(store: &dyn CampaignStore) {
    let mut ladder = [active(1.0, 0), active(2.0, 0), ended(0), active(0.5, 1), ended(1), active(9.0, 1_000_000)];
    ladder.sort_by_key(Boost::rank);
    let up = key("ranks", "*", "up");
    for (i, boost) in ladder.iter().enumerate() {
        assert_eq!(put(store, &up, boost).await, BoostPut::Applied);
        for lower in &ladder[..=i] {
            assert_eq!(put(store, &up, lower).await, BoostPut::Stale, "{lower:?} over {boost:?}");
        }
        assert_eq!(look(store, std::slice::from_ref(&up)).await, [Look::Found(boost.clone().into())]);
    }
}

/// C1: judged where the row is written.
pub async fn of_many_puts_at_once_the_highest_stays(store: Arc<dyn CampaignStore>) {
    for round in 0..4 {
        let key = key("race", "*", &format!("p{round}"));
        let boosts: Vec<_> = (0..WRITERS).map(|i| active(f64::from(1 + i % 5), i64::from(i % 4))).collect();
        let tasks: Vec<_> = boosts
            .iter()
            .map(|boost| {
                let (store, key, boost) = (Arc::clone(&store), key.clone(), boost.clone());
                tokio::spawn(async move { put(&*store, &key, &boost).await })
            })
            .collect();
        let mut applied = 0;
        for task in tasks {
            applied += u32::from(task.await.expect("a writer ends") == BoostPut::Applied);
        }
        let highest = boosts.into_iter().max_by_key(Boost::rank).expect("there are some");
        assert_eq!(look(&*store, &[key]).await, [Look::Found(highest.into())]);
        assert!((1..=20).contains(&applied), "{applied} of 20 different boosts were applied");
    }
}

/// C4: what does not fit one batch is refused as a whole.
pub async fn batches_are_bounded(store: &dyn CampaignStore) {
    let keys: Vec<_> = (0..=BOOST_BATCH_MAX).map(|i| key("batch", "*", &i.to_string())).collect();
    assert_eq!(look(store, &keys[1..]).await, vec![Look::Absent; BOOST_BATCH_MAX]);
    let refused = store.boosts(&keys, Consistency::Eventual).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}

fn market(zone: &str) -> Market {
    let time = |text| TimeOfDay::parse(text).expect("a time");
    let slots = [("lunch", ("11:00", "15:00")), ("späti", ("22:00", "02:00")), ("evening", ("18:00", "24:00"))];
    let slots = slots.map(|(name, (start, end))| (name, Slot::new(time(start), time(end)).expect("a slot")));
    Market::new(MarketModel::Zoned, zone, slots).expect("a market")
}

/// C5: each market replaces the one that its writer has seen.
pub async fn markets_are_guarded(store: &dyn CampaignStore) {
    let tenant = TenantId::new("mar#ket").expect("a legal id");
    let read = || async { store.market(&tenant).await.expect("a read is answered") };
    let put = |record: MarketRecord| async move {
        let tenant = TenantId::new("mar#ket").expect("a legal id");
        store.put_market(&tenant, &record).await.expect("a put is answered")
    };
    let berlin = MarketRecord { market: market("Europe/Berlin"), revision: 1 };
    let bare = Market::new(MarketModel::Wildcard, "Pacific/Apia", []).expect("a market");
    let apia = MarketRecord { market: bare, revision: 2 };
    assert_eq!(read().await, None);
    assert_eq!(put(apia.clone()).await, MarketPut::Conflict);
    assert_eq!(put(berlin.clone()).await, MarketPut::Applied);
    assert_eq!(put(MarketRecord { revision: 1, ..apia.clone() }).await, MarketPut::Conflict);
    assert_eq!(read().await, Some(berlin));
    assert_eq!(put(apia.clone()).await, MarketPut::Applied);
    assert_eq!(put(apia.clone()).await, MarketPut::Conflict);
    assert_eq!(read().await, Some(apia));
    let other = TenantId::new("mar").expect("a legal id");
    assert_eq!(store.market(&other).await.expect("a read is answered"), None);
}

fn letter(i: i64) -> DeadLetter {
    DeadLetter::new(moment(BASE_MS + i), format!("reason {i}"), format!("{{\"event\":{i}").as_bytes())
}

async fn letters(store: &dyn CampaignStore, limit: usize) -> Vec<DeadLetter> {
    let letters = store.dead_letters(None, limit).await.expect("a read is answered");
    assert!(letters.windows(2).all(|pair| pair[0].0 > pair[1].0), "newest first");
    letters.into_iter().map(|(_, letter)| letter).collect()
}

/// C6: newest first, up to the limit, until they are removed.
pub async fn dead_letters_are_listed_and_removed(store: &dyn CampaignStore) {
    let add = |i| async move { store.add_dead_letter(&letter(i)).await.expect("a letter is taken") };
    let remove = |number| async move { store.remove_dead_letter(number).await.expect("a letter is removed") };
    let before = letters(store, 2).await;
    for i in 0..5 {
        add(i).await;
    }
    assert_eq!(letters(store, 3).await, [letter(4), letter(3), letter(2)]);
    let listed = store.dead_letters(None, 5).await.expect("a read is answered");
    for (number, _) in &listed[1..4] {
        remove(*number).await;
        remove(*number).await;
    }
    assert_eq!(letters(store, 2).await, [letter(4), letter(0)]);
    add(5).await;
    assert_eq!(letters(store, 3).await, [letter(5), letter(4), letter(0)]);
    for (number, _) in store.dead_letters(None, 3).await.expect("a read is answered") {
        remove(number).await;
    }
    assert_eq!(letters(store, 2).await, before);
    assert_eq!(letters(store, 0).await, []);
}

/// C6: each of them once, whatever the pages are, of small letters and of such as fill a page alone; by number, too.
pub async fn dead_letters_are_listed_page_by_page(store: &dyn CampaignStore) {
    let oldest = store.dead_letters(None, 1).await.expect("a read is answered").first().map(|(number, _)| *number);
    let large = |i: i64| DeadLetter::new(moment(BASE_MS + i), "large".into(), &vec![b'x'; DEAD_LETTER_BYTES_MAX]);
    let all: Vec<_> = (0..45).map(|i| if i % 5 == 4 { large(i) } else { letter(i) }).collect();
    for letter in &all {
        store.add_dead_letter(letter).await.expect("a letter is taken");
    }
    let mut numbers = Vec::new();
    for limit in [1, 7, 44, 45, 200] {
        let (mut listed, mut before) = (Vec::new(), None);
        loop {
            let mut page = store.dead_letters(before, limit).await.expect("a read is answered");
            page.retain(|(number, _)| Some(*number) > oldest);
            assert!(page.len() <= limit && page.windows(2).all(|pair| pair[0].0 > pair[1].0));
            let bytes: usize = page.iter().skip(1).map(|(_, letter)| letter.event.len()).sum();
            assert!(bytes <= DEAD_LETTERS_PAGE_BYTES + DEAD_LETTER_BYTES_MAX, "{bytes} bytes in a page");
            let Some((last, _)) = page.last() else { break };
            assert!(before.is_none_or(|before| page[0].0 < before));
            before = Some(*last);
            listed.extend(page);
        }
        assert_eq!(listed.iter().rev().map(|(_, letter)| letter).collect::<Vec<_>>(), all.iter().collect::<Vec<_>>());
        numbers = listed.into_iter().map(|(number, _)| number).collect();
    }
    let removed = numbers.split_off(40);
    for number in &removed {
        store.remove_dead_letter(*number).await.expect("a letter is removed");
    }
    let read = |number| async move { store.dead_letter(number).await.expect("a read is answered") };
    for (number, letter) in numbers.iter().rev().zip(&all[5..]) {
        assert_eq!(read(*number).await.as_ref(), Some(letter));
    }
    for number in removed {
        assert_eq!(read(number).await, None);
    }
    // One after whose number none has come yet, and the first one there could be.
    assert_eq!(read(LetterNo(numbers[0].0 + 1_000_000)).await, None);
    assert_eq!(read(LetterNo(0)).await, None);
    assert_eq!(store.dead_letters(Some(LetterNo(1)), 10).await.expect("a read is answered"), []);
    for number in numbers {
        store.remove_dead_letter(number).await.expect("a letter is removed");
    }
}

/// C6: on a store that keeps `max`, empty or not.
pub async fn dead_letters_are_bounded(store: &dyn CampaignStore, max: i64) {
    for round in 1..=3 {
        for i in 0..=max {
            store.add_dead_letter(&letter(round * 100 + i)).await.expect("a letter is taken");
        }
        let all = usize::try_from(max + 5).expect("a small number");
        let expected: Vec<_> = (1..=max).rev().map(|i| letter(round * 100 + i)).collect();
        assert_eq!(letters(store, all).await, expected);
        assert_eq!(letters(store, 2).await, expected[..2]);
        for at in 1..all {
            let before = store.dead_letters(None, at).await.expect("a read is answered").last().map(|(no, _)| *no);
            let older = store.dead_letters(before, all).await.expect("a read is answered");
            let older: Vec<_> = older.into_iter().map(|(_, letter)| letter).collect();
            assert_eq!(older, expected[at.min(expected.len())..]);
        }
    }
}
