//! Arguments that several commands share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use kube_autoscaler_models::rules::{AnyRelease, AnyReleases, Release, Releases, VpaRelease};
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::source::EngineLimits;
use kube_lockstep_engines::upstream::build;
use kube_lockstep_engines::upstream::build::BuildOptions;
use kube_lockstep_engines::upstream::checkout::Checkout;
use kube_lockstep_scenario::Scenario;
use kube_lockstep_sim::run::Shard;

/// The output format.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Format {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs: one object per line.
    Json,
}

/// The output format, with Markdown for documents.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum WithMarkdown {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs: one object per line.
    Json,
    /// Markdown for documents, release notes and pull requests.
    Markdown,
}

/// The location of scenarios.
#[derive(clap::Args, Debug)]
pub(super) struct Source {
    /// The folder of fixtures [default: ./fixtures, or the fixtures built into this program]
    #[arg(long, value_name = "DIR")]
    pub(super) fixtures: Option<PathBuf>,
}

/// Parses a release. A patch version must be the available one.
pub(super) fn release(text: &str) -> Result<Release, String> {
    let release = Release::known(text)?;
    let plain = text.trim_start_matches('v');
    let available = build::version(build::Artifact::Host, release).unwrap_or_default();
    let available = available.trim_start_matches('v');
    if plain.matches('.').count() > 1 && plain != available {
        return Err(format!(
            "the available patch release of {release} is {available}: did you mean {release}?"
        ));
    }
    Ok(release)
}

/// Parses several releases with [`release`].
pub(super) fn releases(text: &str) -> Result<Releases, String> {
    Releases::parse(text, release)
}

/// One release.
#[derive(clap::Args, Debug)]
pub(super) struct OneRelease {
    /// The Kubernetes release
    #[arg(long, value_name = "RELEASE", default_value_t = Release::NEWEST)]
    #[arg(value_parser = release)]
    pub(super) release: Release,
}

/// Parses a release of Kubernetes, or of the Vertical Pod Autoscaler.
pub(super) fn any_release(text: &str) -> Result<AnyRelease, String> {
    if text.starts_with("vpa") {
        return text.parse();
    }
    let releases = releases(text)?;
    let mut all = releases.iter();
    match (all.next(), all.next()) {
        (Some(only), None) => Ok(AnyRelease::Kubernetes(only)),
        _ => {
            let instead = format!("`kube-lockstep compare --release {text}` compares several");
            Err(format!("expected one release; {instead}"))
        }
    }
}

/// One release of Kubernetes or of the Vertical Pod Autoscaler.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(super) struct OneAnyRelease {
    /// The Kubernetes release, or for VPAs a release such as vpa-1.8 [default: the newest]
    #[arg(long, value_name = "RELEASE", value_parser = any_release)]
    pub(super) release: Option<AnyRelease>,
}

/// The release of Kubernetes, for a scenario of an HPA.
pub(super) fn hpa_release(release: Option<AnyRelease>) -> Result<Option<Release>, Failure> {
    match release {
        None => Ok(None),
        Some(AnyRelease::Kubernetes(release)) => Ok(Some(release)),
        Some(AnyRelease::Vpa(release)) => {
            let what = format!("HPAs have no release {release}: it is a release of the VPA");
            Err(Failure::usage(what).hint("name a release of Kubernetes, such as 1.37"))
        }
    }
}

/// The release of the recommender, for a scenario of a VPA.
pub(super) fn vpa_release(release: Option<AnyRelease>) -> Result<VpaRelease, Failure> {
    match release {
        None => Ok(VpaRelease::NEWEST),
        Some(AnyRelease::Vpa(release)) => Ok(release),
        Some(AnyRelease::Kubernetes(release)) => {
            let what = format!("VPAs have no release {release}: it is a release of Kubernetes");
            Err(Failure::usage(what).hint("name a release of the VPA, such as vpa-1.8"))
        }
    }
}

/// Fails if no named release is one of a measured scenario: without an HPA, its releases are those
/// of the VPA.
pub(super) fn check_releases(
    named: &AnyReleases,
    scenarios: &[Arc<Scenario>],
) -> Result<(), Failure> {
    let kubernetes = named.kubernetes.as_ref().and_then(|releases| releases.iter().next());
    let kubernetes = kubernetes.map(AnyRelease::Kubernetes);
    let vpa = named.vpa.first().copied().map(AnyRelease::Vpa);
    let is_vpa = |scenario: &Arc<Scenario>| scenario.hpas.is_empty();
    let with_vpa = scenarios.iter().any(|scenario| scenario.vpa.is_some());
    if vpa.is_none() && scenarios.iter().all(is_vpa) {
        vpa_release(kubernetes)?;
    }
    if kubernetes.is_none() && !scenarios.iter().any(is_vpa) {
        let release = hpa_release(vpa);
        release.map_err(|failure| if with_vpa { failure.hint(VPA_RELEASE) } else { failure })?;
    }
    Ok(())
}

/// The hint for a release of the VPA, if the scenario also has an HPA.
pub(super) const VPA_RELEASE: &str = "pass a Kubernetes release, such as --release 1.37; to \
                                      choose the release of the VPA, set `vpaRelease` in the \
                                      scenario file, which `kube-lockstep init` writes from \
                                      manifests";

/// A release, or a checkout.
#[derive(clap::Args, Debug)]
pub(super) struct ReleaseOrCheckoutArgs {
    /// The Kubernetes release, or for VPAs a release such as vpa-1.8 [default: the newest, or the
    /// release of --upstream-path]
    #[arg(long, value_name = "RELEASE", value_parser = any_release)]
    pub(super) release: Option<AnyRelease>,
    #[command(flatten)]
    pub(super) local: CheckoutArgs,
}

impl ReleaseOrCheckoutArgs {
    /// The release of the recommender. With a checkout of the Vertical Pod Autoscaler, it is the
    /// release whose rules the model follows.
    pub(super) fn vpa_release(&self, checkout: Option<&Checkout>) -> Result<VpaRelease, Failure> {
        match (checkout, self.release) {
            (Some(checkout), None) => vpa_rules(checkout),
            (_, release) => vpa_release(release),
        }
    }

    pub(super) fn release(&self, checkout: Option<&Checkout>) -> Result<Release, Failure> {
        let rules = || checkout.map_or(Release::NEWEST, |checkout| checkout.rules().0);
        Ok(hpa_release(self.release)?.unwrap_or_else(rules))
    }
}

/// Parses releases of both kinds. A patch version must be the available one.
pub(super) fn any_releases(text: &str) -> Result<AnyReleases, String> {
    AnyReleases::parse(text, release)
}

/// One or more releases.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct ReleaseArgs {
    /// The releases: of Kubernetes (`1.37`, `1.30,1.35-1.37`), of the Vertical Pod Autoscaler
    /// (`vpa-1.8`, `vpa-1.6-1.8`), or `all` [default: the newest ones, or the release of
    /// --upstream-path]. A scenario with an HPA and a VPA runs on releases of Kubernetes; its
    /// `vpaRelease` is that of the VPA
    #[arg(long = "release", value_name = "RELEASES", value_parser = any_releases)]
    releases: Option<AnyReleases>,
}

impl ReleaseArgs {
    /// The named releases of Kubernetes.
    pub(super) fn named(&self) -> Option<&Releases> {
        self.releases.as_ref()?.kubernetes.as_ref()
    }

    /// Returns true if only releases of the Vertical Pod Autoscaler are named.
    pub(super) fn are_only_vpa(&self) -> bool {
        self.releases.as_ref().is_some_and(|releases| releases.kubernetes.is_none())
    }

    /// The releases of the Vertical Pod Autoscaler; by default, the newest one.
    pub(super) fn vpa(&self) -> Vec<VpaRelease> {
        self.releases.as_ref().map_or(vec![VpaRelease::NEWEST], |releases| releases.vpa.clone())
    }

    /// Returns true if no release is named.
    pub(super) fn are_default(&self) -> bool {
        self.releases.is_none()
    }

    /// The releases of the recommender: with a checkout of the Vertical Pod Autoscaler, the release
    /// whose rules the model follows.
    pub(super) fn vpa_with(&self, checkout: Option<&Checkout>) -> Result<Vec<VpaRelease>, Failure> {
        let Some(checkout) = checkout else { return Ok(self.vpa()) };
        if self.are_default() {
            return Ok(vec![vpa_rules(checkout)?]);
        }
        let releases = self.vpa();
        if releases.len() != 1 || self.named().is_some() {
            let what = "--upstream-path with a checkout of the Vertical Pod Autoscaler requires \
                        exactly one VPA release";
            let hint = "name the release whose rules the model follows, such as vpa-1.8";
            return Err(Failure::usage(what).hint(hint));
        }
        Ok(releases)
    }

    pub(super) fn releases(&self, checkout: Option<&Checkout>) -> Result<Releases, Failure> {
        let rules = || checkout.map_or(Release::NEWEST, |checkout| checkout.rules().0);
        let releases = self.named().cloned().unwrap_or_else(|| Releases::only(rules()));
        if checkout.is_some() && releases.iter().count() > 1 {
            let what = "--upstream-path can't be combined with several releases";
            let hint = "name one release: with --upstream-path, --release selects the rules that \
                        the model follows";
            return Err(Failure::usage(what).hint(hint));
        }
        Ok(releases)
    }
}

/// Whether engines are built.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub(super) struct BuildArgs {
    /// Never build an engine, which takes minutes: an engine that is not in the cache folder can't
    /// run
    #[arg(long)]
    pub(super) no_build: bool,
}

impl BuildArgs {
    /// Builds that a token stops, if any are allowed.
    pub(super) fn options(self, stop: &CancellationToken) -> BuildOptions {
        BuildOptions::new(stop.clone(), self.no_build)
    }

    /// The limits of an engine whose build a token stops.
    pub(super) fn limits(self, stop: &CancellationToken) -> EngineLimits {
        EngineLimits { builds: self.options(stop), ..EngineLimits::default() }
    }
}

/// A checkout instead of a release.
#[derive(clap::Args, Debug)]
pub(super) struct CheckoutArgs {
    /// Run the controller of a local Kubernetes checkout, or the recommender of a checkout of
    /// kubernetes/autoscaler. Go compiles the changes; --release selects the rules that the model
    /// follows
    #[arg(long, value_name = "DIR")]
    pub(super) upstream_path: Option<PathBuf>,
    #[command(flatten)]
    pub(super) build: BuildArgs,
}

impl CheckoutArgs {
    /// Opens the named checkout. Fails if another engine or a program is named as well.
    pub(super) fn open(&self, other: bool, program: bool) -> Result<Option<Checkout>, Failure> {
        let Some(path) = &self.upstream_path else { return Ok(None) };
        if program {
            let what = "--upstream-path and --program both replace the upstream engine";
            return Err(Failure::usage(what).hint("leave out one of them"));
        }
        if other {
            let what = "--upstream-path requires the upstream engine";
            return Err(Failure::usage(what).hint("leave out --engine"));
        }
        let open = Checkout::open(path).map_err(|error| {
            Failure::usage(format!("--upstream-path {error}")).with_hint(error.hint)
        });
        open.map(Some)
    }
}

/// The rules of a checkout of the Vertical Pod Autoscaler.
fn vpa_rules(checkout: &Checkout) -> Result<VpaRelease, Failure> {
    if !checkout.is_release_known() {
        let path = checkout.path.display();
        let what = format!("--upstream-path {path}: the release of the checkout is unknown");
        return Err(Failure::usage(what).hint("set it with --release, for example vpa-1.8"));
    }
    Ok(checkout.vpa_rules().0)
}

/// Checks that a checkout can run scenarios of HPAs.
pub(super) fn check_runs_hpas(checkout: Option<&Checkout>) -> Result<(), Failure> {
    let Some(checkout) = checkout.filter(|checkout| checkout.has_recommender()) else {
        return Ok(());
    };
    let path = checkout.path.display();
    let what = format!("--upstream-path {path}: it has no HPA controller");
    Err(Failure::usage(what).hint("name a checkout of kubernetes/kubernetes"))
}

/// The shard of the run.
#[derive(clap::Args, Debug)]
pub(super) struct ShardArgs {
    /// Run the I-th of N shards, for N machines; `report merge` merges their JSON results
    #[arg(long, value_name = "I/N")]
    pub(super) shard: Option<Shard>,
}

/// Parses a duration greater than 0.
pub(super) fn time_limit(text: &str) -> Result<Duration, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    match u64::try_from(span.0) {
        Ok(nanos) if nanos > 0 => Ok(Duration::from_nanos(nanos)),
        _ => Err("the value must be greater than 0".to_owned()),
    }
}

/// The flags that have a value, each followed by its value.
pub(super) fn given_flags<const N: usize>(
    flags: [(&'static str, Option<String>); N],
) -> impl Iterator<Item = String> {
    let given = flags.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
    given.flatten()
}

/// The number of workers: as given on the command line, or one per core.
pub(super) fn workers(jobs: Option<u16>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    jobs.map_or_else(cores, usize::from)
}

/// The error for `--program` together with `--engine`.
pub(super) fn program_and_engine() -> Failure {
    let what = "--program requires the upstream engine, which it replaces";
    Failure::usage(what).hint("leave out --engine")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unavailable_patch_is_not_a_release() {
        let [minor, patch] = [Release { minor: 18 }, Release { minor: 37 }];
        assert_eq!(release("1.18"), Ok(minor));
        assert_eq!(release("v1.37.2"), Ok(patch));
        let available = build::version(build::Artifact::Host, minor).unwrap_or_default();
        assert_eq!(release(&available), Ok(minor));
        for wrong in ["1.18.3", "1.9.99", "v1.37.00"] {
            let error = release(wrong).expect_err(wrong);
            assert!(error.contains("did you mean 1."), "{error}");
            assert!(releases(&format!("1.30,{wrong}")).is_err(), "{wrong}");
            assert!(releases(&format!("{wrong}-1.37")).is_err(), "{wrong}");
        }
        assert_eq!(releases("all").map(|it| it.iter().count()), Ok(Release::supported().count()));
        assert!(releases("1.30, 1.35 - 1.37.2").is_ok());
    }
}
