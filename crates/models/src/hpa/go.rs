//! Conversions and formats of the Go language that the controller's results depend on.

/// Go's conversion of a float to int32 on amd64: truncated; the smallest integer for NaN and for
/// values that do not fit.
pub(crate) fn go_i32(value: f64) -> i32 {
    let truncated = value.trunc();
    if (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&truncated) {
        truncated as i32
    } else {
        i32::MIN
    }
}

/// Go's conversion of a float to int64 on amd64: truncated; the smallest integer for NaN and for
/// values that do not fit.
pub(crate) fn go_i64(value: f64) -> i64 {
    let truncated = value.trunc();
    if truncated >= i64::MIN as f64 && truncated < i64::MAX as f64 {
        truncated as i64
    } else {
        i64::MIN
    }
}

/// Formats a format string without arguments. Older releases use messages as format strings, so a
/// percent sign in the error of a metrics API is replaced.
///
/// Upstream: Go's fmt, Sprintf without arguments
#[must_use]
pub(crate) fn without_arguments(format: &str) -> String {
    let mut printed = String::with_capacity(format.len());
    let mut rest = format;
    while let Some((text, verb)) = rest.split_once('%') {
        printed.push_str(text);
        rest = print_verb(&mut printed, verb);
    }
    printed.push_str(rest);
    printed
}

/// Prints the verb after a percent sign and returns the rest of the format.
fn print_verb<'f>(printed: &mut String, format: &'f str) -> &'f str {
    let mut good_index = true;
    let mut rest = format.trim_start_matches(['#', '0', '+', '-', ' ']);
    let (mut after_index, past) = skip_index(rest, &mut good_index);
    rest = past;
    if let Some(past) = rest.strip_prefix('*') {
        printed.push_str("%!(BADWIDTH)");
        (rest, after_index) = (past, false);
    } else {
        let past = skip_number(rest);
        if after_index && past.len() < rest.len() {
            good_index = false;
        }
        rest = past;
    }
    if let Some(past) = rest.strip_prefix('.') {
        if after_index {
            good_index = false;
        }
        (after_index, rest) = skip_index(past, &mut good_index);
        if let Some(past) = rest.strip_prefix('*') {
            printed.push_str("%!(BADPREC)");
            (rest, after_index) = (past, false);
        } else {
            rest = skip_number(rest);
        }
    }
    if !after_index {
        rest = skip_index(rest, &mut good_index).1;
    }
    let mut characters = rest.chars();
    match characters.next() {
        None => printed.push_str("%!(NOVERB)"),
        Some('%') => printed.push('%'),
        Some(verb) => {
            printed.push_str("%!");
            printed.push(verb);
            printed.push_str(if good_index { "(MISSING)" } else { "(BADINDEX)" });
        }
    }
    characters.as_str()
}

/// Skips an index such as `[1]`, which is always bad because there are no arguments. Returns true
/// if there was an index, and the rest of the format.
///
/// Upstream: Go's fmt, argNumber and parseArgNumber
fn skip_index<'f>(format: &'f str, good: &mut bool) -> (bool, &'f str) {
    if !format.starts_with('[') {
        return (false, format);
    }
    *good = false;
    match format.find(']') {
        Some(end) => {
            let digits = &format[1..end];
            let number = !digits.is_empty() && skip_number(digits).is_empty();
            (number, &format[end + 1..])
        }
        None => (false, &format[1..]),
    }
}

/// Skips digits. Go reads numbers of up to a million.
fn skip_number(format: &str) -> &str {
    format.trim_start_matches(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_become_integers_as_in_go_on_amd64() {
        for (float, integer) in [
            (0.0, 0),
            (-0.9, 0),
            (2.9, 2),
            (-2.9, -2),
            (2_147_483_647.9, i32::MAX),
            (2_147_483_648.0, i32::MIN),
            (-2_147_483_648.9, i32::MIN),
            (1e300, i32::MIN),
            (f64::INFINITY, i32::MIN),
            (f64::NAN, i32::MIN),
        ] {
            assert_eq!(go_i32(float), integer, "{float}");
        }
    }

    /// The expected values are Go's output.
    #[test]
    fn format_verbs_report_missing_arguments() {
        for (format, printed) in [
            ("nothing", "nothing"),
            ("100%", "100%!(NOVERB)"),
            ("100% busy", "100%!b(MISSING)usy"),
            ("100%% busy", "100% busy"),
            ("%5.2f %d %é", "%!f(MISSING) %!d(MISSING) %!é(MISSING)"),
            ("%*d %.*d", "%!(BADWIDTH)%!d(MISSING) %!(BADPREC)%!d(MISSING)"),
            ("%[1]d %[x]d %[", "%!d(BADINDEX) %!d(BADINDEX) %!(NOVERB)"),
            ("%[1]5d %[1].2f %.[1]d", "%!d(BADINDEX) %!f(BADINDEX) %!d(BADINDEX)"),
        ] {
            assert_eq!(without_arguments(format), printed, "{format}");
        }
    }
}
