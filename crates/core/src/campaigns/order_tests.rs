//! I8 on the plainest table there is: whatever the order and number of deliveries, the rows are the same.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Table = BTreeMap<BoostKey, Boost>;

fn deliver(table: &mut Table, event: &Event) {
    for (key, boost) in event.boosts() {
        match table.get(&key) {
            Some(present) if present.rank() >= boost.rank() => {}
            _ => drop(table.insert(key, boost)),
        }
    }
}

fn table<'a>(events: impl IntoIterator<Item = &'a Event>) -> Table {
    let mut table = Table::new();
    events.into_iter().for_each(|event| deliver(&mut table, event));
    table
}

const BASE_MS: i64 = 1_763_200_000_000;

/// Few partners, areas, times and scores, so that nearly everything ties with something.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let event =
        (0..2_u8, prop::collection::vec(0..3_u8, 4), 0..3_i64, 1..3_u8, prop::collection::vec(0..7_usize, 0..2));
    let market = Market::new(MarketModel::Zoned, "Europe/Berlin", []).expect("a market");
    let event = event.prop_map(move |(partner, areas, time, score, days)| {
        let with = |role: u8| {
            let names = ["*", "a", "b", "c"].into_iter().zip(&areas);
            names.filter(|(_, r)| **r == role).map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
        };
        let (delivery_areas, mut ended_areas) = (with(1), with(2));
        if delivery_areas.is_empty() && ended_areas.is_empty() {
            ended_areas.push("*".into());
        }
        let raw = RawEvent {
            tenant: "de".into(),
            partner_id: format!("p{partner}"),
            delivery_areas,
            ended_areas,
            boost_score: Some(score.into()),
            days_of_week: days.iter().map(|day| Day::ALL[*day].as_str().to_owned()).collect(),
            last_updated_ms: BASE_MS + time,
            ..RawEvent::default()
        };
        Event::new(&raw, &market, Moment::from_ms(BASE_MS).expect("a moment")).expect("a good event")
    });
    prop::collection::vec(event, 1..7)
}

/// Every order, by Heap's algorithm.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    fn step(k: usize, order: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
        if k <= 1 {
            all.push(order.clone());
            return;
        }
        for i in 0..k {
            step(k - 1, order, all);
            order.swap(if k.is_multiple_of(2) { i } else { 0 }, k - 1);
        }
    }
    let mut all = Vec::new();
    step(count, &mut (0..count).collect(), &mut all);
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_order_ends_in_the_same_rows(events in events()) {
        let expected = table(&events);
        for order in permutations(events.len()) {
            prop_assert_eq!(&table(order.iter().map(|i| &events[*i])), &expected);
        }
    }

    #[test]
    fn every_number_of_deliveries_ends_in_the_same_rows(
        events in events(), again in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let expected = table(&events);
        let copies = again.iter().map(|i| &events[i.index(events.len())]);
        prop_assert_eq!(&table(copies.clone().chain(&events)), &expected);
        prop_assert_eq!(&table(events.iter().chain(copies)), &expected);
    }
}
