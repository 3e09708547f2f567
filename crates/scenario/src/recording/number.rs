//! Numbers as they are written in CSV files: `0.25`, `0,25`, `1.234,5`, `300m`, `12.5 MiB`, `25%`.

use crate::diagnostic::Diagnostic;
use crate::recorded::DecimalMark;
use crate::syntax::Syntax;
use kube_autoscaler_models::quantity::Quantity;

/// Suffixes that Grafana and spreadsheets write after a number, and the factor of each. Those of
/// quantities are read before.
const SUFFIXES: [(&str, f64); 19] = [
    ("µ", 1e-6),
    ("K", 1e3),
    ("Mil", 1e6),
    ("Bil", 1e9),
    ("Tri", 1e12),
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1024.0 * 1024.0),
    ("GiB", 1024.0 * 1024.0 * 1024.0),
    ("TiB", 1024.0 * 1024.0 * 1024.0 * 1024.0),
    ("core", 1.0),
    ("cores", 1.0),
    ("mcores", 1e-3),
    ("millicores", 1e-3),
];

/// Units of rates, which may follow a suffix: `1.5K req/s`.
const RATES: [&str; 6] = ["req/s", "reqs/s", "ops/s", "msg/s", "rps", "/s"];

/// The advice for values with a unit that is unknown.
const FORMATTED: &str =
    "leave a field empty if there is no value; in Grafana, switch off \"Formatted data\"";

/// The format of the numbers of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberFormat {
    pub mark: DecimalMark,
    /// One percent, in the unit of the file. None: percent signs are not allowed, because no unit
    /// says what they are percent of.
    pub percent: Option<f64>,
    /// The syntax of hints.
    pub syntax: Syntax,
}

impl NumberFormat {
    /// Reads a number or a quantity. NaN: there is no value.
    pub(super) fn read(self, text: &str) -> Result<f64, Diagnostic> {
        if self.mark == DecimalMark::Point
            && let Ok(number) = text.parse()
        {
            return Ok(number);
        }
        if matches!(text, "" | "-" | "null" | "NaN" | "undefined") {
            return Ok(f64::NAN);
        }
        let expected = || {
            let found = crate::node::shorten(text);
            let what = format!("expected a number or a quantity, found {found}");
            let hint = match self.mark {
                DecimalMark::Point if text.contains(',') => {
                    let set = self.syntax.set("decimal", "comma");
                    format!("{set} if the numbers have a decimal comma")
                }
                DecimalMark::Comma if text.contains('.') => {
                    let set = self.syntax.set("decimal", "point");
                    format!("{set} if the numbers have a decimal point")
                }
                _ => FORMATTED.to_owned(),
            };
            Diagnostic::new(what).hint(hint)
        };
        let digits = text.rfind(|c: char| c.is_ascii_digit()).ok_or_else(expected)? + 1;
        let (number, suffix) = text.split_at(digits);
        let plain = self.plain(number).ok_or_else(expected)?;
        let suffix = suffix.trim();
        if suffix == "%" && self.percent.is_none() {
            let what =
                format!("found {text}, but `unit` does not say what the percentage refers to");
            let units = [("1%", "for percent of the request"), ("10m", "for percent of a core")];
            return Err(Diagnostic::new(what).hint(self.syntax.set_one_of("unit", &units)));
        }
        // A suffix of quantities may be an exponent, so both are read together.
        if let Ok(quantity) = Quantity::parse(&format!("{plain}{suffix}")) {
            return Ok(quantity.approx_f64());
        }
        let rate = RATES.iter().find_map(|rate| suffix.strip_suffix(rate)).unwrap_or(suffix);
        let factor = match rate.trim() {
            "" => Some(1.0),
            "%" => self.percent,
            known => SUFFIXES.iter().find(|(it, _)| *it == known).map(|(_, factor)| *factor),
        };
        let number: f64 = plain.parse().map_err(|_| expected())?;
        factor.map(|factor| number * factor).ok_or_else(expected)
    }

    /// The number with a decimal point and without marks between thousands. None: a mark is at the
    /// wrong place.
    fn plain(self, number: &str) -> Option<String> {
        let (decimal, thousands) = match self.mark {
            DecimalMark::Point => ('.', ','),
            DecimalMark::Comma => (',', '.'),
        };
        let (whole, fraction) = number.split_once(decimal).unwrap_or((number, ""));
        let is_thousands = |c: char| c == thousands || is_space(c) || c == '\'';
        let mut groups = whole.split(is_thousands);
        let mut plain = groups.next().unwrap_or_default().to_owned();
        for group in groups {
            if group.len() != 3 {
                return None;
            }
            plain.push_str(group);
        }
        if !fraction.is_empty() {
            plain.push('.');
            plain.push_str(fraction);
        }
        Some(plain)
    }
}

/// Spaces that separate thousands, as in French. A space before a suffix is not part of the number.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{202f}')
}

/// The numbers of a file that show its decimal mark.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    /// A number with a decimal point.
    point: Option<Found>,
    /// A number with a decimal comma.
    comma: Option<Found>,
    /// A number with a comma that may be either: `1,234`.
    either: Option<Found>,
}

/// A number and its line.
#[derive(Clone, Debug)]
struct Found {
    line: u64,
    text: String,
}

impl Evidence {
    /// Adds a number.
    pub(super) fn add(&mut self, text: &str, line: u64) {
        let found = || Some(Found { line, text: text.to_owned() });
        let (first, last) = match (text.find([',', '.']), text.rfind([',', '.'])) {
            (Some(first), Some(last)) => (first, last),
            _ => return,
        };
        let is_comma = |at: usize| text.as_bytes().get(at) == Some(&b',');
        // Several equal marks are between thousands; of two different ones, the last is decimal.
        let several = first != last && is_comma(first) == is_comma(last);
        let decimal_is_comma = is_comma(last) != several;
        let slot = if decimal_is_comma { &mut self.comma } else { &mut self.point };
        if first == last && may_be_thousands(text, last) {
            // A single point is usually decimal.
            if is_comma(last) && self.either.is_none() {
                self.either = found();
            }
        } else if slot.is_none() {
            *slot = found();
        }
    }

    /// The decimal mark of the file.
    pub(super) fn mark(self, syntax: Syntax) -> Result<DecimalMark, Diagnostic> {
        let hint = syntax
            .pick("set `decimal` to comma or to point", "add `decimal=comma` or `decimal=point`");
        match (self.point, self.comma, self.either) {
            (Some(point), Some(comma), _) => {
                let (Found { line, text }, Found { line: other, text: with_comma }) =
                    (point, comma);
                let what = format!(
                    " has numbers with a decimal point and with a decimal comma: {text} in line \
                     {line}, {with_comma} in line {other}"
                );
                Err(Diagnostic::new(what).hint(hint))
            }
            (None, None, Some(Found { line, text })) => {
                let both = [text.replace(',', "."), text.replace(',', "")];
                let what = format!(":{line}: {text} can be {} or {}", both[0], both[1]);
                Err(Diagnostic::new(what).hint(hint))
            }
            (None, Some(_), _) => Ok(DecimalMark::Comma),
            (_, None, _) => Ok(DecimalMark::Point),
        }
    }
}

/// Returns true if a mark may separate thousands: one to three digits before it, the first of which
/// is not zero, and three after it.
fn may_be_thousands(text: &str, mark: usize) -> bool {
    let whole = text[..mark].trim_start_matches(['-', '+']);
    let after = text[mark + 1..].find(|c: char| !c.is_ascii_digit());
    let fraction = after.unwrap_or(text.len() - mark - 1);
    (1..=3).contains(&whole.len()) && !whole.starts_with('0') && fraction == 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(mark: DecimalMark, text: &str) -> Result<f64, String> {
        NumberFormat { mark, percent: Some(1.0), syntax: Syntax::Scenario }
            .read(text)
            .map_err(|error| error.what)
    }

    #[test]
    fn numbers_have_suffixes() {
        for (text, expected) in [
            ("0.25", 0.25),
            ("-3", -3.0),
            ("1e3", 1000.0),
            ("300m", 0.3),
            ("300 m", 0.3),
            ("2.5k", 2500.0),
            ("1.50 K", 1500.0),
            ("2 Mil", 2e6),
            ("1,721,992.25", 1_721_992.25),
            ("12.5 MiB", 13_107_200.0),
            ("12.5 MB", 12_500_000.0),
            ("2Gi", 2_147_483_648.0),
            ("0.3 cores", 0.3),
            ("300 mcores", 0.3),
            ("12 req/s", 12.0),
            ("1.5K req/s", 1500.0),
            ("1.25%", 1.25),
            ("1.25 %", 1.25),
        ] {
            assert_eq!(read(DecimalMark::Point, text), Ok(expected), "{text}");
        }
        let percentages = NumberFormat {
            mark: DecimalMark::Point,
            percent: Some(0.01),
            syntax: Syntax::Scenario,
        };
        assert_eq!(percentages.read("50%"), Ok(0.5));
        assert_eq!(percentages.read("0.5"), Ok(0.5));
        for text in ["", "-", "null", "NaN", "undefined"] {
            assert!(read(DecimalMark::Point, text).is_ok_and(f64::is_nan), "{text}");
        }
        for text in ["fast", "12 parsecs", "1,2", "5 min", "300 ms", "12,34,567"] {
            let error = read(DecimalMark::Point, text).expect_err(text);
            assert!(error.contains("expected a number or a quantity"), "{error}");
        }
    }

    #[test]
    fn numbers_have_a_decimal_comma() {
        for (text, expected) in [
            ("0,25", 0.25),
            ("7", 7.0),
            ("1.234,5", 1234.5),
            ("1.234", 1234.0),
            ("1\u{202f}234,5", 1234.5),
            ("1'234,5", 1234.5),
            ("300,5 m", 0.3005),
            ("1,25 %", 1.25),
            ("1,5E3", 1500.0),
        ] {
            assert_eq!(read(DecimalMark::Comma, text), Ok(expected), "{text}");
        }
        let format =
            NumberFormat { mark: DecimalMark::Comma, percent: None, syntax: Syntax::Scenario };
        let error = format.read("0.25").expect_err("a decimal point");
        let hint = error.hint_text().unwrap_or_default();
        assert_eq!(hint, "set `decimal` to point if the numbers have a decimal point");
    }

    fn mark(numbers: &[&str]) -> Result<DecimalMark, String> {
        let mut evidence = Evidence::default();
        for (line, number) in (2..).zip(numbers) {
            evidence.add(number, line);
        }
        evidence.mark(Syntax::Scenario).map_err(|error| error.what)
    }

    #[test]
    fn the_numbers_of_a_file_have_one_decimal_mark() {
        for numbers in [&["0,25"][..], &["1,234", "0,5"], &["1.234,5"], &["1.234.567"], &["2,5%"]] {
            assert_eq!(mark(numbers), Ok(DecimalMark::Comma), "{numbers:?}");
        }
        for numbers in [&["7"][..], &["0.25"], &["1.234"], &["1,234.5"], &["1,234,567", "1,234"]] {
            assert_eq!(mark(numbers), Ok(DecimalMark::Point), "{numbers:?}");
        }
        let either = mark(&["7", "1,234", "2,345"]).expect_err("unclear");
        assert_eq!(either, ":3: 1,234 can be 1.234 or 1234");
        let both = mark(&["0,25", "0.5"]).expect_err("both");
        assert!(both.ends_with("0.5 in line 3, 0,25 in line 2"), "{both}");
    }
}
