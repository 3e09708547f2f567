//! How an amount of a recommendation was derived, as text for people: amounts have units, and the
//! exact number of bytes where a step ends.

use std::fmt;

use super::aggregate::Resource;
use super::estimator::{Confidence, Estimation};
use super::float::{Amount, MAX_AMOUNT};
use super::histogram::{BUCKETS, BucketShare};
use super::recommendation::binary_unit;
use crate::counted::{counted_amount, thousands};
use crate::quantity::Quantity;

impl Resource {
    /// An amount for people: `25m`, `2 cores`, `105.2Mi`.
    #[must_use]
    pub fn text(self, amount: Amount) -> String {
        match self {
            Resource::Cpu => match (amount / 1000, amount % 1000) {
                (cores, 0) if cores > 0 => counted_amount(cores, "core"),
                _ => format!("{amount}m"),
            },
            Resource::Memory => match binary_unit(amount) {
                Some((size, name)) => {
                    let text = format!("{:.1}", amount as f64 / size as f64);
                    format!("{}{name}", text.strip_suffix(".0").unwrap_or(&text))
                }
                None => counted_amount(amount, "byte"),
            },
        }
    }

    /// As [`Resource::text`], with the exact number of bytes if the text rounds them: `105.2Mi
    /// (110,265,643 bytes)`. The largest amount is named: `the largest amount, 100,000,000,000
    /// cores`.
    #[must_use]
    pub fn exact(self, amount: Amount) -> String {
        let short = self.text(amount);
        let is_rounded = binary_unit(amount).is_some_and(|(size, _)| amount * 10 % size != 0);
        let exact = match self {
            Resource::Memory if is_rounded => {
                format!("{short} ({})", counted_amount(amount, "byte"))
            }
            _ => short,
        };
        match amount {
            MAX_AMOUNT => format!("the largest amount, {exact}"),
            _ => exact,
        }
    }
}

/// A requested amount for people: memory as in [`Resource::text`], other resources as written.
#[must_use]
pub fn request_text(resource: &str, amount: &Quantity) -> String {
    match amount.milli() / 1000 {
        bytes if resource == Resource::Memory.name() && bytes > 0 => Resource::Memory.text(bytes),
        _ => amount.to_string(),
    }
}

impl BucketShare {
    /// The bucket for people: `bucket 12 of cpu, from 159m to 177m`.
    #[must_use]
    pub fn text(&self, resource: Resource) -> String {
        let BucketShare { bucket, start, end, .. } = *self;
        let (name, start) = (resource.name(), resource.exact(start));
        match end {
            Some(end) => {
                format!("bucket {bucket} of {name}, from {start} to {}", resource.exact(end))
            }
            None => format!("bucket {bucket} of {name}, {LAST_BUCKET} {start}"),
        }
    }
}

/// The description of the last bucket, before its start.
const LAST_BUCKET: &str = "the last one, which starts at";

/// How the amount was derived. The last amount is the result:
/// `the 90th percentile is in bucket 12, which ends at 177m; with the margin 203m`.
impl fmt::Display for Estimation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&derivation(self))
    }
}

/// `the 90th percentile is in bucket 12, which ends at 177m; with the margin 203m; …`. The last
/// amount is the result.
fn derivation(estimation: &Estimation) -> String {
    let Estimation { resource, percentile, base, with_margin, minimum, amount, .. } = *estimation;
    let is_minimum = amount == minimum;
    let at_least = match is_minimum {
        true => format!("; at least the minimum {}", resource.exact(minimum)),
        false => String::new(),
    };
    let Some(bucket) = estimation.bucket else {
        return format!("no samples, so the minimum {}", resource.exact(minimum));
    };
    let position = if bucket + 1 == BUCKETS { LAST_BUCKET } else { "which ends at" };
    let base = resource.exact(base);
    let percentile = ordinal(percentile);
    let head = format!("the {percentile} percentile is in bucket {bucket}, {position} {base}");
    let Some(Confidence { confidence, multiplier }) = estimation.confidence else {
        // Without a minimum, this is the result.
        let with_margin = match is_minimum {
            true => resource.text(with_margin),
            false => resource.exact(with_margin),
        };
        return format!("{head}; with the margin {with_margin}{at_least}");
    };
    let head = format!("{head}; with the margin {}", resource.text(with_margin));
    if !multiplier.is_finite() {
        let largest = resource.exact(MAX_AMOUNT);
        return format!("{head}; without any confidence yet, {largest}{at_least}");
    }
    if confidence <= 0.0 {
        return format!("{head}; without any confidence yet, 0{at_least}");
    }
    let result = match is_minimum {
        true => String::new(),
        false => format!(" → {}", resource.exact(amount)),
    };
    let (factor, confidence) = (factor(multiplier), factor(confidence));
    format!("{head}; times {factor} for a confidence of {confidence}{result}{at_least}")
}

/// A fraction as the ordinal number of a percentile: 0.9 is `90th`, and 0.995 is `99.5th`.
fn ordinal(fraction: f64) -> String {
    // The product is not always exact: 0.55 * 100 is 55.00000000000001.
    let percent = format!("{:.6}", fraction * 100.0);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    let suffix = match percent {
        _ if percent.contains('.') || percent.ends_with("11") => "th",
        _ if percent.ends_with("12") || percent.ends_with("13") => "th",
        _ if percent.ends_with('1') => "st",
        _ if percent.ends_with('2') => "nd",
        _ if percent.ends_with('3') => "rd",
        _ => "th",
    };
    format!("{percent}{suffix}")
}

/// A factor with at most four decimals.
fn factor(value: f64) -> String {
    if value < 0.0001 {
        return "less than 0.0001".to_owned();
    }
    if value >= 1e6 {
        return thousands(value.round() as u64);
    }
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vpa::Bound;

    #[test]
    fn amounts_have_units() {
        let memory = |bytes| Resource::Memory.exact(bytes);
        assert_eq!(memory(110_265_643), "105.2Mi (110,265,643 bytes)");
        assert_eq!(memory(262_144_000), "250Mi");
        assert_eq!(memory(3 << 29), "1.5Gi");
        assert_eq!([memory(0), memory(1), memory(900)], ["0 bytes", "1 byte", "900 bytes"]);
        let largest = "the largest amount, 90.9Ti (100,000,000,000,000 bytes)";
        assert_eq!(memory(MAX_AMOUNT), largest);
        let cpu = |milli| Resource::Cpu.exact(milli);
        assert_eq!([cpu(0), cpu(587), cpu(1000)], ["0m", "587m", "1 core"]);
        assert_eq!([cpu(1234), cpu(4000)], ["1234m", "4 cores"]);
        assert_eq!(cpu(MAX_AMOUNT), "the largest amount, 100,000,000,000 cores");
        // The largest amount can be rounded up.
        assert_eq!(memory(MAX_AMOUNT + 1), "90.9Ti (100,000,000,000,001 bytes)");
    }

    #[test]
    fn buckets_have_their_bounds() {
        let share = BucketShare { bucket: 14, start: 195, end: Some(215), share: 1.0 };
        assert_eq!(share.text(Resource::Cpu), "bucket 14 of cpu, from 195m to 215m");
        let last = BucketShare { bucket: 175, start: 1_021_109, end: None, share: 1.0 };
        let text = "bucket 175 of cpu, the last one, which starts at 1021109m";
        assert_eq!(last.text(Resource::Cpu), text);
    }

    #[test]
    fn percentiles_have_ordinal_numbers() {
        let fractions = [0.9, 0.5, 0.55, 0.01, 0.22, 0.93, 0.11, 0.12, 0.13, 0.995, 0.0, 1.0];
        let texts = [
            "90th", "50th", "55th", "1st", "22nd", "93rd", "11th", "12th", "13th", "99.5th", "0th",
            "100th",
        ];
        assert_eq!(fractions.map(ordinal), texts);
    }

    #[test]
    fn a_derivation_ends_with_its_result() {
        let of = |bound, confidence, amount| Estimation {
            resource: Resource::Memory,
            bound,
            percentile: 0.9,
            bucket: Some(8),
            base: 110_265_643,
            with_margin: 126_805_489,
            confidence,
            minimum: 26_214_400,
            amount,
        };
        let head = "the 90th percentile is in bucket 8, which ends at 105.2Mi (110,265,643 bytes); \
                    with the margin 120.9Mi";
        let target = derivation(&of(Bound::Target, None, 126_805_489));
        assert_eq!(target, format!("{head} (126,805,489 bytes)"));
        let lower = |confidence, multiplier, amount| {
            derivation(&of(Bound::Lower, Some(Confidence { confidence, multiplier }), amount))
        };
        let factor = "times 0.996 for a confidence of 0.5";
        assert_eq!(
            lower(0.5, 0.996, 126_298_267),
            format!("{head}; {factor} → 120.4Mi (126,298,267 bytes)")
        );
        let small = "times less than 0.0001 for a confidence of less than 0.0001";
        let minimum = "at least the minimum 25Mi";
        assert_eq!(lower(1e-5, 1e-5, 26_214_400), format!("{head}; {small}; {minimum}"));
        let none = "without any confidence yet, 0";
        assert_eq!(lower(0.0, 0.0, 26_214_400), format!("{head}; {none}; {minimum}"));
        let largest = "the largest amount, 90.9Ti (100,000,000,000,000 bytes)";
        let most = format!("without any confidence yet, {largest}");
        assert_eq!(lower(0.0, f64::INFINITY, MAX_AMOUNT), format!("{head}; {most}"));
    }
}
