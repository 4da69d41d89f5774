use aws_sdk_dynamodb::types::{TableWarmThroughputDescription, WarmThroughput};

/// Units per second that a table takes from one moment to the next. A part that is 0 is not asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Warmth {
    pub reads_per_s: u32,
    pub writes_per_s: u32,
}

impl Warmth {
    pub(super) fn of(warm: &TableWarmThroughputDescription) -> Self {
        let units = |units: Option<i64>| u32::try_from(units.unwrap_or(0)).unwrap_or(u32::MAX);
        Self { reads_per_s: units(warm.read_units_per_second), writes_per_s: units(warm.write_units_per_second) }
    }

    /// What to ask for so that neither falls; nothing if both are met.
    pub(super) fn raised_to(self, wanted: Self) -> Option<Self> {
        let both = Self {
            reads_per_s: self.reads_per_s.max(wanted.reads_per_s),
            writes_per_s: self.writes_per_s.max(wanted.writes_per_s),
        };
        (both != self).then_some(both)
    }
}

impl From<Warmth> for WarmThroughput {
    fn from(warmth: Warmth) -> Self {
        let units = |units: u32| (units > 0).then_some(i64::from(units));
        Self::builder()
            .set_read_units_per_second(units(warmth.reads_per_s))
            .set_write_units_per_second(units(warmth.writes_per_s))
            .build()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warmth(reads_per_s: u32, writes_per_s: u32) -> Warmth {
        Warmth { reads_per_s, writes_per_s }
    }

    #[test]
    fn a_table_is_never_cooled() {
        assert_eq!(warmth(0, 0).raised_to(warmth(10, 20)), Some(warmth(10, 20)));
        assert_eq!(warmth(12_000, 4_000).raised_to(warmth(0, 20_000)), Some(warmth(12_000, 20_000)));
        assert_eq!(warmth(12_000, 4_000).raised_to(warmth(12_000, 4_000)), None);
        assert_eq!(warmth(12_000, 4_000).raised_to(warmth(1, 1)), None);
    }
}
