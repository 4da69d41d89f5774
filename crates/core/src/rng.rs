//! A small deterministic generator: randomness comes in as a seed. For faults and simulations, not for secrets.

/// Steele, Lea and Flood's splitmix64: every seed is a good seed, and every run can be had again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to `n - 1`; 0 if `n` is 0. The bias is far below what a test could notice.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next_u64().checked_rem(n).unwrap_or(0)
    }

    /// `true` in `p` of 1,000 cases. Draws a number even if the answer is certain, so that a change of
    /// one probability leaves the rest of a run as it was.
    pub fn chance_per_mille(&mut self, p: u32) -> bool {
        self.below(1_000) < u64::from(p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation's first values.
    #[test]
    fn the_sequence_is_pinned() {
        let mut rng = SplitMix64::new(1_234_567);
        let first: Vec<_> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn chances_are_about_right_and_exact_at_the_ends() {
        let mut rng = SplitMix64::new(7);
        let mut hits = |p| (0..10_000).filter(|_| rng.chance_per_mille(p)).count();
        assert_eq!((hits(0), hits(1_000)), (0, 10_000));
        assert!((900..1_100).contains(&hits(100)));
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
    }
}
