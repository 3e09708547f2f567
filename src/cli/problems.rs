//! The problems of several files: each message once, with all places at which it occurs.

use crate::scenario::{Error, Problem};

/// The most further places that a message lists.
const MOST_PLACES: usize = 3;

/// A message with its places.
struct Folded<'a> {
    problem: &'a Problem,
    places: Vec<String>,
}

/// The problems of all files as text, in the order of their first places.
pub(super) fn folded(errors: &[Error]) -> String {
    let mut all: Vec<Folded<'_>> = Vec::new();
    for Error { path, problems } in errors {
        for problem in problems {
            let file = problem.file.as_ref().unwrap_or(path);
            let place = format!("{file}:{}:{}", problem.line, problem.column);
            let same = |folded: &&mut Folded<'_>| {
                (&folded.problem.what, &folded.problem.hint) == (&problem.what, &problem.hint)
            };
            match all.iter_mut().find(same) {
                Some(folded) if folded.places.contains(&place) => {}
                Some(folded) => folded.places.push(place),
                None => all.push(Folded { problem, places: vec![place] }),
            }
        }
    }
    let texts: Vec<String> = all.iter().map(text).collect();
    texts.join("\n")
}

fn text(folded: &Folded<'_>) -> String {
    let Folded { problem, places } = folded;
    let (first, others) =
        places.split_first().map_or(("", &[][..]), |(first, others)| (first.as_str(), others));
    let mut text = format!("{first}: {}", problem.what);
    if let Some(hint) = &problem.hint {
        text.push_str(&format!("\n  hint: {hint}"));
    }
    if !others.is_empty() {
        let listed: Vec<&str> = others.iter().take(MOST_PLACES).map(String::as_str).collect();
        text.push_str(&format!("\n  also at {}", listed.join(", ")));
        if let Some(more) = others.len().checked_sub(MOST_PLACES).filter(|more| *more > 0) {
            let places = if more == 1 { "place" } else { "places" };
            text.push_str(&format!(" and {more} more {places}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: usize, what: &str, hint: Option<&str>) -> Problem {
        let (what, hint) = (what.to_owned(), hint.map(str::to_owned));
        Problem { file: None, line, column: 5, what, hint }
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
}
