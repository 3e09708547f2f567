//! The arguments for an existing cluster: its context, and the permitted changes.

#[cfg(feature = "clusters")]
mod consent;

use std::path::PathBuf;

use super::args::given_flags;
use super::failure::Failure;
use kube_lockstep_engines::options::HostPort;

#[cfg(feature = "clusters")]
pub(super) use consent::{clean, cluster_command};

/// The selected cluster.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct ContextArgs {
    /// The kubeconfig context of the cluster. Required: the current context is never used
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The kubeconfig [default: KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// The selected cluster, and the permitted changes.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "With --engine kubeconfig")]
pub(super) struct ExistingClusterArgs {
    #[command(flatten)]
    of: ContextArgs,
    /// The address of this machine as seen from the cluster's API server [default: detected]
    #[arg(long, value_name = "HOST[:PORT]")]
    metrics_address: Option<HostPort>,
    /// Replace the cluster's own metrics API during the run, and restore it at the end
    #[arg(long)]
    replace_metrics_api: bool,
    /// Create objects in the cluster without asking for confirmation
    #[arg(long)]
    yes: bool,
}

impl ExistingClusterArgs {
    /// Returns true if the command line selects a cluster.
    pub(super) fn is_named(&self) -> bool {
        self.of.context.is_some()
    }

    /// The arguments that select the same cluster in a replay.
    pub(super) fn replay_args(&self) -> impl Iterator<Item = String> {
        let file = self.of.kubeconfig.as_ref().map(|path| path.to_string_lossy().into_owned());
        let replaces = self.replace_metrics_api.then(|| "--replace-metrics-api".to_owned());
        given_flags([
            ("--context", self.of.context.clone()),
            ("--kubeconfig", file),
            ("--metrics-address", self.metrics_address.as_ref().map(ToString::to_string)),
        ])
        .chain(replaces)
    }

    /// Rejects the flags if the engine is not an existing cluster.
    pub(super) fn refuse_flags(&self) -> Result<(), Failure> {
        let named = [
            (self.of.context.is_some(), "--context"),
            (self.of.kubeconfig.is_some(), "--kubeconfig"),
            (self.metrics_address.is_some(), "--metrics-address"),
            (self.replace_metrics_api, "--replace-metrics-api"),
            (self.yes, "--yes"),
        ];
        let Some((_, flag)) = named.iter().find(|(given, _)| *given) else { return Ok(()) };
        if self.is_named() {
            let what = format!("{flag} requires --engine kubeconfig");
            return Err(
                Failure::usage(what).hint(format!("add --engine kubeconfig, or leave out {flag}"))
            );
        }
        let what = format!("{flag} requires an existing cluster (--context)");
        let hint =
            format!("add --context NAME, with --engine kubeconfig or kind, or leave out {flag}");
        Err(Failure::usage(what).hint(hint))
    }
}

/// The same functions in a build that can't connect to clusters.
#[cfg(not(feature = "clusters"))]
mod without {
    use super::{ContextArgs, ExistingClusterArgs};
    use crate::cli::failure::Failure;
    use kube_autoscaler_models::rules::Releases;
    use kube_lockstep_engines::options::ExistingCluster;
    use kube_lockstep_engines::plan::Plan;
    use kube_lockstep_engines::registry::EngineChoice;

    impl ExistingClusterArgs {
        pub(in crate::cli) fn open(
            &self,
            _: Option<EngineChoice>,
        ) -> Result<ExistingCluster, Failure> {
            Err(Failure::without_clusters("`--engine kubeconfig`"))
        }

        pub(in crate::cli) fn confirm(
            &self,
            _: &ExistingCluster,
            _: &mut Plan,
            _: Option<&Releases>,
        ) -> Result<(), Failure> {
            Err(Failure::without_clusters("`--engine kubeconfig`"))
        }
    }

    pub(in crate::cli) fn clean(_: &ContextArgs) -> anyhow::Result<u8> {
        Err(Failure::without_clusters("`kube-lockstep cluster clean`").into())
    }
}

#[cfg(not(feature = "clusters"))]
pub(super) use without::clean;

#[cfg(test)]
mod tests {
    use super::*;

    fn args(context: Option<&str>) -> ExistingClusterArgs {
        ExistingClusterArgs {
            of: ContextArgs {
                context: context.map(str::to_owned),
                kubeconfig: Some(PathBuf::from("/nowhere")),
            },
            metrics_address: None,
            replace_metrics_api: false,
            yes: false,
        }
    }

    #[test]
    fn flags_without_their_engine_are_rejected_with_a_hint() {
        let hint = |failure: Failure| failure.problem.hint_text().unwrap_or_default();
        let unnamed = args(None).refuse_flags().expect_err("no context is named");
        assert!(
            unnamed.problem.what.starts_with("--kubeconfig requires an existing cluster"),
            "{unnamed}"
        );
        assert!(hint(unnamed).starts_with("add --context NAME, with --engine kubeconfig or kind"));
        let other = args(Some("staging")).refuse_flags().expect_err("another engine");
        assert!(
            other.problem.what.starts_with("--context requires --engine kubeconfig"),
            "{other}"
        );
    }

    #[cfg(feature = "clusters")]
    #[test]
    fn a_missing_kubeconfig_is_named() {
        let missing = args(Some("staging")).open(None).expect_err("there is no file");
        assert!(missing.problem.hint_text().unwrap_or_default().contains("--kubeconfig FILE"));
    }
}
