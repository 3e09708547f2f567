//! Ranges of Kubernetes releases in text form: `>=1.23`, `<=1.20`, `1.18 - 1.20`, `1.37`.

use std::fmt;
use std::str::FromStr;

use schemars::{Schema, json_schema};

use super::text::{Form, text_only};
use crate::diagnostic::Diagnostic;
use crate::skip_reason::SkipReason;
use kube_autoscaler_models::rules::Release;

/// The releases that a scenario applies to, both ends inclusive: by default of Kubernetes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReleaseRange<R = Release> {
    /// The oldest release. None: no lower bound.
    pub from: Option<R>,
    /// The newest release. None: no upper bound.
    pub to: Option<R>,
}

/// All releases.
impl<R> Default for ReleaseRange<R> {
    fn default() -> ReleaseRange<R> {
        ReleaseRange { from: None, to: None }
    }
}

/// A range of Kubernetes releases.
impl Form for ReleaseRange {
    type Value = ReleaseRange;
    const NAME: &'static str = "\0releases";
    const EXPECTED: &'static str = "a range of releases such as \">=1.23\"";
    const FALLBACK: &'static str = ">=1.6";
    const SCHEMA_NAME: &'static str = "ReleasesText";

    fn read(text: &str) -> Result<ReleaseRange, Diagnostic> {
        let range: ReleaseRange = text.parse()?;
        if Release::supported().any(|release| range.contains(release)) {
            return Ok(range);
        }
        let (oldest, newest) = (Release::OLDEST, Release::NEWEST);
        let hint = format!("the supported releases are {oldest} to {newest}");
        let what = format!("{:?} contains no supported release", range.to_string());
        Err(Diagnostic::new(what).hint(hint))
    }
    fn write(value: &ReleaseRange) -> String {
        value.to_string()
    }
    fn schema() -> Schema {
        json_schema!({
            "title": "releases",
            "description": "The Kubernetes releases on which the requirement holds, both ends \
                            included: >=1.23, <=1.20, 1.18 - 1.20, 1.37.",
            "type": ["string", "number"],
            "pattern": r"^\s*((>=|<=)?\s*v?1\.[0-9]+|v?1\.[0-9]+\s+-\s+v?1\.[0-9]+)\s*$",
            "examples": [">=1.23", "1.18 - 1.20", "1.37"],
        })
    }
}

text_only!(ReleaseRange);

/// The message that `subject` is for other releases than `release`, with one to choose instead.
pub(super) fn for_others<R: fmt::Display>(
    subject: &str,
    others: &impl fmt::Display,
    newest: Option<R>,
    release: R,
) -> SkipReason {
    match newest {
        Some(newest) => SkipReason::naming(
            format!("{subject} for {others}, not for "),
            release,
            format!(": choose another release, for example --release {newest}"),
        ),
        None => SkipReason::naming(format!("{subject} for other releases than "), release, ""),
    }
}

impl<R: Copy + PartialOrd> ReleaseRange<R> {
    /// Returns true if the range contains the release.
    #[must_use]
    pub fn contains(&self, release: R) -> bool {
        self.from.is_none_or(|from| from <= release) && self.to.is_none_or(|to| release <= to)
    }

    /// Returns true if the range contains all releases.
    #[must_use]
    pub(crate) fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

impl FromStr for ReleaseRange {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<ReleaseRange, Diagnostic> {
        let text = text.trim();
        if let Some(from) = text.strip_prefix(">=") {
            return Ok(ReleaseRange { from: Some(release(from)?), to: None });
        }
        if let Some(to) = text.strip_prefix("<=") {
            return Ok(ReleaseRange { from: None, to: Some(release(to)?) });
        }
        if let Some(operator) = ['>', '<', '^', '~', '='].into_iter().find(|c| text.starts_with(*c))
        {
            let hint = format!("`{operator}` is not supported: use >= or <=, both inclusive");
            return Err(Diagnostic::new(format!("{text:?} is not a range of releases")).hint(hint));
        }
        let Some((from, to)) = text.split_once('-') else {
            let only = release(text)?;
            return Ok(ReleaseRange { from: Some(only), to: Some(only) });
        };
        let (from, to) = (release(from)?, release(to)?);
        if to < from {
            let what = format!("the range \"{from} - {to}\" contains no release");
            return Err(Diagnostic::new(what).hint(format!("did you mean {to} - {from}?")));
        }
        Ok(ReleaseRange { from: Some(from), to: Some(to) })
    }
}

fn release(text: &str) -> Result<Release, Diagnostic> {
    let text = text.trim();
    let patch = text.matches('.').count() > 1;
    let parsed = text.parse::<Release>();
    match parsed {
        Ok(release) if !patch => Ok(release),
        Ok(release) => {
            let hint = format!("ranges consist of minor releases: did you mean {release}?");
            Err(Diagnostic::new(format!("{text:?} is a patch release")).hint(hint))
        }
        Err(_) => Err(Diagnostic::new(format!("{text:?} is not a Kubernetes release"))
            .hint("for example >=1.23, <=1.20, 1.18 - 1.20 or 1.37")),
    }
}

/// The form in scenario files. A range of all releases has no form there.
impl<R: fmt::Display + PartialEq> fmt::Display for ReleaseRange<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.from, &self.to) {
            (None, None) => f.write_str("all"),
            (Some(from), None) => write!(f, ">={from}"),
            (None, Some(to)) => write!(f, "<={to}"),
            (Some(from), Some(to)) if from == to => from.fmt(f),
            (Some(from), Some(to)) => write!(f, "{from} - {to}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minor(minor: u32) -> Option<Release> {
        Some(Release { minor })
    }

    #[test]
    fn ranges_are_inclusive() {
        for (text, from, to, shown) in [
            (">=1.23", minor(23), None, ">=1.23"),
            ("<= v1.20", None, minor(20), "<=1.20"),
            ("1.18 - 1.20", minor(18), minor(20), "1.18 - 1.20"),
            ("1.18-1.20", minor(18), minor(20), "1.18 - 1.20"),
            ("1.37", minor(37), minor(37), "1.37"),
        ] {
            let range: ReleaseRange = text.parse().expect(text);
            assert_eq!(range, ReleaseRange { from, to }, "{text}");
            assert_eq!(range.to_string(), shown);
        }
        let range: ReleaseRange = "1.18 - 1.20".parse().expect("a range");
        let inside: Vec<u32> =
            (17..22).filter(|minor| range.contains(Release { minor: *minor })).collect();
        assert_eq!(inside, [18, 19, 20]);
    }

    #[test]
    fn invalid_release_ranges_are_rejected_with_a_hint() {
        for (text, hint) in [
            (">1.23", "`>` is not supported: use >= or <=, both inclusive"),
            ("1.20 - 1.18", "did you mean 1.18 - 1.20?"),
            ("1.37.0", "ranges consist of minor releases: did you mean 1.37?"),
            ("latest", "for example >=1.23, <=1.20, 1.18 - 1.20 or 1.37"),
            ("", "for example >=1.23, <=1.20, 1.18 - 1.20 or 1.37"),
        ] {
            let error = text.parse::<ReleaseRange>().expect_err(text);
            assert_eq!(error.hint, Some(hint.into()), "{text}");
        }
    }
}
