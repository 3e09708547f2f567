//! Amounts for people: rounded, in the unit that is easiest to read. [`super::Quantity`] prints
//! exact amounts.

use super::{Format, Quantity};

/// A binary unit of bytes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ByteUnit {
    /// Its suffix: `Mi`.
    pub name: &'static str,
    /// Its number of bytes.
    pub size: f64,
}

/// The largest unit that a number of bytes reaches.
#[must_use]
pub fn byte_unit(bytes: f64) -> ByteUnit {
    const UNITS: [(&str, i64); 4] =
        [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    let unit = UNITS.into_iter().find(|(_, size)| bytes.abs() >= *size as f64);
    let (name, size) = unit.unwrap_or(("", 1));
    ByteUnit { name, size: size as f64 }
}

/// Thousandths of a byte: `204.8Mi`.
#[must_use]
pub fn bytes(milli: f64) -> String {
    let unit = byte_unit(milli / 1000.0);
    let text = format!("{:.1}", milli / 1000.0 / unit.size);
    format!("{}{}", text.strip_suffix(".0").unwrap_or(&text), unit.name)
}

/// Thousandths of anything else, with at least four digits: `285.7`, `1.429`. Whole amounts,
/// amounts below 1 and amounts near an overflow are exact: `2k`, `286m`, `9223372036854775807m`.
#[must_use]
pub fn decimal(milli: i64) -> String {
    const LARGEST: u64 = 1 << f64::MANTISSA_DIGITS;
    let whole = milli.unsigned_abs() / 1000;
    if whole == 0 || milli % 1000 == 0 || milli.unsigned_abs() > LARGEST {
        return Quantity::from_milli(milli, Format::DecimalSI).to_string();
    }
    let decimals = match whole {
        1..=9 => 3,
        10..=99 => 2,
        _ => 1,
    };
    let text = format!("{:.decimals$}", milli as f64 / 1000.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_for_people() {
        for (milli, text) in [
            (0, "0"),
            (285, "285m"),
            (-999, "-999m"),
            (1_000, "1"),
            (1_500, "1.5"),
            (1_429, "1.429"),
            (28_571, "28.57"),
            (285_714, "285.7"),
            (-285_714, "-285.7"),
            (2_857_142, "2857.1"),
            (9_999_999, "10000"),
            (2_000_000, "2k"),
            (i64::MAX, "9223372036854775807m"),
            (i64::MIN, "-9223372036854775808m"),
        ] {
            assert_eq!(decimal(milli), text);
        }
        for (milli, text) in [
            (0.0, "0"),
            (1e6, "1000"),
            (419_430_400e3, "400Mi"),
            (214_748_364e3, "204.8Mi"),
            (-214_748_364e3, "-204.8Mi"),
            (4_398_046_511_104e3, "4Ti"),
        ] {
            assert_eq!(bytes(milli), text);
        }
    }
}
