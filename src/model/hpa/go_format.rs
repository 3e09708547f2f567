//! What Go prints for a format with nothing to fill in. Older releases take messages for formats: a
//! percent sign in the error of a metrics API comes out of them as something else.

/// Upstream: Go's fmt, Sprintf without arguments
#[must_use]
pub(super) fn without_arguments(format: &str) -> String {
    let mut printed = String::with_capacity(format.len());
    let mut rest = format;
    while let Some((text, verb)) = rest.split_once('%') {
        printed.push_str(text);
        rest = print_verb(&mut printed, verb);
    }
    printed.push_str(rest);
    printed
}

/// Prints the verb behind a percent sign, and gives what comes after it.
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

/// Skips an index such as `[1]`: there is no argument, so none is good. Gives whether it was one.
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

/// Skips digits, of which Go reads a number up to a million.
fn skip_number(format: &str) -> &str {
    format.trim_start_matches(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go printed.
    #[test]
    fn verbs_miss_their_arguments() {
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
