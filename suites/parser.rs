//! The parser of scenarios on arbitrary text and on corrupted fixtures: it returns a scenario or an
//! error with a position in the file, and never panics.

mod support;

use std::sync::OnceLock;

use kube_lockstep::scenario;
use proptest::prelude::*;
use proptest::sample::Index;

fn fixtures() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let read = |path| std::fs::read_to_string(path).expect("a fixture can be read");
        support::fixtures().into_iter().map(read).collect()
    })
}

/// Parses a text, and checks that problems have positions inside the file.
fn parse(text: &str) -> Result<(), TestCaseError> {
    let no_files = |_: &str| Err("there is no other file".to_owned());
    match scenario::parse("any.yaml", text, &no_files) {
        Ok(read) => {
            let written = scenario::to_yaml(&read, None);
            let again = scenario::parse("any.yaml", &written, &no_files);
            let again =
                again.map_err(|error| TestCaseError::fail(format!("{error}\n{written}")))?;
            prop_assert_eq!(&again.hash, &read.hash, "{}\n{}", text, written);
        }
        Err(error) => {
            prop_assert!(!error.problems.is_empty());
            let lines = text.lines().count().max(1);
            for problem in &error.problems {
                prop_assert!(problem.column >= 1, "{error}");
                prop_assert!((1..=lines + 1).contains(&problem.line), "{error}\n{text}");
            }
        }
    }
    Ok(())
}

/// A change of a text.
#[derive(Clone, Debug)]
enum Change {
    DropLine(Index),
    RepeatLine(Index),
    SwapLines(Index, Index),
    Indent(Index, usize),
    Insert(Index, String),
    Drop(Index, usize),
    Splice(Index, Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
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

fn changed(text: &str, changes: &[Change]) -> String {
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC*") {
        parse(&text)?;
    }

    #[test]
    fn any_yaml_like_text_is_parsed_or_rejected(
        text in "([ ]{0,6}(- )?[a-zA-Z]{1,8}:? ?[\\[\\]{}0-9a-z\"'&*!|>%@`,.-]{0,8}\n){0,12}"
    ) {
        parse(&text)?;
    }

    #[test]
    fn mutated_fixtures_are_parsed_or_rejected(
        which in any::<Index>(),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        parse(&changed(which.get::<String>(fixtures()).as_str(), &changes))?;
    }
}
