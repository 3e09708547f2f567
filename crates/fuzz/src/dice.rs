//! The random number generator: a published function of seed and index.
//!
//! Ranges and choices are implemented here, because a library may change between versions, and a
//! seed in a bug report must always give the same scenario.

use chacha20::ChaCha8Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// The random numbers of one scenario.
#[derive(Debug)]
pub(super) struct Dice(ChaCha8Rng);

impl Dice {
    /// The generator of one scenario. Each index has a separate stream, so that scenarios are
    /// independent of each other.
    pub(crate) fn new(seed: u64, index: u64) -> Dice {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(index);
        Dice(generator)
    }

    /// A number below the limit, which must not be 0. The bias of this simple method is less than
    /// one in 2^32 for the limits in use.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        let wide = u128::from(self.0.next_u64()) * u128::from(limit);
        (wide >> 64) as u64
    }

    /// A number between two bounds, inclusive.
    pub(crate) fn between(&mut self, low: i64, high: i64) -> i64 {
        let room = high.abs_diff(low).saturating_add(1);
        low.saturating_add_unsigned(self.below(room))
    }

    /// [`Dice::between`] for replicas.
    pub(crate) fn replicas(&mut self, low: i32, high: i32) -> i32 {
        i32::try_from(self.between(i64::from(low), i64::from(high))).unwrap_or(low)
    }

    /// Returns true with a probability in percent.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several values.
    pub(crate) fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        let index = self.below(values.len() as u64) as usize;
        values[index].clone()
    }

    /// One of several values, by weight.
    pub(crate) fn weighted<T: Clone>(&mut self, values: &[(u64, T)]) -> T {
        let mut left = self.below(values.iter().map(|(weight, _)| weight).sum());
        for (weight, value) in values {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return value.clone(),
            }
        }
        values[values.len() - 1].1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this changes, old seeds generate other scenarios.
    #[test]
    fn the_random_stream_never_changes() {
        let mut dice = Dice::new(7, 3);
        let first: Vec<u64> = (0..4).map(|_| dice.below(1_000_000)).collect();
        assert_eq!(first, [662_921, 504_500, 736_051, 43_228]);
    }

    #[test]
    fn each_index_has_its_own_random_stream() {
        let of = |index| {
            let mut dice = Dice::new(7, index);
            (0..8).map(|_| dice.below(1 << 40)).collect::<Vec<_>>()
        };
        assert_ne!(of(0), of(1));
        assert_eq!(of(1), of(1));
    }

    #[test]
    fn numbers_cover_their_bounds() {
        let mut dice = Dice::new(1, 1);
        let seen: std::collections::BTreeSet<i64> =
            (0..1000).map(|_| dice.between(-2, 2)).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [-2, -1, 0, 1, 2]);
        assert!((0..100).all(|_| dice.weighted(&[(1, 'a'), (0, 'b'), (2, 'c')]) != 'b'));
    }
}
