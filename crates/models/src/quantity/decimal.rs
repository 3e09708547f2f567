//! Decimals of any size, with the operations that quantities need.
//!
//! Kubernetes keeps a quantity that does not fit its fast 64-bit form as a big decimal
//! (`gopkg.in/inf.v0`). Only the operations for parsing, printing, adding and comparing quantities
//! exist here.

use std::cmp::Ordering;

use num_bigint::{BigInt, BigUint};

/// `unscaled × 10^-scale`.
#[derive(Clone, Debug)]
pub(crate) struct Dec {
    pub(crate) unscaled: BigInt,
    pub scale: i32,
}

/// `10^power`.
fn power_of_ten(power: u32) -> BigUint {
    BigUint::from(10_u32).pow(power)
}

impl Dec {
    pub(super) fn from_int(value: i64, exponent: i32) -> Dec {
        Dec { unscaled: value.into(), scale: exponent.wrapping_neg() }
    }

    pub(crate) fn is_zero(&self) -> bool {
        *self.unscaled.magnitude() == BigUint::ZERO
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.unscaled < BigInt::ZERO
    }

    /// The exact sum.
    pub(crate) fn plus(&self, other: &Dec) -> Dec {
        let scale = self.scale.max(other.scale);
        let at_scale = |dec: &Dec| {
            let power = power_of_ten(dec.scale.abs_diff(scale));
            &dec.unscaled * BigInt::from(power)
        };
        Dec { unscaled: at_scale(self) + at_scale(other), scale }
    }

    /// Compares the exact values.
    pub(crate) fn compare(&self, other: &Dec) -> Ordering {
        let negated = Dec { unscaled: -&other.unscaled, scale: other.scale };
        self.plus(&negated).unscaled.cmp(&BigInt::ZERO)
    }

    /// Rounds away from zero to exactly `scale` decimals. Returns true if the result is exact.
    pub(crate) fn round_up(&mut self, scale: i32) -> bool {
        let power = BigInt::from(power_of_ten(self.scale.abs_diff(scale)));
        let rounds = self.scale > scale;
        self.scale = scale;
        if !rounds {
            self.unscaled *= power;
            return true;
        }
        let quotient = &self.unscaled / &power;
        let exact = &quotient * &power == self.unscaled;
        let away = if self.is_negative() { -1 } else { 1 };
        self.unscaled = if exact { quotient } else { quotient + away };
        exact
    }

    /// The unscaled number as Go's `big.Int.Int64` returns it: the lowest 64 bits, with the sign.
    pub(super) fn unscaled_i64(&self) -> i64 {
        let low = self.unscaled.iter_u64_digits().next().unwrap_or(0) as i64;
        if self.is_negative() { low.wrapping_neg() } else { low }
    }

    /// Compares the absolute value with an integer.
    pub(super) fn cmp_magnitude(&self, integer: u64) -> Ordering {
        let power = power_of_ten(self.scale.unsigned_abs());
        match self.scale {
            0.. => self.unscaled.magnitude().cmp(&(power * integer)),
            _ => (self.unscaled.magnitude() * power).cmp(&integer.into()),
        }
    }

    /// Removes trailing zeros, so that equal numbers have equal parts.
    pub(crate) fn reduced(&self) -> (BigInt, i32) {
        if self.is_zero() {
            return (BigInt::ZERO, 0);
        }
        let mut unscaled = self.unscaled.clone();
        let times = remove_factors(&mut unscaled, 10);
        (unscaled, self.scale.wrapping_sub_unsigned(times))
    }
}

/// Removes all occurrences of a factor from a number other than zero. Returns their number.
pub(super) fn remove_factors(number: &mut BigInt, factor: u32) -> u32 {
    let mut times = 0;
    while &*number % factor == BigInt::ZERO {
        *number /= factor;
        times += 1;
    }
    times
}
