//! The problems of several files: each message once, with all locations at which it occurs.

use std::collections::{HashMap, HashSet};
use std::fmt;

use kube_lockstep_report::counted;
use kube_lockstep_report::places::also_at;
use kube_lockstep_scenario::{Diagnostic, Error, Hint, Place};

/// The most messages that are listed: a file may have a problem in each line.
const MOST_MESSAGES: usize = 100;

/// A position in a file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ProblemLocation<'a> {
    file: &'a str,
    line: usize,
    column: usize,
}

impl fmt::Display for ProblemLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// A message, without its locations.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Message<'a> {
    what: &'a str,
    hint: Option<&'a Hint>,
}

impl<'a> Message<'a> {
    fn new(problem: &'a Diagnostic) -> Message<'a> {
        Message { what: &problem.what, hint: problem.hint.as_ref() }
    }
}

/// A message with its locations.
struct Folded<'a> {
    message: Message<'a>,
    locations: Vec<ProblemLocation<'a>>,
}

/// The problems of all files as text, in the order of their first locations.
pub(super) fn folded(errors: &[Error]) -> String {
    let mut all: Vec<Folded<'_>> = Vec::new();
    let mut indices: HashMap<Message<'_>, usize> = HashMap::new();
    let mut seen: HashSet<(usize, ProblemLocation<'_>)> = HashSet::new();
    for Error { path, problems } in errors {
        for problem in problems {
            let file = problem.file().unwrap_or(path);
            let (line, column) = match problem.place.as_deref() {
                Some(Place { line, column, .. }) => (*line, *column),
                None => (1, 1),
            };
            let location = ProblemLocation { file, line, column };
            let message = Message::new(problem);
            let index = *indices.entry(message).or_insert(all.len());
            if index == all.len() {
                all.push(Folded { message, locations: Vec::new() });
            }
            if seen.insert((index, location)) {
                all[index].locations.push(location);
            }
        }
    }
    let mut texts: Vec<String> = all.iter().take(MOST_MESSAGES).map(text).collect();
    if let Some(more) = all.len().checked_sub(MOST_MESSAGES).filter(|more| *more > 0) {
        texts.push(format!("… and {}", counted(more, "more problem")));
    }
    texts.join("\n")
}

fn text(folded: &Folded<'_>) -> String {
    let Folded { message: Message { what, hint }, locations } = folded;
    let Some((first, others)) = locations.split_first() else { return (*what).to_owned() };
    let mut text = format!("{first}: {what}");
    if let Some(hint) = hint {
        text.push_str(&format!("\n  hint: {hint}"));
    }
    if !others.is_empty() {
        text.push_str(&format!("\n  {}", also_at(others)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: usize, what: &str, hint: Option<&str>) -> Diagnostic {
        Diagnostic::new(what).at(line, 5).with_hint(hint.map(Hint::from))
    }

    #[test]
    fn equal_problems_are_one_message() {
        let unknown = |line| problem(line, "unknown field `victims`", Some("did you mean `x`?"));
        let error = |path: &str, problems| Error { path: path.to_owned(), problems };
        let mut errors = vec![
            error("a.yaml", vec![unknown(3), problem(9, "until is missing", None)]),
            error("b.yaml", vec![unknown(4)]),
        ];
        assert_eq!(
            folded(&errors),
            "a.yaml:3:5: unknown field `victims`\n  hint: did you mean `x`?\n  also at \
             b.yaml:4:5\na.yaml:9:5: until is missing"
        );
        errors.extend((5..9).map(|line| error("c.yaml", vec![unknown(line)])));
        let text = folded(&errors);
        let places = "also at b.yaml:4:5, c.yaml:5:5, c.yaml:6:5 and 2 more places";
        assert!(text.contains(places), "{text}");
    }

    /// Some files have a problem in each of their thousands of lines.
    #[test]
    fn many_problems_are_counted() {
        let path = "a.yaml".to_owned();
        let names = (1..=100_001).map(|line| problem(line, &format!("unknown `x{line}`"), None));
        let different = Error { path: path.clone(), problems: names.collect() };
        let same = (1..=100_001).map(|line| problem(line, "no number", None)).collect();
        let text = folded(&[different, Error { path, problems: same }]);
        assert_eq!(text.lines().count(), MOST_MESSAGES + 1);
        assert!(text.ends_with("… and 99,902 more problems"), "{text}");
        let same = (1..=100_001).map(|line| problem(line, "no number", None)).collect();
        let text = folded(&[Error { path: "b.yaml".to_owned(), problems: same }]);
        assert!(
            text.ends_with("also at b.yaml:2:5, b.yaml:3:5, b.yaml:4:5 and 99,997 more places")
        );
    }
}
