//! A release of one of the autoscalers.

use std::fmt;
use std::str::FromStr;

use super::release::check_hyphens;
use super::{Release, Releases, VpaRelease};

/// A release of Kubernetes, or of the Vertical Pod Autoscaler.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AnyRelease {
    /// `1.37`.
    Kubernetes(Release),
    /// `vpa-1.8`.
    Vpa(VpaRelease),
}

impl fmt::Display for AnyRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyRelease::Kubernetes(release) => release.fmt(f),
            AnyRelease::Vpa(release) => release.fmt(f),
        }
    }
}

impl FromStr for AnyRelease {
    type Err = String;
    fn from_str(text: &str) -> Result<AnyRelease, String> {
        if text.starts_with("vpa") {
            return text.parse().map(AnyRelease::Vpa);
        }
        text.parse().map(AnyRelease::Kubernetes).map_err(|error| format!("{error}"))
    }
}

impl From<Release> for AnyRelease {
    fn from(release: Release) -> AnyRelease {
        AnyRelease::Kubernetes(release)
    }
}

impl From<VpaRelease> for AnyRelease {
    fn from(release: VpaRelease) -> AnyRelease {
        AnyRelease::Vpa(release)
    }
}

/// Supported releases of Kubernetes and of the Vertical Pod Autoscaler.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AnyReleases {
    /// Releases of Kubernetes. `None` if only releases of the Vertical Pod Autoscaler are named.
    pub kubernetes: Option<Releases>,
    /// Releases of the Vertical Pod Autoscaler, oldest first.
    pub vpa: Vec<VpaRelease>,
}

impl AnyReleases {
    /// Parses `all`, or releases and ranges of both kinds: `1.30,1.35-1.37,vpa-1.0,vpa-1.6-1.8`.
    /// `known` parses each release of Kubernetes.
    ///
    /// # Errors
    /// If the text has another form, or the error of `known`.
    pub fn parse(
        text: &str,
        known: impl Fn(&str) -> Result<Release, String>,
    ) -> Result<AnyReleases, String> {
        if text == "all" {
            let vpa = VpaRelease::supported().collect();
            return Ok(AnyReleases { kubernetes: Some(Releases::parse(text, known)?), vpa });
        }
        let is_vpa = |part: &&str| part.trim_start().starts_with("vpa");
        let (vpa_parts, others): (Vec<&str>, Vec<&str>) = text.split(',').partition(is_vpa);
        let mut vpa = Vec::new();
        for part in vpa_parts {
            vpa.extend(vpa_range(part.trim())?);
        }
        vpa.sort_unstable();
        vpa.dedup();
        let others = (!others.is_empty()).then(|| others.join(","));
        let kubernetes = others.map(|others| Releases::parse(&others, known)).transpose()?;
        Ok(AnyReleases { kubernetes, vpa })
    }
}

/// Parses `vpa-1.8` or `vpa-1.6-1.8`.
fn vpa_range(text: &str) -> Result<impl Iterator<Item = VpaRelease>, String> {
    check_hyphens(text)?;
    let (from, to) = match text.get("vpa-".len()..).and_then(|range| range.split_once('-')) {
        Some((from, to)) => {
            (format!("vpa-{from}"), format!("vpa-{}", to.trim_start_matches("vpa-")))
        }
        None => (text.to_owned(), text.to_owned()),
    };
    let (from, to): (VpaRelease, VpaRelease) = (from.parse()?, to.parse()?);
    if from > to {
        return Err(format!("{text:?} is not a valid range: the older release comes first"));
    }
    Ok(VpaRelease::supported().filter(move |release| (from..=to).contains(release)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_both_kinds_are_parsed_and_printed() {
        for text in ["1.37", "vpa-1.8"] {
            assert_eq!(text.parse::<AnyRelease>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        let older = "1.37".parse::<AnyRelease>();
        assert!(older < "vpa-1.7".parse());
        assert!("vpa-2".parse::<AnyRelease>().is_err());
    }

    #[test]
    fn releases_and_ranges_of_both_kinds_are_parsed() {
        let parsed = |text: &str| AnyReleases::parse(text, Release::known);
        let vpa = |text: &str| parsed(text).map(|releases| releases.vpa);
        let one = |text: &str| text.parse::<VpaRelease>().expect("a release");
        let two = vec![one("vpa-1.7"), one("vpa-1.8")];
        assert_eq!(vpa("vpa-1.8, vpa-1.7"), Ok(two.clone()));
        assert_eq!(vpa("vpa-1.7-1.8"), Ok(two.clone()));
        assert_eq!(vpa("1.37,vpa-1.7-vpa-1.8"), Ok(two));
        assert_eq!(vpa("vpa-0.14-1.0"), Ok(vec![one("vpa-0.14"), one("vpa-1.0")]));
        assert_eq!(parsed("vpa-1.8").map(|releases| releases.kubernetes), Ok(None));
        let both = parsed("1.36,vpa-1.8").map(|releases| releases.kubernetes);
        assert_eq!(both, Ok(Some("1.36".parse().expect("a release"))));
        assert_eq!(vpa("all").map(|all| all.len()), Ok(VpaRelease::supported().count()));
        for wrong in ["vpa-1.8-1.7", "vpa-2.0", "vpa", "vpa-", "vpa-1.7,", "vpa-1.7..1.8"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
