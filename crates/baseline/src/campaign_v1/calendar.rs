use saltern_core::campaigns::{Day, DaySet, LocalTime, Market, Schedule, SlotName, Window};

/// What the documents write as `{day}#{slot}`, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct DaySlot(pub(super) u32);

/// The days and slots of a market. All day is the first slot of each day.
pub(super) struct Calendar {
    slots: Vec<SlotName>,
    /// Each day and slot, with a schedule that is active in just that.
    probes: Vec<(DaySlot, Schedule)>,
}

impl Calendar {
    pub(super) fn new(market: &Market) -> Self {
        let slots: Vec<_> = market.slots().map(|(name, _)| name.clone()).collect();
        let mut calendar = Self { slots, probes: Vec::new() };
        for day in Day::ALL {
            let names = std::iter::once(Vec::new()).chain(calendar.slots.iter().map(|slot| vec![slot.clone()]));
            for (slot, names) in names.enumerate() {
                let schedule = Schedule::new(DaySet::new([day]), names, Window::default());
                calendar.probes.push((calendar.day_slot(day, slot), schedule));
            }
        }
        calendar
    }

    /// In how many places a campaign with this schedule is written.
    pub(super) fn of(&self, schedule: &Schedule) -> Vec<DaySlot> {
        let place = |name: &SlotName| self.slots.iter().position(|slot| slot == name).map(|place| place + 1);
        let slots: Vec<_> = match schedule.slots() {
            [] => vec![0],
            slots => slots.iter().filter_map(place).collect(),
        };
        schedule.days().days().flat_map(|day| slots.iter().map(move |slot| self.day_slot(day, *slot))).collect()
    }

    /// What is on now: the whole day, and its present slot if there is one.
    pub(super) fn at(&self, now: &LocalTime<'_>) -> Vec<DaySlot> {
        self.probes.iter().filter(|(_, probe)| probe.is_active(now)).map(|(day_slot, _)| *day_slot).collect()
    }

    fn day_slot(&self, day: Day, slot: usize) -> DaySlot {
        let number = day as usize * (self.slots.len() + 1) + slot;
        // Seven days of at most a hundred slots.
        DaySlot(u32::try_from(number).unwrap_or(u32::MAX))
    }
}
