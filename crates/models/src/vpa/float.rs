//! Real arithmetic with the bits of Go on amd64: logarithm, powers and conversions to amounts.
//!
//! Each function performs the same operations in the same order as the Go function, without fused
//! multiply-add, so the results do not depend on the platform's mathematical library.
//!
//! Upstream: Go, package math; vertical-pod-autoscaler, `pkg/recommender/model/types.go`

use std::f64::consts::FRAC_1_SQRT_2;

/// CPU in millicores or memory in bytes.
pub type Amount = i64;

/// The largest amount. Upstream: types.go, MaxResourceAmount
pub(super) const MAX_AMOUNT: Amount = 100_000_000_000_000;

const LN2_HI: f64 = 6.931_471_803_691_238e-1;
const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

/// The natural logarithm of a positive finite number. Upstream: math, Log
#[must_use]
pub(super) fn ln(x: f64) -> f64 {
    const L1: f64 = 6.666_666_666_666_735e-1;
    const L2: f64 = 3.999_999_999_940_942e-1;
    const L3: f64 = 2.857_142_874_366_239e-1;
    const L4: f64 = 2.222_219_843_214_978_4e-1;
    const L5: f64 = 1.818_357_216_161_805e-1;
    const L6: f64 = 1.531_383_769_920_937_3e-1;
    const L7: f64 = 1.479_819_860_511_658_6e-1;
    let (mut mantissa, mut exponent) = frexp(x);
    if mantissa < FRAC_1_SQRT_2 {
        mantissa *= 2.0;
        exponent -= 1;
    }
    let f = mantissa - 1.0;
    let k = f64::from(exponent);
    let s = f / (2.0 + f);
    let s2 = s * s;
    let s4 = s2 * s2;
    let t1 = s2 * (L1 + s4 * (L3 + s4 * (L5 + s4 * L7)));
    let t2 = s4 * (L2 + s4 * (L4 + s4 * L6));
    let r = t1 + t2;
    let half_square = 0.5 * f * f;
    k * LN2_HI - ((half_square - (s * (half_square + r) + k * LN2_LO)) - f)
}

/// 2 to the power of `x`. Upstream: math, Exp2
#[must_use]
pub(super) fn exp2(x: f64) -> f64 {
    const P1: f64 = 1.666_666_666_666_666_6e-1;
    const P2: f64 = -2.777_777_777_701_559_3e-3;
    const P3: f64 = 6.613_756_321_437_934e-05;
    const P4: f64 = -1.653_390_220_546_525_2e-06;
    const P5: f64 = 4.138_136_797_057_238_5e-08;
    if x > 1_023.999_999_999_999_9 {
        return f64::INFINITY;
    }
    if x < -1.0740e+03 {
        return 0.0;
    }
    let k = if x > 0.0 {
        (x + 0.5) as i32
    } else if x < 0.0 {
        (x - 0.5) as i32
    } else {
        0
    };
    let t = x - f64::from(k);
    let hi = t * LN2_HI;
    let lo = -t * LN2_LO;
    let r = hi - lo;
    let t = r * r;
    let c = r - t * (P1 + t * (P2 + t * (P3 + t * (P4 + t * P5))));
    let y = 1.0 - ((lo - (r * c) / (2.0 - c)) - hi);
    times_power(y, k)
}

/// `x` to the power of an integer, for a positive `x` or infinity. Upstream: math, Pow
#[must_use]
pub(super) fn pow(x: f64, n: i32) -> f64 {
    if n == 0 || x == 1.0 {
        return 1.0;
    }
    if n == 1 || x.is_nan() {
        return x;
    }
    if x.is_infinite() {
        return if n > 0 { f64::INFINITY } else { 0.0 };
    }
    let (mut result, mut result_exponent) = (1.0, 0_i32);
    let (mut factor, mut exponent) = frexp(x);
    let mut left = n.unsigned_abs();
    while left != 0 {
        if !(-4096..=4096).contains(&exponent) {
            result_exponent += exponent;
            break;
        }
        if left & 1 == 1 {
            result *= factor;
            result_exponent += exponent;
        }
        factor *= factor;
        exponent <<= 1;
        if factor < 0.5 {
            factor += factor;
            exponent -= 1;
        }
        left >>= 1;
    }
    if n < 0 {
        result = 1.0 / result;
        result_exponent = -result_exponent;
    }
    ldexp(result, result_exponent)
}

const MANTISSA_BITS: i32 = 52;
const EXPONENT_MASK: u64 = 0x7ff;
const BIAS: i32 = 1023;

/// Splits a positive finite number into a fraction in [0.5, 1) and a power of two.
///
/// Upstream: math, Frexp
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let (normal, shift) = match x.is_normal() {
        true => (x, 0),
        false => (x * f64::from_bits(u64::from(1075_u32) << MANTISSA_BITS), -MANTISSA_BITS),
    };
    let bits = normal.to_bits();
    let exponent = ((bits >> MANTISSA_BITS) & EXPONENT_MASK) as i32;
    let fraction =
        (bits & !(EXPONENT_MASK << MANTISSA_BITS)) | ((BIAS as u64 - 1) << MANTISSA_BITS);
    (f64::from_bits(fraction), exponent - BIAS + 1 + shift)
}

/// A fraction times 2 to the power of `exponent`, rounded to the nearest number.
///
/// Upstream: math, Ldexp
#[must_use]
pub(super) fn ldexp(fraction: f64, exponent: i32) -> f64 {
    if fraction == 0.0 || !fraction.is_finite() {
        return fraction;
    }
    let (mantissa, own) = frexp(fraction.abs());
    let total = own.saturating_add(exponent);
    if total < -1080 {
        return 0.0_f64.copysign(fraction);
    }
    if total > 1024 {
        return f64::INFINITY.copysign(fraction);
    }
    times_power(mantissa, total).copysign(fraction)
}

/// A number near 1 times 2 to the power of `exponent` (-1080 to 1024), rounded once.
fn times_power(number: f64, exponent: i32) -> f64 {
    // Two factors: one power of two can be out of the range of normal numbers.
    let power = |exponent: i32| f64::from_bits(((exponent + BIAS) as u64) << MANTISSA_BITS);
    let half = exponent / 2;
    number * power(half) * power(exponent - half)
}

/// Rounds half up, also for negative numbers. Upstream: decaying_histogram.go, round
#[must_use]
pub(super) fn round(x: f64) -> i64 {
    let shifted = x + 0.5;
    let truncated = shifted as i64;
    // The floor of the number, without a call.
    if truncated as f64 > shifted { truncated - 1 } else { truncated }
}

/// Truncates a number to an amount. Numbers above the maximum become the maximum, negative ones
/// become 0.
///
/// Upstream: types.go, resourceAmountFromFloat
#[must_use]
pub(super) fn amount(x: f64) -> Amount {
    if x > MAX_AMOUNT as f64 {
        return MAX_AMOUNT;
    }
    if x < 0.0 {
        return 0;
    }
    // Go's conversion on amd64. Estimators remove the result with a minimum.
    if x.is_nan() { i64::MIN } else { x as i64 }
}

/// An amount times a factor. Upstream: types.go, ScaleResource
#[must_use]
pub(super) fn scale(value: Amount, factor: f64) -> Amount {
    amount(value as f64 * factor)
}

/// Millicores in cores. Upstream: types.go, CoresFromCPUAmount
#[must_use]
pub(super) fn cores(millicores: Amount) -> f64 {
    millicores as f64 / 1000.0
}

/// Cores in millicores. Upstream: types.go, CPUAmountFromCores
#[must_use]
pub(super) fn millicores(cores: f64) -> Amount {
    amount(cores * 1000.0)
}
