//! Decimals of any size, as far as quantities need them.
//!
//! Kubernetes keeps a quantity that does not fit its fast 64-bit form as a big decimal
//! (`gopkg.in/inf.v0`). Deliberately no general arithmetic: only what parsing, printing, adding and
//! comparing quantities uses.

use std::cmp::Ordering;

/// An unsigned integer of any size: 32-bit digits, least significant first, no leading zeros.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(in crate::model) struct Magnitude(Vec<u32>);

impl Magnitude {
    /// Reads decimal digits; anything else is skipped (the caller has checked).
    pub(super) fn from_digits(digits: &str) -> Magnitude {
        let mut magnitude = Magnitude::default();
        for digit in digits.bytes().filter(u8::is_ascii_digit) {
            magnitude.mul_add(10, u32::from(digit - b'0'));
        }
        magnitude
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Multiplies by a small number and adds another.
    pub(super) fn mul_add(&mut self, factor: u32, add: u32) {
        let mut carry = u64::from(add);
        for digit in &mut self.0 {
            let product = u64::from(*digit) * u64::from(factor) + carry;
            *digit = (product & u64::from(u32::MAX)) as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Multiplies by a power of ten.
    pub(super) fn mul_pow10(&mut self, power: u32) {
        for _ in 0..power {
            self.mul_add(10, 0);
        }
    }

    /// Adds another number.
    fn add(&mut self, other: &Magnitude) {
        let mut carry = 0;
        for index in 0..self.0.len().max(other.0.len()) {
            if index == self.0.len() {
                self.0.push(0);
            }
            let other = other.0.get(index).copied().unwrap_or(0);
            let sum = u64::from(self.0[index]) + u64::from(other) + carry;
            self.0[index] = (sum & u64::from(u32::MAX)) as u32;
            carry = sum >> 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Subtracts another number, which is not larger.
    fn subtract(&mut self, other: &Magnitude) {
        let mut borrow = 0;
        for (index, digit) in self.0.iter_mut().enumerate() {
            let other = u64::from(other.0.get(index).copied().unwrap_or(0)) + borrow;
            borrow = u64::from(u64::from(*digit) < other);
            *digit = (u64::from(*digit) + (borrow << 32) - other) as u32;
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// Divides by a small number; returns the remainder.
    pub(super) fn div_rem(&mut self, divisor: u32) -> u32 {
        let mut remainder = 0_u64;
        for digit in self.0.iter_mut().rev() {
            let value = (remainder << 32) | u64::from(*digit);
            *digit = (value / u64::from(divisor)) as u32;
            remainder = value % u64::from(divisor);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        remainder as u32
    }

    /// Divides by a power of ten; tells whether anything was cut off.
    pub(super) fn div_pow10(&mut self, power: u32) -> bool {
        let mut inexact = false;
        for _ in 0..power {
            if self.is_zero() {
                break;
            }
            inexact |= self.div_rem(10) != 0;
        }
        inexact
    }

    /// Takes out all factors; returns how many there were. None in zero.
    pub(super) fn remove_factors(&mut self, factor: u32) -> u32 {
        let mut times = 0;
        while !self.is_zero() {
            let mut quotient = self.clone();
            if quotient.div_rem(factor) != 0 {
                break;
            }
            *self = quotient;
            times += 1;
        }
        times
    }

    /// The lowest 64 bits.
    pub(in crate::model) fn low_u64(&self) -> u64 {
        let digit = |i: usize| u64::from(self.0.get(i).copied().unwrap_or(0));
        digit(0) | (digit(1) << 32)
    }

    pub(in crate::model) fn to_digits(&self) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let mut rest = self.clone();
        let mut groups = Vec::new();
        while !rest.is_zero() {
            groups.push(rest.div_rem(1_000_000_000));
        }
        let mut text = groups.pop().unwrap_or(0).to_string();
        for group in groups.iter().rev() {
            text.push_str(&format!("{group:09}"));
        }
        text
    }
}

impl From<u64> for Magnitude {
    fn from(value: u64) -> Magnitude {
        let mut digits = vec![(value & u64::from(u32::MAX)) as u32, (value >> 32) as u32];
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Magnitude(digits)
    }
}

impl PartialOrd for Magnitude {
    fn partial_cmp(&self, other: &Magnitude) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Magnitude {
    fn cmp(&self, other: &Magnitude) -> Ordering {
        let longer = self.0.len().cmp(&other.0.len());
        longer.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

/// `(-1)^negative × magnitude × 10^-scale`.
#[derive(Clone, Debug)]
pub(in crate::model) struct Dec {
    pub(in crate::model) negative: bool,
    pub(in crate::model) magnitude: Magnitude,
    pub(in crate::model) scale: i32,
}

impl Dec {
    pub(super) fn from_int(value: i64, exponent: i32) -> Dec {
        Dec {
            negative: value < 0,
            magnitude: Magnitude::from(value.unsigned_abs()),
            scale: exponent.wrapping_neg(),
        }
    }

    /// The exact sum.
    pub(super) fn plus(&self, other: &Dec) -> Dec {
        let (mut a, mut b) = (self.clone(), other.clone());
        let scale = a.scale.max(b.scale);
        for dec in [&mut a, &mut b] {
            dec.magnitude.mul_pow10(dec.scale.abs_diff(scale));
            dec.scale = scale;
        }
        if a.negative == b.negative {
            a.magnitude.add(&b.magnitude);
            return a;
        }
        if a.magnitude < b.magnitude {
            (a, b) = (b, a);
        }
        a.magnitude.subtract(&b.magnitude);
        a
    }

    /// Rounds away from zero to exactly `scale` decimals; tells whether nothing was lost.
    pub(in crate::model) fn round_up(&mut self, scale: i32) -> bool {
        let exact = if self.scale > scale {
            let inexact = self.magnitude.div_pow10(self.scale.abs_diff(scale));
            if inexact {
                self.magnitude.mul_add(1, 1);
            }
            !inexact
        } else {
            self.magnitude.mul_pow10(self.scale.abs_diff(scale));
            true
        };
        self.scale = scale;
        exact
    }

    /// The unscaled number as Go's `big.Int.Int64` gives it: the lowest 64 bits, with the sign.
    pub(super) fn unscaled_i64(&self) -> i64 {
        let low = self.magnitude.low_u64() as i64;
        if self.negative { low.wrapping_neg() } else { low }
    }

    /// Compares absolute values with an integer's.
    pub(super) fn cmp_magnitude(&self, integer: u64) -> Ordering {
        let mut ours = self.magnitude.clone();
        let mut theirs = Magnitude::from(integer);
        if self.scale >= 0 {
            theirs.mul_pow10(self.scale.unsigned_abs());
        } else {
            ours.mul_pow10(self.scale.unsigned_abs());
        }
        ours.cmp(&theirs)
    }

    /// The same number, without trailing zeros: equal numbers are then equal field by field.
    pub(super) fn reduced(&self) -> (bool, Magnitude, i32) {
        let mut magnitude = self.magnitude.clone();
        if magnitude.is_zero() {
            return (false, magnitude, 0);
        }
        let times = magnitude.remove_factors(10);
        (self.negative, magnitude, self.scale.wrapping_sub_unsigned(times))
    }
}
