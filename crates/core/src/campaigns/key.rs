//! Keys of the campaigns table. What stands here is persisted.

use std::borrow::Cow;
use std::fmt;

use smol_str::SmolStr;

use super::area::Area;
use crate::ids::{PartnerId, TenantId};
use crate::key::{enc, enc_onto, is_plain};

/// Holds the rejected events. A tenant is never empty, so no boost has a key that begins with `#`.
pub const DEAD_LETTERS_PARTITION: &str = "#dead-letters";
/// The sort half of a tenant's record.
pub const TENANT_SORT: &str = "tenant";

/// The partition of a tenant's record. Apart from its boosts, however many these are.
#[must_use]
pub fn tenant_partition(tenant: &TenantId) -> String {
    format!("#tenant#{}", enc(tenant.as_str()))
}

/// Where the boost of a partner in an area lives: known without asking anything. Neither half holds a control character, so
/// adapters may use one as a separator.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoostKey {
    partition: SmolStr,
    sort: SmolStr,
}

/// Where the boosts of an area live, to make their keys from.
#[derive(Debug, Clone)]
pub struct BoostPartition(SmolStr);

impl BoostPartition {
    #[must_use]
    pub fn new(tenant: &TenantId, area: &Area) -> Self {
        let mut text = enc(tenant.as_str());
        text.push('#');
        match area {
            Area::Wildcard => text.push('*'),
            Area::District(district) => enc_onto(&mut text, district.as_str()),
        }
        Self(text.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    #[must_use]
    pub fn key(&self, partner: &PartnerId) -> BoostKey {
        let sort = match boost_sort(partner) {
            Cow::Borrowed(_) => partner.clone().into_text(),
            Cow::Owned(text) => text.into(),
        };
        BoostKey { partition: self.0.clone(), sort }
    }
}

/// The sort half of a partner's keys.
#[must_use]
pub fn boost_sort(partner: &PartnerId) -> Cow<'_, str> {
    let text = partner.as_str();
    if is_plain(text) { Cow::Borrowed(text) } else { Cow::Owned(enc(text)) }
}

impl BoostKey {
    #[must_use]
    pub fn new(tenant: &TenantId, area: &Area, partner: &PartnerId) -> Self {
        BoostPartition::new(tenant, area).key(partner)
    }

    /// As a store has kept its halves, whatever they are.
    #[must_use]
    pub fn stored(partition: &str, sort: &str) -> Self {
        Self { partition: partition.into(), sort: sort.into() }
    }

    #[must_use]
    pub fn partition(&self) -> &str {
        &self.partition
    }

    #[must_use]
    pub fn sort(&self) -> &str {
        &self.sort
    }
}

impl fmt::Debug for BoostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.partition(), self.sort())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::limits::{ID_BYTES_MAX, PARTITION_KEY_BYTES_MAX};

    fn key(tenant: &str, area: &str, partner: &str) -> BoostKey {
        let (tenant, partner) = (TenantId::new(tenant).unwrap(), PartnerId::new(partner).unwrap());
        BoostKey::new(&tenant, &Area::new(area).unwrap(), &partner)
    }

    /// Golden: these strings are in people's tables.
    #[rstest]
    #[case("de", "BER-01", "10740321", "de#BER-01/10740321")]
    #[case("de", "*", "10740321", "de#*/10740321")]
    #[case("d#e", "a#*", "p\0%", "d%23e#a%23*/p%00%25")]
    fn keys_are_pinned(#[case] tenant: &str, #[case] area: &str, #[case] partner: &str, #[case] expected: &str) {
        assert_eq!(format!("{:?}", key(tenant, area, partner)), expected);
    }

    #[test]
    fn our_own_partitions_are_out_of_reach() {
        assert_eq!(tenant_partition(&TenantId::new("a#b").unwrap()), "#tenant#a%23b");
        for tenant in ["#tenant", "#dead-letters", "tenant", "#"] {
            for area in ["x", "*", "tenant#x"] {
                assert!(!key(tenant, area, "p").partition().starts_with('#'));
            }
        }
    }

    #[test]
    fn the_longest_key_fits_dynamodb() {
        let id = "#".repeat(ID_BYTES_MAX);
        let key = key(&id, &id, &id);
        assert!(key.partition().len() <= PARTITION_KEY_BYTES_MAX && key.sort().len() <= 1_024);
    }

    proptest! {
        /// I9: two boosts share a key only if they are the same boost.
        #[test]
        fn keys_are_injective(
            a in "[#%*a\\x00]{1,3}", b in "[#%*a\\x00]{1,3}", c in "[#%*a\\x00]{1,3}",
            d in "[#%*a\\x00]{1,3}", e in "[#%*a\\x00]{1,3}", f in "[#%*a\\x00]{1,3}",
        ) {
            prop_assert_eq!(key(&a, &b, &c) == key(&d, &e, &f), (a, b, c) == (d, e, f));
        }
    }
}
