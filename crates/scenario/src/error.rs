//! The problems of a file: position, description, and probable meaning.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use crate::diagnostic::{Diagnostic, Hint};
use crate::syntax::Syntax;

/// The hint for a file that may be a manifest instead of a scenario.
pub const READS_MANIFESTS: &str =
    "`kube-lockstep predict -f FILE` and `compare -f FILE` read manifests";

/// A file that is not a valid scenario, with all its problems.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The file as the user named it.
    pub path: String,
    /// The problems, sorted by position. Never empty.
    pub problems: Vec<Diagnostic>,
}

/// The problem of a file that a scenario or a load names, and that can't be read: `why` has no hint
/// if the path may be wrong.
pub(super) fn unreadable(path: &str, why: Diagnostic, syntax: Syntax) -> Diagnostic {
    let hint = why.hint.unwrap_or_else(|| {
        let folder = syntax.pick("scenario", "current folder");
        format!("the path is relative to the {folder}").into()
    });
    Diagnostic::new(format!("{path} can't be read: {}", why.what)).hint(hint)
}

/// Problems in the order in which they are found, each once.
#[derive(Default)]
pub struct DistinctProblems {
    list: Vec<Diagnostic>,
    known: HashSet<Diagnostic>,
}

impl DistinctProblems {
    /// Adds a problem, unless it was added before.
    pub fn add(&mut self, problem: Diagnostic) {
        if self.known.insert(problem.clone()) {
            self.list.push(problem);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// All problems, in the order in which they were added.
    pub fn into_list(self) -> Vec<Diagnostic> {
        self.list
    }
}

/// The most characters of a word in a message: a file may contain words of megabytes.
const MOST_OF_A_WORD: usize = 200;
/// The most characters of a message.
const MOST_OF_A_MESSAGE: usize = 4000;

impl Error {
    /// The problems of a file. Long values in their messages are cut.
    pub fn new(path: &str, mut problems: Vec<Diagnostic>) -> Error {
        for Diagnostic { what, hint, .. } in &mut problems {
            shorten_values(what);
            for hint in hint.iter_mut() {
                let mut text = hint.to_string();
                shorten_values(&mut text);
                if text != hint.to_string() {
                    *hint = text.into();
                }
            }
        }
        Error { path: path.to_owned(), problems }
    }
}

/// Cuts the long words of a message, and a message of very many words.
fn shorten_values(message: &mut String) {
    if message.len() > MOST_OF_A_WORD {
        let words = message.split_inclusive(char::is_whitespace);
        let short: String = words.map(|word| start(word, MOST_OF_A_WORD)).collect();
        *message = start(&short, MOST_OF_A_MESSAGE).into_owned();
    }
}

/// At most so many characters of a text.
fn start(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// One line `file:line:column: what` for each problem, with its hint indented below.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            f.write_str(&problem.located(&self.path))?;
            if let Some(hint) = &problem.hint {
                write!(f, "\n  hint: {hint}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// The message that an API server rejects an object: `name` is its kind.
pub fn rejection(name: &str, message: impl fmt::Display) -> String {
    format!("the API server rejects this {name}: {message}")
}

/// The most similar name, or else the possible values.
pub(crate) fn suggest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<Hint> {
    let known: Vec<&str> = known.into_iter().collect();
    let similar = similar(typed, known.iter().copied());
    similar.or_else(|| {
        let values = || Hint::Values(known.iter().map(|name| (*name).to_owned()).collect());
        (!known.is_empty()).then(values)
    })
}

/// The most similar name, if any is similar enough.
pub fn similar<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<Hint> {
    let known: Vec<&str> = known.into_iter().collect();
    let meant = SYNONYMS.iter().find(|(word, meant)| *word == typed && known.contains(meant));
    let best = meant.map(|(_, meant)| *meant).or_else(|| nearest(typed, &known))?;
    Some(Hint::Similar(best.to_owned()))
}

/// Names in other tools that are not similar to the names here.
const SYNONYMS: [(&str, &str); 10] = [
    ("expectations", "expect"),
    ("assert", "expect"),
    ("assertions", "expect"),
    ("events", "timeline"),
    ("steps", "timeline"),
    ("duration", "until"),
    ("end", "until"),
    ("description", "requirement"),
    ("deployment", "workload"),
    ("victim", "scaleDownOrder"),
];

/// The longest word for which a similar one is searched, in bytes.
const MAX_WORD: usize = 100;

/// The most similar known word, if any is similar enough.
pub fn nearest<'a>(typed: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let typed = plain(typed);
    if typed.is_empty() || typed.len() > MAX_WORD {
        return None;
    }
    // A flag without its long prefix, or a field with an additional word.
    let contained = |word: &str| {
        typed.len() >= 4 && word.ends_with(&typed) || word.len() >= 4 && typed.ends_with(word)
    };
    let distance = |word: &str| match contained(word) {
        true => usize::from(typed != word),
        false => strsim::osa_distance(&typed, word),
    };
    let (distance, best) =
        known.iter().map(|word| (distance(&plain(word)), *word)).min_by_key(|(far, _)| *far)?;
    (distance <= typed.chars().count().div_ceil(3)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_word_has_a_suggestion() {
        let fields = ["averageUtilization", "averageValue", "type", "value", "Utilization"];
        for (typed, meant) in [
            ("averageUtilisation", "averageUtilization"),
            ("AverageValue", "averageValue"),
            ("average_value", "averageValue"),
            ("tpye", "type"),
            ("utilization", "Utilization"),
        ] {
            assert_eq!(suggest(typed, fields), Some(Hint::Similar(meant.to_owned())));
        }
        let none = suggest("quota", fields).expect("a list");
        assert_eq!(
            none.to_string(),
            "expected one of averageUtilization, averageValue, type, value, Utilization"
        );
    }

    #[test]
    fn names_of_other_tools_have_a_suggestion() {
        let meant = suggest("expectations", ["hpa", "timeline", "expect"]);
        assert_eq!(meant, Some(Hint::Similar("expect".to_owned())));
        let elsewhere = suggest("expectations", ["cpu", "memory"]);
        assert_eq!(elsewhere.expect("a list").to_string(), "expected one of cpu, memory");
    }

    #[test]
    fn a_flag_without_its_prefix_has_a_suggestion() {
        let flags =
            ["horizontal-pod-autoscaler-sync-period", "horizontal-pod-autoscaler-tolerance"];
        let meant = "horizontal-pod-autoscaler-sync-period".to_owned();
        assert_eq!(suggest("sync-period", flags), Some(Hint::Similar(meant)));
    }
}
