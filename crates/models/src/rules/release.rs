//! Releases and their text form.

use std::fmt;
use std::str::FromStr;

/// A minor release of Kubernetes: 1.`minor`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Release {
    /// `37` in 1.37.
    pub minor: u32,
}

impl Release {
    /// The newest release that the model supports completely.
    pub const NEWEST: Release = Release { minor: 37 };

    /// The oldest release that the model supports completely.
    pub const OLDEST: Release = Release { minor: 6 };

    /// The supported releases, oldest first.
    pub fn supported() -> impl DoubleEndedIterator<Item = Release> {
        (Release::OLDEST.minor..=Release::NEWEST.minor).map(|minor| Release { minor })
    }

    /// Parses a supported release.
    ///
    /// # Errors
    /// If the text is not a release, or the release is not supported.
    pub fn known(text: &str) -> Result<Release, String> {
        let release: Release = text.parse().map_err(|error| format!("{error}"))?;
        let (oldest, newest) = (Release::OLDEST, Release::NEWEST);
        if (oldest..=newest).contains(&release) {
            return Ok(release);
        }
        Err(format!("{release} is not supported; the supported releases are {oldest} to {newest}"))
    }
}

/// `1.37`.
impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.minor)
    }
}

/// A text that is not a release.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReleaseError(String);

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a release; expected a release such as 1.37", self.0)
    }
}

impl std::error::Error for ReleaseError {}

/// Parses `1.37`, `v1.37` and `v1.37.0`; the patch release is ignored.
impl FromStr for Release {
    type Err = ReleaseError;
    fn from_str(text: &str) -> Result<Release, ReleaseError> {
        let error = || ReleaseError(text.to_owned());
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if digits { part.parse::<u32>().ok() } else { None }
        };
        let mut parts = text.strip_prefix('v').unwrap_or(text).split('.');
        if parts.next() != Some("1") {
            return Err(error());
        }
        let minor = parts.next().and_then(number).ok_or_else(error)?;
        if parts.next().is_some_and(|patch| number(patch).is_none()) || parts.next().is_some() {
            return Err(error());
        }
        Ok(Release { minor })
    }
}

/// A set of supported releases, oldest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Releases(Vec<Release>);

impl Releases {
    /// A set with one release.
    #[must_use]
    pub fn only(release: Release) -> Releases {
        Releases(vec![release])
    }

    /// Returns true if the set contains the release.
    #[must_use]
    pub fn contains(&self, release: Release) -> bool {
        self.0.contains(&release)
    }

    /// The newest release of the set, if any.
    #[must_use]
    pub fn newest(&self) -> Option<Release> {
        self.0.last().copied()
    }

    /// The releases of the set, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Release> + '_ {
        self.0.iter().copied()
    }
}

/// `1.37`, `1.30, 1.32 - 1.37`.
impl fmt::Display for Releases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a.minor + 1 == b.minor);
        for (index, run) in runs.enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            match run {
                [first, .., last] => write!(f, "{first} - {last}")?,
                run => run.iter().try_for_each(|only| write!(f, "{only}"))?,
            }
        }
        Ok(())
    }
}

impl Releases {
    /// Parses `all`, one release, or several: `1.30,1.35-1.37`. `known` parses each release.
    ///
    /// # Errors
    /// If the text has another form, or the error of `known`.
    pub fn parse(
        text: &str,
        known: impl Fn(&str) -> Result<Release, String>,
    ) -> Result<Releases, String> {
        if text == "all" {
            return Ok(Releases(Release::supported().collect()));
        }
        if text.starts_with("vpa-") {
            return Err("expected releases of Kubernetes, not of the VPA".to_owned());
        }
        check_hyphens(text)?;
        let mut releases = Vec::new();
        for part in text.split(',') {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (known(from.trim())?, known(to.trim())?);
            if from > to {
                return Err(format!(
                    "{part:?} is not a valid range: the older release comes first"
                ));
            }
            releases.extend(Release::supported().filter(|it| (from..=to).contains(it)));
        }
        Ok(releases.into_iter().collect())
    }
}

/// Parses releases with [`Releases::parse`], with any patch version.
impl FromStr for Releases {
    type Err = String;
    fn from_str(text: &str) -> Result<Releases, String> {
        Releases::parse(text, Release::known)
    }
}

/// Fails if a range is written with dots, as in Rust.
pub(super) fn check_hyphens(text: &str) -> Result<(), String> {
    if !text.contains("..") {
        return Ok(());
    }
    let range = text.replace("..=", "..").replace("..", "-");
    Err(format!("a range is written with a hyphen: {range}"))
}

impl FromIterator<Release> for Releases {
    fn from_iter<I: IntoIterator<Item = Release>>(releases: I) -> Releases {
        let mut releases: Vec<Release> = releases.into_iter().collect();
        releases.sort_unstable();
        releases.dedup();
        Releases(releases)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_parsed_with_or_without_v_and_patch() {
        for text in ["1.37", "v1.37", "v1.37.0", "1.37.2"] {
            assert_eq!(text.parse(), Ok(Release::NEWEST), "{text}");
        }
        for text in ["", "37", "2.37", "1", "1.", "1.x", "1.37.x", "1.37.0.1", "1.+7"] {
            assert!(text.parse::<Release>().is_err(), "{text}");
        }
        assert_eq!(Release::NEWEST.to_string(), "1.37");
    }

    #[test]
    fn lists_of_releases_are_parsed_and_printed() {
        let read = |text: &str| text.parse::<Releases>();
        assert_eq!(read("1.31-1.33,1.30").map(|it| it.to_string()), Ok("1.30 - 1.33".to_owned()));
        assert_eq!(read("1.37, 1.35").map(|it| it.to_string()), Ok("1.35, 1.37".to_owned()));
        assert_eq!(read("all").map(|it| it.iter().count()), Ok(Release::supported().count()));
        for wrong in ["", "1.5", "1.33-1.31", "1.30,", "1.30-"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
