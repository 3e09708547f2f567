//! Random changes of texts, for suites that corrupt fixtures.

use proptest::prelude::*;
use proptest::sample::Index;

/// A change of a text.
#[derive(Clone, Debug)]
pub enum Change {
    DropLine(Index),
    RepeatLine(Index),
    SwapLines(Index, Index),
    Indent(Index, usize),
    Insert(Index, String),
    Drop(Index, usize),
    Splice(Index, Index, usize),
}

/// A random change, by lines or by characters.
pub fn change() -> impl Strategy<Value = Change> {
    let index = any::<Index>;
    let word = prop_oneof![
        "[ -~]{1,6}",
        "\\PC{1,4}",
        Just("\t".to_owned()),
        Just(": {".to_owned()),
        Just("- ".to_owned()),
        Just("9223372036854775808".to_owned()),
        Just("-1".to_owned()),
        Just("~".to_owned()),
        Just("!!str ".to_owned()),
        Just("&a *a".to_owned()),
        Just("<<: ".to_owned()),
        Just("1e999999999".to_owned()),
        Just("\u{0}".to_owned()),
    ];
    prop_oneof![
        index().prop_map(Change::DropLine),
        index().prop_map(Change::RepeatLine),
        (index(), index()).prop_map(|(one, other)| Change::SwapLines(one, other)),
        (index(), 0..9_usize).prop_map(|(line, by)| Change::Indent(line, by)),
        (index(), word).prop_map(|(at, word)| Change::Insert(at, word)),
        (index(), 1..20_usize).prop_map(|(at, count)| Change::Drop(at, count)),
        (index(), index(), 1..60_usize)
            .prop_map(|(to, from, count)| { Change::Splice(to, from, count) }),
    ]
}

/// The text after these changes.
pub fn changed(text: &str, changes: &[Change]) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for change in changes {
        let mut lines: Vec<String> =
            text.iter().collect::<String>().lines().map(str::to_owned).collect();
        if lines.is_empty() {
            break;
        }
        let count = lines.len();
        match change {
            Change::DropLine(line) => drop(lines.remove(line.index(count))),
            Change::RepeatLine(line) => {
                let line = line.index(count);
                lines.insert(line, lines[line].clone());
            }
            Change::SwapLines(one, other) => lines.swap(one.index(count), other.index(count)),
            Change::Indent(line, by) => {
                let line = &mut lines[line.index(count)];
                *line = format!("{:by$}{}", "", line.trim_start());
            }
            Change::Insert(at, word) => {
                let at = at.index(text.len() + 1);
                text.splice(at..at, word.chars());
                continue;
            }
            Change::Drop(at, count) => {
                let at = at.index(text.len() + 1);
                let end = (at + count).min(text.len());
                text.drain(at..end);
                continue;
            }
            Change::Splice(to, from, count) => {
                let from = from.index(text.len() + 1);
                let piece = text[from..(from + count).min(text.len())].to_vec();
                let to = to.index(text.len() + 1);
                text.splice(to..to, piece);
                continue;
            }
        }
        text = (lines.join("\n") + "\n").chars().collect();
    }
    text.into_iter().collect()
}
