//! Which of a partner's boosts counts, from what could be read of them.

use std::sync::Arc;

use super::area::{Area, DistrictId};
use super::boost::{Boost, Score, State};
use super::market::LocalTime;

/// The areas that a lookup asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Areas {
    /// `*` alone: a wildcard market has nothing else.
    Wildcard,
    /// A district, and `*` behind it.
    Zoned(DistrictId),
}

impl Areas {
    /// The most specific first.
    #[must_use]
    pub fn list(&self) -> Vec<Area> {
        match self {
            Self::Wildcard => vec![Area::Wildcard],
            Self::Zoned(district) => vec![Area::District(district.clone()), Area::Wildcard],
        }
    }
}

/// What became of the attempt to read one boost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    Found(Arc<Boost>),
    /// Certainly no row.
    Absent,
    /// Not read, and so not known.
    Unread,
}

/// What a look comes to at some time: all that a lookup wants to know of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing {
    Active(Score),
    /// No row, or one that is over or off schedule.
    Idle,
    Unread,
}

impl Look {
    #[must_use]
    pub fn standing(&self, now: &LocalTime<'_>) -> Standing {
        match self {
            Self::Unread => Standing::Unread,
            Self::Absent => Standing::Idle,
            Self::Found(boost) => boost.standing(now),
        }
    }
}

impl Boost {
    #[must_use]
    pub fn standing(&self, now: &LocalTime<'_>) -> Standing {
        match &self.state {
            State::Active(terms) if terms.schedule.is_active(now) => Standing::Active(terms.score),
            State::Active(_) | State::Ended => Standing::Idle,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Winner {
    pub score: Score,
    /// Where it stood in the list of areas.
    pub place: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Boosted(Winner),
    NotBoosted,
    /// A row that was not read could change the answer (I8).
    Unread,
}

/// Of the boosts that are active now the most specific one counts: one that is off schedule or over hides nothing. The
/// first row that could not be read ends the search, since what lies behind it counts only if it is not active.
#[must_use]
pub fn decide(standings: impl IntoIterator<Item = Standing>) -> Answer {
    for (place, standing) in standings.into_iter().enumerate() {
        match standing {
            Standing::Active(score) => return Answer::Boosted(Winner { score, place }),
            Standing::Unread => return Answer::Unread,
            Standing::Idle => {}
        }
    }
    Answer::NotBoosted
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::super::boost::Terms;
    use super::super::days::{Day, DaySet};
    use super::super::market::{Market, MarketModel};
    use super::super::moment::Moment;
    use super::super::schedule::{Schedule, Window};
    use super::*;

    fn boost(state: State) -> Look {
        Look::Found(Boost { state, last_updated: Moment::from_ms(1_763_200_000_000).unwrap() }.into())
    }

    fn active(score: f64, day: Day) -> Look {
        let schedule = Schedule::new(DaySet::new([day]), Vec::new(), Window::default());
        boost(State::Active(Terms { score: Score::new(score).unwrap(), schedule }))
    }

    /// On a Monday.
    #[rstest]
    #[case::specific_wins(active(1.0, Day::Monday), active(2.0, Day::Monday), Some((1.0, 0)), false)]
    #[case::specific_alone(active(1.0, Day::Monday), Look::Absent, Some((1.0, 0)), false)]
    #[case::wildcard_alone(Look::Absent, active(2.0, Day::Monday), Some((2.0, 1)), false)]
    #[case::off_schedule_hides_nothing(active(1.0, Day::Friday), active(2.0, Day::Monday), Some((2.0, 1)), false)]
    #[case::an_end_hides_nothing(boost(State::Ended), active(2.0, Day::Monday), Some((2.0, 1)), false)]
    #[case::both_off(active(1.0, Day::Friday), active(2.0, Day::Friday), None, false)]
    #[case::nothing(Look::Absent, Look::Absent, None, false)]
    #[case::specific_unread(Look::Unread, active(2.0, Day::Monday), None, true)]
    #[case::specific_unread_and_no_wildcard(Look::Unread, Look::Absent, None, true)]
    #[case::wildcard_unread(Look::Absent, Look::Unread, None, true)]
    #[case::wildcard_unread_behind_an_end(boost(State::Ended), Look::Unread, None, true)]
    #[case::wildcard_unread_but_not_needed(active(1.0, Day::Monday), Look::Unread, Some((1.0, 0)), false)]
    fn the_most_specific_active_one_counts(
        #[case] specific: Look,
        #[case] wildcard: Look,
        #[case] winner: Option<(f64, usize)>,
        #[case] unread: bool,
    ) {
        let market = Market::new(MarketModel::Zoned, "Europe/Berlin", []).unwrap();
        let now = market.local_time(Moment::parse("2026-11-16T12:30:00+01:00").unwrap());
        let answer = decide([specific, wildcard].map(|look| look.standing(&now)));
        let expected = match winner {
            _ if unread => Answer::Unread,
            None => Answer::NotBoosted,
            Some((score, place)) => Answer::Boosted(Winner { score: Score::new(score).unwrap(), place }),
        };
        assert_eq!(answer, expected);
    }
}
