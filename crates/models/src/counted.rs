//! Numbers of things and lists of names as text.

/// `1,234,567`. The number can have any width: in WebAssembly, `usize` has 32 bits.
pub fn thousands(number: impl ToString + Copy) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 tick`, `2 ticks`.
pub fn counted(number: usize, what: &str) -> String {
    with_noun(&thousands(number), what)
}

/// As [`counted`], for an amount that `usize` may not hold.
pub(crate) fn counted_amount(number: i64, what: &str) -> String {
    with_noun(&thousands(number), what)
}

fn with_noun(number: &str, what: &str) -> String {
    // The plural of `series` is `series`.
    let plural = if number == "1" || what.ends_with('s') { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Returns names as a list in a sentence: `a, b or c` for the word `or`.
pub fn listed(names: &[&str], word: &str) -> String {
    match names.split_last() {
        Some((last, others @ [_, ..])) => format!("{} {word} {last}", others.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn nouns_have_their_plural() {
        for (number, noun, text) in [
            (1, "value", "1 value"),
            (2, "value", "2 values"),
            (1, "series", "1 series"),
            (2000, "series", "2,000 series"),
        ] {
            assert_eq!(counted(number, noun), text);
        }
    }
}
