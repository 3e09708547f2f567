//! Shows two values of a field side by side or one below the other, so that the difference is easy
//! to see.

use std::fmt::Write as _;
use std::ops::Range;

use super::layout::width;
use super::style::{BAD, MODEL, SEEN, paint};
use kube_lockstep_sim::compare::FieldDifference;

/// The maximum width of values that are shown side by side.
const SHORT: usize = 28;

/// Returns true if both values fit on one line.
pub(crate) fn is_short(difference: &FieldDifference) -> bool {
    let short = |text: &str| width(text) <= SHORT && !text.contains('\n');
    short(&difference.model) && short(&difference.upstream)
}

/// `model 7 | upstream 6`, with the model's value padded to a width.
pub(super) fn side_by_side(difference: &FieldDifference, engine: &str, fill: usize) -> String {
    let pad = " ".repeat(fill.saturating_sub(width(&difference.model)));
    format!(
        "model {}{pad} | {engine} {}",
        paint(MODEL, &difference.model),
        paint(SEEN, &difference.upstream)
    )
}

/// The values below each other in pieces of the same length, with marks below the differences.
pub(super) fn below_each_other(
    difference: &FieldDifference,
    engine: &str,
    indent: usize,
    columns: usize,
) -> String {
    let fill = "model".len().max(engine.len());
    let room = columns.saturating_sub(indent + fill + 2).max(20);
    let (model, seen) = (one_line(&difference.model), one_line(&difference.upstream));
    let (model_mark, seen_mark) = differing(&model, &seen);
    let mut mark = model_mark.start..model_mark.end.max(seen_mark.end);
    let same = model.len() - model_mark.len();
    if same * 4 < model.len().max(seen.len()) {
        // If nearly everything differs, only the start of the difference is marked, unless it is
        // the start of the value.
        mark.end = mark.start + usize::from(mark.start > 0);
    }
    let mut out = String::new();
    let sides = [("model", &model, &model_mark, MODEL), (engine, &seen, &seen_mark, SEEN)];
    if model.len().min(seen.len()) <= room && mark.start == 0 {
        // If one value is short and they have nothing in common, they are shown one after the
        // other.
        for (label, text, _, style) in sides {
            let text: String = text.iter().collect();
            let mut label = format!("{label:fill$}  ");
            for line in super::layout::wrap(&text, room) {
                let _ = writeln!(out, "{:indent$}{label}{}", "", paint(style, &line));
                label = " ".repeat(fill + 2);
            }
        }
        return out;
    }
    for start in (0..model.len().max(seen.len())).step_by(room) {
        let end = start + room;
        for (label, text, mark, style) in sides {
            if start < text.len() || (start == 0 && text.is_empty()) {
                let piece = piece(text, start..end, mark, style);
                let _ = writeln!(out, "{:indent$}{label:fill$}  {piece}", "");
            }
        }
        let (from, to) = (mark.start.clamp(start, end), mark.end.clamp(start, end));
        if from < to {
            let space = indent + fill + 2 + from - start;
            let _ = writeln!(out, "{:space$}{}", "", paint(BAD, &"^".repeat(to - from)));
        }
    }
    out
}

/// Both values, each in the parts before, in and after what differs. If nearly everything differs,
/// nothing is marked.
#[cfg(feature = "pages")]
pub(crate) fn parts(model: &str, seen: &str) -> [[String; 3]; 2] {
    let (one, other): (Vec<char>, Vec<char>) = (model.chars().collect(), seen.chars().collect());
    let (in_one, in_other) = differing(&one, &other);
    let same = one.len() - in_one.len();
    if same * 4 < one.len().max(other.len()) {
        return [model, seen].map(|text| [text.to_owned(), String::new(), String::new()]);
    }
    let split = |text: &[char], mark: Range<usize>| {
        let part = |range: Range<usize>| text[range].iter().collect::<String>();
        [part(0..mark.start), part(mark.clone()), part(mark.end..text.len())]
    };
    [split(&one, in_one), split(&other, in_other)]
}

fn one_line(text: &str) -> Vec<char> {
    text.chars().map(|c| if c == '\n' { ' ' } else { c }).collect()
}

/// The differing parts of two texts: everything except the common prefix and suffix.
fn differing(one: &[char], other: &[char]) -> (Range<usize>, Range<usize>) {
    let begin = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let most = one.len().min(other.len()) - begin;
    let end =
        one.iter().rev().zip(other.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
    (begin..one.len() - end, begin..other.len() - end)
}

fn piece(text: &[char], range: Range<usize>, mark: &Range<usize>, style: anstyle::Style) -> String {
    let part = |from: usize, to: usize| -> String {
        let (from, to) = (from.min(text.len()), to.min(text.len()));
        if from < to { text[from..to].iter().collect() } else { String::new() }
    };
    let (from, to) =
        (mark.start.clamp(range.start, range.end), mark.end.clamp(range.start, range.end));
    [part(range.start, from), paint(style, &part(from, to)), part(to.max(from), range.end)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    fn difference(model: &str, upstream: &str) -> FieldDifference {
        FieldDifference::new("field", model, upstream)
    }

    #[test]
    fn markers_are_below_the_difference() {
        let long = difference("recommended size is 7 pods", "recommended size is 16 pods");
        assert_eq!(
            plain(&below_each_other(&long, "upstream", 2, 80)),
            format!(
                "  model     recommended size is 7 pods\n  upstream  recommended size is 16 pods\n\
                 {:32}^^\n",
                ""
            )
        );
    }

    #[test]
    fn long_values_are_cut_at_the_same_positions() {
        let long = difference("aaaaaaaaaaaaaaaaaaaabbbbbb", "aaaaaaaaaaaaaaaaaaaabbcbbb");
        let text = plain(&below_each_other(&long, "upstream", 0, 30));
        assert_eq!(
            text,
            "model     aaaaaaaaaaaaaaaaaaaa\nupstream  aaaaaaaaaaaaaaaaaaaa\n\
             model     bbbbbb\nupstream  bbcbbb\n            ^\n"
        );
    }

    #[test]
    fn an_appended_text_is_marked_at_its_start() {
        let (one, other) = (one_line("abc"), one_line("abcabc"));
        assert_eq!(differing(&one, &other), (3..3, 3..6));
        assert_eq!(differing(&other, &one), (3..6, 3..3));
    }
}
