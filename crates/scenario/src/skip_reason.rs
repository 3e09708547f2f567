//! The reasons why scenarios are not run on a release.

use std::fmt::{self, Display};

use serde::{Serialize, Serializer};

/// Why a scenario is not run on a release, as a sentence. It keeps the place of the release in the
/// sentence, so that reports can group the same reason on several releases.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SkipReason {
    /// The sentence does not name the release.
    Plain(String),
    /// The sentence follows the release: `on 1.36: unrecognized feature gate: X`.
    OnRelease {
        /// The release.
        release: String,
        /// The sentence.
        what: String,
    },
    /// The sentence contains the release: `1.11 has no flag --x`.
    Naming {
        /// The text before the release.
        before: String,
        /// The release.
        release: String,
        /// The text after the release.
        after: String,
    },
}

impl SkipReason {
    /// A sentence that contains the release.
    pub fn naming(
        before: impl Into<String>,
        release: impl Display,
        after: impl Into<String>,
    ) -> SkipReason {
        let (before, after) = (before.into(), after.into());
        SkipReason::Naming { before, release: release.to_string(), after }
    }

    /// The text with another name in place of the release.
    #[must_use]
    pub fn with_release(&self, name: &str) -> String {
        match self {
            SkipReason::Plain(text) => text.clone(),
            SkipReason::OnRelease { what, .. } => format!("on {name}: {what}"),
            SkipReason::Naming { before, after, .. } => format!("{before}{name}{after}"),
        }
    }

    /// The text for a line that begins with the release.
    #[must_use]
    pub fn after_release(&self) -> String {
        match self {
            SkipReason::OnRelease { what, .. } => what.clone(),
            other => other.to_string(),
        }
    }

    /// Reads a reason from a file of results, which contains only its text.
    #[must_use]
    pub fn read(text: &str, release: &str) -> SkipReason {
        let rest = text.strip_prefix("on ").and_then(|rest| rest.strip_prefix(release));
        if let Some(what) = rest.and_then(|rest| rest.strip_prefix(": ")) {
            return SkipReason::OnRelease { release: release.to_owned(), what: what.to_owned() };
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let is_whole_word = |(before, after): &(&str, &str)| {
            !before.ends_with(|c| is_part(c) || c == '.')
                && !after.strip_prefix('.').unwrap_or(after).starts_with(is_part)
        };
        let places = text.rmatch_indices(release);
        let mut places = places.map(|(at, _)| (&text[..at], &text[at + release.len()..]));
        match places.find(is_whole_word) {
            Some((before, after)) => SkipReason::naming(before, release, after),
            None => SkipReason::Plain(text.to_owned()),
        }
    }
}

impl Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Plain(text) => f.write_str(text),
            SkipReason::OnRelease { release, what } => write!(f, "on {release}: {what}"),
            SkipReason::Naming { before, release, after } => {
                write!(f, "{before}{release}{after}")
            }
        }
    }
}

impl Serialize for SkipReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<String> for SkipReason {
    fn from(text: String) -> SkipReason {
        SkipReason::Plain(text)
    }
}

impl From<&str> for SkipReason {
    fn from(text: &str) -> SkipReason {
        SkipReason::Plain(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_read_as_they_were_written() {
        let release = || "1.3".to_owned();
        let reasons = [
            SkipReason::OnRelease { release: release(), what: "it differs".to_owned() },
            SkipReason::naming("", "1.3", " has no flag --x"),
            SkipReason::naming("it is for 1.30 - 1.36, not for ", "1.3", ": choose 1.36"),
            SkipReason::naming("it is not supported on ", "1.3", ""),
            SkipReason::naming("it is not supported on ", "1.3", "."),
            SkipReason::from("it is for 1.30 and vpa-1.3"),
            SkipReason::from("it is for 1.3.1"),
        ];
        for reason in reasons {
            assert_eq!(SkipReason::read(&reason.to_string(), "1.3"), reason);
        }
    }

    #[test]
    fn the_release_is_replaced() {
        let missing = SkipReason::naming("", "1.11", " has no flag --x");
        assert_eq!(missing.with_release("1.6–1.11"), "1.6–1.11 has no flag --x");
        assert_eq!(missing.after_release(), "1.11 has no flag --x");
        let what = "it differs".to_owned();
        let differs = SkipReason::OnRelease { release: "1.11".to_owned(), what };
        assert_eq!(differs.with_release("1.12"), "on 1.12: it differs");
        assert_eq!(differs.after_release(), "it differs");
    }
}
