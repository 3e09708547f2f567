//! Quantities (`500m`, `1Gi`, `1e3`) with Kubernetes' own rounding, printing and overflow.
//!
//! A parsed [`Quantity`] has the form in which the controller receives it through the API, which
//! prints its canonical form and parses it again. [`Quantity::from_milli`] returns a quantity that
//! the controller itself calculated.
//!
//! There is deliberately little arithmetic: the controller calculates with [`Quantity::milli`];
//! only requests of whole pods are summed and compared exactly.
//! Upstream: apimachinery, `pkg/api/resource`.

mod decimal;
pub mod human;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use decimal::{Dec, remove_factors};
use num_bigint::BigInt;

/// The format in which a quantity is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`.
    BinarySI,
    /// `12M`.
    DecimalSI,
}

impl Format {
    /// Upstream's name.
    fn name(self) -> &'static str {
        match self {
            Format::DecimalExponent => "DecimalExponent",
            Format::BinarySI => "BinarySI",
            Format::DecimalSI => "DecimalSI",
        }
    }
}

/// A number with a suffix, as in the Kubernetes API. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Quantity {
    milli: i64,
    amount: Amount,
    format: Format,
    /// The original text, if upstream prints it instead of the canonical form.
    text: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum Amount {
    /// `value × 10^scale`: upstream's fast form.
    Int { value: i64, scale: i32 },
    /// Upstream's `inf.Dec` form, for numbers that do not fit the fast form.
    Dec(Arc<Dec>),
}

/// A text that is not a quantity. The messages are upstream's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum QuantityError {
    /// Not a number with a suffix.
    FormatWrong,
    /// The number can't be read.
    Numeric,
    /// The suffix is unknown.
    Suffix,
    /// More than 4,000 digits, which this program does not support.
    TooLarge,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuantityError::FormatWrong => {
                "quantities must match the regular expression \
                 '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            QuantityError::Numeric => "unable to parse numeric part of quantity",
            QuantityError::Suffix => "unable to parse quantity's suffix",
            QuantityError::TooLarge => "a quantity of more than 4000 digits",
        })
    }
}

impl std::error::Error for QuantityError {}

const NANO: i32 = -9;
const MILLI: i32 = -3;
/// The most digits after the point, or zeros of an exponent before it.
const MAX_DIGITS: i32 = 4000;
/// The most digits without leading zeros: as many before the point as after it.
const MAX_SIGNIFICANT_DIGITS: usize = 2 * MAX_DIGITS.unsigned_abs() as usize;

impl Quantity {
    /// Parses a quantity as the controller receives it: parsed by the API server, stored in
    /// canonical form, and parsed again. So `10000000000000000` is `10P`, and its milli-value
    /// overflows to 0.
    pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
        let parsed = Quantity::parse_once(text)?;
        if parsed.text.is_some() {
            return Ok(parsed);
        }
        Quantity::parse_once(&parsed.to_string())
    }

    /// A quantity from thousandths, as the controller writes usage into an HPA's status.
    #[must_use]
    pub fn from_milli(milli: i64, format: Format) -> Quantity {
        Quantity { milli, amount: Amount::Int { value: milli, scale: MILLI }, format, text: None }
    }

    /// A quantity from whole units, as the recommender of the VPA writes memory.
    ///
    /// Upstream: quantity.go, NewQuantity
    #[must_use]
    pub fn from_units(units: i64, format: Format) -> Quantity {
        Quantity::new(Amount::Int { value: units, scale: 0 }, format, None)
    }

    /// Parses a quantity of a custom resource: the API server stores its text unchanged.
    ///
    /// # Errors
    /// If the text is not a quantity.
    pub fn parse_stored(text: &str) -> Result<Quantity, QuantityError> {
        Quantity::parse_once(text)
    }

    /// Parses a quantity that is printed exactly as it was written, to compare texts.
    ///
    /// # Errors
    /// If the text is not a quantity.
    pub(crate) fn parse_verbatim(text: &str) -> Result<Quantity, QuantityError> {
        Ok(Quantity { text: Some(text.into()), ..Quantity::parse_once(text)? })
    }

    /// Returns a quantity that is printed exactly as `text`, even if `text` is a percentage. The
    /// text is written to a file, and is checked only when that file is read.
    #[must_use]
    pub fn as_written(text: &str) -> Quantity {
        let known = Quantity::parse_once(text).unwrap_or_else(|_| Quantity::unset());
        Quantity { text: Some(text.into()), ..known }
    }

    /// Prints the quantity and parses it again, as the API does. A quantity without a binary suffix
    /// is then in decimal units, and a huge quantity may have another value.
    #[must_use]
    pub fn read_again(self) -> Quantity {
        self.short_read_again()
            .unwrap_or_else(|| Quantity::parse(&self.to_string()).unwrap_or(self))
    }

    /// [`Quantity::read_again`] for most values of metrics, which are decimal numbers of at most 15
    /// digits. It takes less time.
    fn short_read_again(&self) -> Option<Quantity> {
        let Quantity { amount: Amount::Int { value, scale: MILLI }, text: None, .. } = self else {
            return None;
        };
        if self.format != Format::DecimalSI || value.unsigned_abs() >= 10_u64.pow(15) {
            return None;
        }
        let (mut value, mut scale) = (*value, MILLI);
        let mut suffixes = ["m", "", "k", "M", "G", "T"].into_iter();
        let mut suffix = suffixes.next();
        while value % 1000 == 0 && (value != 0 || scale < 0) {
            (value, scale, suffix) = (value / 1000, scale + 3, suffixes.next());
        }
        let text = Some(suffix?).filter(|_| value != 0).map(|suffix| format!("{value}{suffix}"));
        let amount = Amount::Int { value, scale };
        Some(Quantity::new(amount, Format::DecimalSI, text.map(Into::into)))
    }

    /// The value in thousandths, rounded and overflowing as upstream does. Precomputed.
    ///
    /// Upstream: quantity.go, Quantity.MilliValue
    #[must_use]
    pub fn milli(&self) -> i64 {
        self.milli
    }

    /// The value in whole units, rounded and overflowing as upstream does.
    ///
    /// Upstream: quantity.go, Quantity.Value
    #[must_use]
    pub fn value(&self) -> i64 {
        value_at(&self.amount, 0)
    }

    /// The value as a float, as the controller reads tolerances: mantissa times a power of ten.
    ///
    /// Upstream: quantity.go, Quantity.AsApproximateFloat64
    #[must_use]
    pub fn approx_f64(&self) -> f64 {
        let (base, exponent) = match &self.amount {
            Amount::Int { value, scale } => (*value as f64, *scale),
            Amount::Dec(dec) => {
                let unscaled = dec.unscaled.to_string().parse::<f64>().unwrap_or(f64::INFINITY);
                (unscaled, dec.scale.wrapping_neg())
            }
        };
        if exponent == 0 { base } else { base * pow10(exponent) }
    }

    /// The sign: -1, 0 or 1.
    #[must_use]
    pub fn sign(&self) -> i32 {
        match &self.amount {
            Amount::Int { value, .. } => value.signum() as i32,
            Amount::Dec(dec) if dec.is_zero() => 0,
            Amount::Dec(dec) if dec.is_negative() => -1,
            Amount::Dec(_) => 1,
        }
    }

    /// The sum, in the fast form if it fits.
    ///
    /// Upstream: quantity.go, Quantity.Add, and amount.go, int64Amount.Add
    #[must_use]
    pub fn plus(&self, other: &Quantity) -> Quantity {
        let format = if self.sign() == 0 { other.format } else { self.format };
        if let (
            Amount::Int { value: a, scale: a_scale },
            Amount::Int { value: b, scale: b_scale },
        ) = (&self.amount, &other.amount)
        {
            let scale = *a_scale.min(b_scale);
            let at_scale = |value: i64, from: i32| match value {
                0 => Some(0),
                _ => value.checked_mul(10_i64.checked_pow(from.abs_diff(scale))?),
            };
            let amount = match (a, b) {
                (_, 0) => Some(self.amount.clone()),
                (0, _) => Some(other.amount.clone()),
                _ => at_scale(*a, *a_scale)
                    .zip(at_scale(*b, *b_scale))
                    .and_then(|(a, b)| a.checked_add(b))
                    .map(|value| Amount::Int { value, scale }),
            };
            if let Some(amount) = amount {
                return Quantity::new(amount, format, None);
            }
        }
        let sum = self.to_dec().plus(&other.to_dec());
        Quantity::new(Amount::Dec(Arc::new(sum)), format, None)
    }

    /// Compares by value.
    ///
    /// Upstream: quantity.go, Quantity.Cmp
    #[must_use]
    pub fn compare(&self, other: &Quantity) -> Ordering {
        self.to_dec().compare(&other.to_dec())
    }

    /// Go's zero value of a quantity: without a format and without a text.
    #[must_use]
    pub(crate) fn unset() -> Quantity {
        let amount = Amount::Int { value: 0, scale: 0 };
        Quantity { milli: 0, amount, format: Format::DecimalSI, text: Some("".into()) }
    }

    /// The format of Go's `%#v`, which older API servers use for a rejected quantity. It contains a
    /// pointer to a decimal, whose value is not known here.
    #[must_use]
    pub(crate) fn go_syntax(&self) -> String {
        let (value, scale) = match self.amount {
            Amount::Int { value, scale } => (value, scale),
            Amount::Dec(_) => (0, 0),
        };
        let (text, format) = match &self.text {
            // Upstream parses zero separately and keeps its text.
            None if value == 0 && scale == 0 => ("0", self.format.name()),
            None => ("", self.format.name()),
            Some(unset) if unset.is_empty() => ("", ""),
            Some(text) => (&**text, self.format.name()),
        };
        format!(
            "resource.Quantity{{i:resource.int64Amount{{value:{value}, scale:{scale}}}, \
             d:resource.infDecAmount{{Dec:(*inf.Dec)(nil)}}, s:{text:?}, Format:{format:?}}}"
        )
    }

    /// Upstream: quantity.go, ParseQuantity
    fn parse_once(text: &str) -> Result<Quantity, QuantityError> {
        if text.is_empty() {
            return Err(QuantityError::FormatWrong);
        }
        let parts = parse_quantity_string(text)?;
        let (exponent, format) = interpret(parts.suffix).ok_or(QuantityError::Suffix)?;
        let digits = (parts.num.len() + parts.denom.len()) as i32;
        let (scale, shift, precision) = match format {
            Format::BinarySI if parts.denom.is_empty() => {
                let spent = (exponent as f32 * 3.0 / 10.0) as i32;
                (0, exponent, 15 - parts.num.len() as i32 - spent - 1)
            }
            Format::BinarySI => (0, exponent, -1),
            _ => (exponent, 0, 18 - digits),
        };
        let scale_of_value = scale.wrapping_sub(parts.denom.len() as i32);
        if precision >= 0 && scale_of_value >= NANO {
            let shifted = format!("{}{}", parts.num, parts.denom);
            let value: i64 = shifted.parse().map_err(|_| QuantityError::Numeric)?;
            if let Some(result) = value.checked_mul(1_i64 << shift) {
                let result = if parts.positive { result } else { -result };
                let as_typed = match format {
                    Format::BinarySI => exponent % 10 == 0 && value & 7 != 0,
                    _ => {
                        scale_of_value % 3 == 0
                            && !shifted.ends_with("000")
                            && !shifted.starts_with('0')
                    }
                };
                let amount = Amount::Int { value: result, scale: scale_of_value };
                return Ok(Quantity::new(amount, format, as_typed.then(|| text.into())));
            }
        }
        parse_slowly(&parts, exponent, format)
    }

    fn new(amount: Amount, format: Format, text: Option<Arc<str>>) -> Quantity {
        Quantity { milli: value_at(&amount, MILLI), amount, format, text }
    }

    pub(crate) fn to_dec(&self) -> Dec {
        match &self.amount {
            Amount::Int { value, scale } => Dec::from_int(*value, *scale),
            Amount::Dec(dec) => dec.as_ref().clone(),
        }
    }

    /// Upstream: quantity.go, Quantity.CanonicalizeBytes
    fn canonical(&self) -> String {
        if self.sign() == 0 {
            return "0".to_owned();
        }
        if self.format == Format::BinarySI {
            let mut whole = self.to_dec();
            if whole.cmp_magnitude(1024) != Ordering::Less && whole.round_up(0) {
                let times = remove_factors(&mut whole.unscaled, 1024);
                let suffix = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
                let suffix = suffix.get(times as usize).copied().unwrap_or_default();
                return format!("{}{suffix}", whole.unscaled);
            }
        }
        let (unscaled, scale) = self.to_dec().reduced();
        let exponent = scale.wrapping_neg();
        let spare = exponent.rem_euclid(3);
        let digits = unscaled * 10_u32.pow(spare.unsigned_abs());
        let exponent = exponent.wrapping_sub(spare);
        if self.format == Format::DecimalExponent {
            return match exponent {
                0 => format!("{digits}"),
                _ => format!("{digits}e{exponent}"),
            };
        }
        let suffix = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let index = usize::try_from((i64::from(exponent) + 9) / 3).unwrap_or(usize::MAX);
        // Upstream prints no suffix beyond E: `1000E` is stored as `1`.
        let suffix = suffix.get(index).copied().unwrap_or_default();
        format!("{digits}{suffix}")
    }
}

/// The parts of a quantity's text. Upstream: quantity.go, parseQuantityString
struct Parts<'a> {
    positive: bool,
    num: &'a str,
    denom: &'a str,
    suffix: &'a str,
    /// `Ki` alone is 0 in the fast form, and an error in the slow one.
    has_digits: bool,
}

fn parse_quantity_string(text: &str) -> Result<Parts<'_>, QuantityError> {
    let positive = !text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let rest = unsigned.trim_start_matches('0');
    if rest.is_empty() {
        return Ok(Parts { positive, num: "0", denom: "", suffix: "", has_digits: true });
    }
    let (num, rest) = split_digits(rest);
    let num = if num.is_empty() { "0" } else { num };
    let (denom, suffix) = match rest.strip_prefix('.') {
        Some(rest) => split_digits(rest),
        None => ("", rest),
    };
    let letters = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let exponent = letters.strip_prefix(['-', '+']).unwrap_or(letters);
    if exponent.bytes().all(|b| b.is_ascii_digit()) {
        let number = &text[..text.len() - suffix.len()];
        let has_digits = number.bytes().any(|b| b.is_ascii_digit());
        Ok(Parts { positive, num, denom, suffix, has_digits })
    } else {
        Err(QuantityError::FormatWrong)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

/// Exponent (of 10, or of 2 for binary suffixes) and format.
/// Upstream: suffix.go, suffixHandler.interpret
fn interpret(suffix: &str) -> Option<(i32, Format)> {
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    if let Some(index) = decimal.iter().position(|known| *known == suffix) {
        return Some((index as i32 * 3 - 9, Format::DecimalSI));
    }
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(index) = binary.iter().position(|known| *known == suffix) {
        return Some((index as i32 * 10 + 10, Format::BinarySI));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    let exponent: i64 = exponent.parse().ok()?;
    Some((exponent as i32, Format::DecimalExponent))
}

/// The part of ParseQuantity that makes a big decimal.
fn parse_slowly(
    parts: &Parts<'_>,
    exponent: i32,
    format: Format,
) -> Result<Quantity, QuantityError> {
    if !parts.has_digits {
        return Err(QuantityError::Numeric);
    }
    let digits = format!("{}{}", parts.num, parts.denom);
    let digits = digits.trim_start_matches('0');
    let mut scale = parts.denom.len() as i32;
    if format != Format::BinarySI {
        scale = scale.wrapping_sub(exponent);
    }
    // The time to parse digits is quadratic in their number.
    let is_too_long = digits.len() > MAX_SIGNIFICANT_DIGITS;
    if is_too_long || !(-MAX_DIGITS..=MAX_DIGITS).contains(&scale) {
        return Err(QuantityError::TooLarge);
    }
    let mut unscaled = match digits {
        "" => BigInt::ZERO,
        _ => digits.parse().map_err(|_| QuantityError::Numeric)?,
    };
    if format == Format::BinarySI {
        unscaled <<= exponent;
    }
    if !parts.positive {
        unscaled = -unscaled;
    }
    let mut dec = Dec { unscaled, scale };
    if !dec.is_zero() {
        dec.round_up(-NANO);
    }
    let mut format = format;
    if format == Format::BinarySI {
        if dec.cmp_magnitude(i64::MAX.unsigned_abs()) == Ordering::Greater {
            dec = Dec::from_int(if dec.is_negative() { -i64::MAX } else { i64::MAX }, 0);
        }
        if !dec.is_zero() && dec.cmp_magnitude(1) == Ordering::Less {
            format = Format::DecimalSI;
        }
    }
    Ok(Quantity::new(Amount::Dec(Arc::new(dec)), format, None))
}

/// The value in units of `10^unit`. Upstream: quantity.go, Quantity.ScaledValue
fn value_at(amount: &Amount, unit: i32) -> i64 {
    match amount {
        Amount::Int { value, scale } if *scale < unit => {
            negative_scale_int64(*value, unit.wrapping_sub(*scale))
        }
        Amount::Int { value, scale } => positive_scale_int64(*value, scale.wrapping_sub(unit)),
        Amount::Dec(dec) => scaled_value(dec, unit),
    }
}

/// Divides by a power of ten and rounds away from zero. Upstream: math.go, negativeScaleInt64
fn negative_scale_int64(base: i64, scale: i32) -> i64 {
    let mut value = base;
    let mut fraction = false;
    for _ in 0..scale {
        fraction |= value % 10 != 0;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if fraction { value + base.signum() } else { value }
}

/// Multiplies by a power of ten. On overflow, the result is the value that upstream's callers use:
/// 0 or the wrapped product, depending on the power. Upstream: math.go, positiveScaleInt64
fn positive_scale_int64(base: i64, scale: i32) -> i64 {
    let factor: i64 = match scale {
        0 => return base,
        1 => 10,
        2 => 100,
        3 => 1_000,
        6 => 1_000_000,
        9 => 1_000_000_000,
        _ => {
            let mut value = base;
            for _ in 0..scale {
                if value == 0 {
                    return 0;
                }
                let Some(product) = value.checked_mul(10) else {
                    return 0;
                };
                value = product;
            }
            return value;
        }
    };
    if base == i64::MIN { 0 } else { base.wrapping_mul(factor) }
}

/// The value of a big decimal in units of `10^unit`: rounded up, wrapping.
///
/// Upstream: scale_int.go, scaledValue
fn scaled_value(dec: &Dec, unit: i32) -> i64 {
    let dif = dec.scale.wrapping_add(unit);
    if dif <= 0 {
        return dec.unscaled_i64().wrapping_mul(power_of_ten(dif.unsigned_abs()));
    }
    let small = dec.unscaled < BigInt::from(i64::MAX);
    if small && dif < 19 {
        let (unscaled, divide) = (dec.unscaled_i64(), power_of_ten(dif.unsigned_abs()));
        let result = unscaled / divide;
        return if unscaled % divide == 0 { result } else { result.wrapping_add(1) };
    }
    // Upstream divides with a Euclidean remainder and adds one to an inexact quotient, so it rounds
    // up.
    let divisor = BigInt::from(10).pow(dif.unsigned_abs());
    let mut unscaled = &dec.unscaled / &divisor;
    if dec.unscaled > &unscaled * &divisor {
        unscaled += 1;
    }
    Dec { unscaled, scale: unit.wrapping_neg() }.unscaled_i64()
}

/// `int64(math.Pow10(n))` on amd64.
fn power_of_ten(power: u32) -> i64 {
    10_i64.checked_pow(power).unwrap_or(i64::MIN)
}

/// The double nearest to 10^n for small n. Upstream: Go's math.Pow10
fn pow10(n: i32) -> f64 {
    const EXACT: [f64; 10] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
    if let Some(power) = EXACT.get(n.unsigned_abs() as usize) {
        return if n < 0 { 1.0 / power } else { *power };
    }
    // Rust reads decimal numbers to the nearest double.
    let table = |power: u32| format!("1e{power}").parse::<f64>().unwrap_or(f64::INFINITY);
    if (0..=308).contains(&n) {
        let n = n.unsigned_abs();
        return table(n / 32 * 32) * table(n % 32);
    }
    if (-323..0).contains(&n) {
        let n = n.unsigned_abs();
        let high = format!("1e-{}", n / 32 * 32).parse::<f64>().unwrap_or(0.0);
        return high / table(n % 32);
    }
    if n > 0 { f64::INFINITY } else { 0.0 }
}

/// Compares by value: `1`, `1000m` and `1e0` are equal.
impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        if let (
            Amount::Int { value: ours, scale: our_scale },
            Amount::Int { value: theirs, scale: their_scale },
        ) = (&self.amount, &other.amount)
        {
            let (ours, theirs) = (i128::from(*ours), i128::from(*theirs));
            let apart = our_scale.abs_diff(*their_scale);
            if apart <= 18 {
                let factor = 10_i128.pow(apart);
                return if our_scale > their_scale {
                    ours * factor == theirs
                } else {
                    ours == theirs * factor
                };
            }
        }
        self.to_dec().reduced() == other.to_dec().reduced()
    }
}

impl Eq for Quantity {}

/// Compares by value, like [`Quantity::compare`].
impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.compare(other)
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The quantity as Kubernetes prints it.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.text {
            Some(text) if !text.is_empty() => f.write_str(text),
            _ => f.write_str(&self.canonical()),
        }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Quantity, QuantityError> {
        Quantity::parse(text)
    }
}

impl JsonSchema for Quantity {
    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let description = "A quantity of the Kubernetes API: `1`, `500m`, `128Mi`.";
        json_schema!({ "description": description, "type": "string" })
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Deserialized from a string or a number, since the API accepts both.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Quantity, D::Error> {
        struct AnyQuantity;
        impl Visitor<'_> for AnyQuantity {
            type Value = Quantity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity such as 500m, 0.5 or 1Gi")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Quantity::parse(text.trim()).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
                self.visit_str(&number.to_string())
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
                // As Go's encoding/json formats floats.
                let size = number.abs();
                if size != 0.0 && !(1e-6..1e21).contains(&size) {
                    self.visit_str(&format!("{number:e}"))
                } else {
                    self.visit_str(&number.to_string())
                }
            }
        }
        deserializer.deserialize_any(AnyQuantity)
    }
}
