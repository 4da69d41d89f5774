use proptest::prelude::*;
use rstest::rstest;
use saltern_core::campaigns::Day;

use super::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn at(ms: i64) -> Moment {
    Moment::from_ms(ms).unwrap()
}

fn active(slots: &[&str], window: Window) -> Boost {
    let slots = slots.iter().map(|name| SlotName::new(name).unwrap()).collect();
    let schedule = Schedule::new(DaySet::new([Day::Monday]), slots, window);
    let terms = Terms { score: Score::new(1.5).unwrap(), schedule };
    Boost { state: State::Active(terms), last_updated: at(1_763_200_000_000) }
}

/// Golden bytes: these rows are in people's folders.
#[rstest]
#[case(active(&[], Window::default()), "0680c0a3b7a833005e6e8e34f0cba24a845ac1004f75ab9d3ff800000000000001000000")]
#[case(active(&["lunch"], Window { starts_at: Some(at(300)), ends_at: None }), "0680c0a3b7a83300c35b7055095b04c38d6ce0c1fcc208613ff80000000000000101ac020001056c756e6368")]
#[case(Boost { state: State::Ended, last_updated: at(300) }, "06ac0201")]
fn boosts_are_pinned(#[case] boost: Boost, #[case] bytes: &str) {
    assert_eq!(hex(&encode_boost(&boost)), bytes);
    assert_eq!(decode_boost(&encode_boost(&boost)), Ok(boost));
}

fn market() -> MarketRecord {
    let time = |minutes| TimeOfDay::from_minutes(minutes).unwrap();
    let slots = [("lunch", Slot::new(time(660), time(900)).unwrap()), ("x", Slot::new(time(1_320), time(0)).unwrap())];
    MarketRecord { market: Market::new(MarketModel::Zoned, "Europe/Berlin", slots).unwrap(), revision: 300 }
}

#[test]
fn markets_and_letters_are_pinned() {
    assert_eq!(hex(&encode_market(&market())), "07ac02010d4575726f70652f4265726c696e02056c756e6368940584070178a80a00");
    assert_eq!(decode_market(&encode_market(&market())), Ok(market()));
    let letter = DeadLetter { received_at: at(300), reason: "no".into(), event: "{".into(), cut: true };
    let bytes = encode_letter(LetterNo(7), &letter);
    assert_eq!(hex(&bytes), "0807ac0201026e6f017b");
    assert_eq!(decode_letter(&bytes), Ok((LetterNo(7), Some(letter))));
    assert_eq!(hex(&encode_removed_letter(LetterNo(7))), "08070002");
    assert_eq!(decode_letter(&encode_removed_letter(LetterNo(7))), Ok((LetterNo(7), None)));
}

#[rstest]
#[case(&[], Damage::Truncated)]
#[case(&[BOOST], Damage::Truncated)]
#[case(&[MARKET, 1, ENDED], Damage::Kind(MARKET))]
#[case(&[BOOST, 1, 2], Damage::Number)]
#[case(&[BOOST, 1, ENDED, 0], Damage::Trailing)]
#[case(&[BOOST, 1, ACTIVE, 0], Damage::Truncated)]
fn damage_is_told(#[case] bytes: &[u8], #[case] damage: Damage) {
    assert_eq!(decode_boost(bytes), Err(damage));
}

#[test]
fn half_a_row_is_damage() {
    let boost = encode_boost(&active(&["lunch"], Window::default()));
    let market = encode_market(&market());
    assert!((0..boost.len()).all(|cut| decode_boost(&boost[..cut]).is_err()));
    assert!((0..market.len()).all(|cut| decode_market(&market[..cut]).is_err()));
}

fn boosts() -> impl Strategy<Value = Boost> {
    let moments = || (0..4_102_444_800_000_i64).prop_map(at);
    let window = (prop::option::of(moments()), prop::option::of(moments()));
    let slots = prop::collection::vec("[a-z]{1,8}", 0..4);
    let score = prop::num::f64::POSITIVE.prop_filter("scores are finite", |score| Score::new(*score).is_ok());
    let terms = (score, 1..128_u8, slots, window).prop_map(|(score, days, slots, (starts_at, ends_at))| {
        let slots = slots.iter().map(|name| SlotName::new(name).unwrap()).collect();
        let window = Window { starts_at, ends_at };
        let schedule = Schedule::new(DaySet::from_bits(days).unwrap(), slots, window);
        State::Active(Terms { score: Score::new(score).unwrap(), schedule })
    });
    (prop_oneof![1 => Just(State::Ended), 4 => terms], moments())
        .prop_map(|(state, last_updated)| Boost { state, last_updated })
}

proptest! {
    #[test]
    fn boosts_come_back(boost in boosts()) {
        let bytes = encode_boost(&boost);
        prop_assert_eq!(rank(&bytes), Ok(boost.rank()));
        prop_assert_eq!(decode_boost(&bytes), Ok(boost));
    }

    #[test]
    fn a_flipped_byte_never_panics(boost in boosts(), place in any::<prop::sample::Index>(), to in any::<u8>()) {
        for mut bytes in [encode_boost(&boost), encode_market(&market())] {
            let place = place.index(bytes.len());
            bytes[place] = to;
            let _ = (rank(&bytes), decode_boost(&bytes), decode_market(&bytes), decode_letter(&bytes));
        }
    }
}
