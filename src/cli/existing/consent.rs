//! The announcement of a run before it creates objects on an existing cluster, and the question
//! whether to continue.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::time::Duration;

use super::{ContextArgs, ExistingClusterArgs};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::output::{show, tell};
use kube_autoscaler_models::rules::Releases;
use kube_autoscaler_models::time::Span;
use kube_lockstep_clusters::{containers, kubeconfig};
use kube_lockstep_engines::options::{ClusterInfo, ExistingCluster};
use kube_lockstep_engines::plan::Plan;
use kube_lockstep_engines::registry::EngineChoice;
use kube_lockstep_report::style::{STRONG, WARN, paint};

/// A command of this program for a cluster, named by its context and kubeconfig.
pub(in crate::cli) fn cluster_command(
    command: [&str; 2],
    context: Option<&str>,
    kubeconfig: Option<&Path>,
) -> Vec<OsString> {
    // If the program's path is unknown, the shell may find it by its name.
    let program = std::env::current_exe().map_or("kube-lockstep".into(), OsString::from);
    let mut all = vec![program];
    all.extend(command.map(OsString::from));
    all.extend(context.into_iter().flat_map(|name| ["--context".into(), name.into()]));
    all.extend(kubeconfig.into_iter().flat_map(|file| ["--kubeconfig".into(), file.into()]));
    all
}

impl ContextArgs {
    /// The selected cluster. The current context is never used, because it is set for other
    /// purposes.
    fn open(&self) -> Result<ExistingCluster, Failure> {
        let contexts = kubeconfig::contexts(self.kubeconfig.as_ref()).map_err(|error| {
            let hint = "--kubeconfig FILE names a kubeconfig, and --context NAME one of its \
                        contexts";
            Failure::usage(error.to_string()).hint(hint)
        })?;
        let list = match contexts.as_slice() {
            [] => "the kubeconfig has no contexts".to_owned(),
            contexts => format!("the contexts are {}", contexts.join(", ")),
        };
        let Some(context) = &self.context else {
            let what = "an existing cluster requires an explicit context";
            return Err(Failure::usage(what).hint(format!("--context NAME; {list}")));
        };
        if !contexts.contains(context) {
            let what = format!("the kubeconfig has no context {context:?}");
            return Err(Failure::usage(what).hint(list));
        }
        let (kubeconfig, context) = (self.kubeconfig.clone(), context.clone());
        Ok(ExistingCluster { kubeconfig, context, ..ExistingCluster::default() })
    }
}

impl ExistingClusterArgs {
    /// The selected cluster, for the engine on the command line.
    pub(in crate::cli) fn open(
        &self,
        engine: Option<EngineChoice>,
    ) -> Result<ExistingCluster, Failure> {
        let (context, file) = (self.of.context.as_deref(), self.of.kubeconfig.as_deref());
        let mut cluster = ExistingCluster {
            metrics_address: self.metrics_address.clone(),
            replaces: self.replace_metrics_api,
            cleanup_command: cluster_command(["cluster", "clean"], context, file),
            ..self.of.open()?
        };
        if engine == Some(EngineChoice::Kind) && cluster.metrics_address.is_none() {
            cluster.metrics_address = containers::own_address();
        }
        Ok(cluster)
    }

    /// Reads the state of the cluster, announces the objects to create, and asks whether to
    /// continue. Sets the plan's release to that of the cluster.
    pub(in crate::cli) fn confirm(
        &self,
        cluster: &ExistingCluster,
        plan: &mut Plan,
        release: Option<&Releases>,
    ) -> Result<(), Failure> {
        let info = kubeconfig::inspect(cluster)?;
        let cluster_release = Releases::only(info.release);
        if release.is_some_and(|release| *release != cluster_release) {
            let what = format!("the cluster of context {} runs {}", cluster.context, info.version);
            return Err(
                Failure::usage(what).hint("leave out --release, or name the cluster's release")
            );
        }
        plan.releases = cluster_release;
        tell(&cleaned(&info.cleaned));
        if !info.metrics_apis.is_empty() && !cluster.replaces {
            let what = format!("the cluster already has {}", names(&info.metrics_apis));
            let hint = "--replace-metrics-api replaces it during the run, and restores it at the \
                        end";
            return Err(Failure::engine(what).hint(hint));
        }
        tell(&announcement(cluster, plan, &info));
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let what = "nothing was created in the cluster: the run was not confirmed";
            return Err(Failure::usage(what).hint("--yes confirms it"));
        }
        tell("Continue? [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        match read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            true => Ok(()),
            false => Err(Failure::usage("nothing was created in the cluster")),
        }
    }
}

/// Removes the leftovers of killed runs.
pub(in crate::cli) fn clean(args: &ContextArgs) -> anyhow::Result<u8> {
    let cluster = args.open()?;
    let done = kubeconfig::clean(&cluster).map_err(Failure::from)?;
    match done.is_empty() {
        true => show(&format!(
            "There are no leftovers in the cluster of context {}.\n",
            cluster.context
        ))?,
        false => show(&format!("{}\n", done.join("\n")))?,
    }
    Ok(exit::CONFORMS)
}

fn cleaned(done: &[String]) -> String {
    match done.is_empty() {
        true => String::new(),
        false => format!("Removed the leftovers of an earlier run: {}.\n", done.join(", ")),
    }
}

fn names(apis: &[(String, String)]) -> String {
    let one = |(name, service): &(String, String)| format!("{name} (of {service})");
    apis.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The announcement of the objects to create and the expected duration.
fn announcement(cluster: &ExistingCluster, plan: &Plan, info: &ClusterInfo) -> String {
    let ExistingCluster { context, .. } = cluster;
    let ClusterInfo { server, version, metrics_apis, hpas, .. } = info;
    let mut text = format!(
        "In the cluster of context {} ({server}, Kubernetes {version}) this command creates\n  - a \
         namespace kube-lockstep-… for each of up to {} scenarios, {} at a time, each with a \
         workload, its pods and an HPA; no node runs these pods\n  - a namespace \
         kube-lockstep-metrics with a Service, and APIServices for the metrics APIs, which point \
         to this machine\n  - a namespace kube-lockstep-warm-up with an HPA to measure the sync \
         period, and a namespace kube-lockstep-latency-probe with a Deployment without pods, \
         edited three times a second to check that the controllers keep up\n",
        paint(STRONG, context),
        plan.runs(),
        plan.jobs.min(plan.runs()),
    );
    if !metrics_apis.is_empty() {
        let _ = writeln!(
            text,
            "  - {}: it replaces {} during the run: `kubectl top` does not work, and the {hpas} \
             HPAs of the cluster have no metrics and keep their replicas",
            paint(WARN, "note"),
            names(metrics_apis)
        );
    }
    let _ = writeln!(
        text,
        "The run takes {} with the default sync period. All objects are removed at the end, even \
         after Ctrl-C or a kill. If this machine is lost, the next run or `{}` removes them.",
        expected_duration(plan),
        cluster.cleaning()
    );
    text
}

/// The expected duration, without scenarios that are too long.
fn expected_duration(plan: &Plan) -> String {
    let lengths = plan.scenarios.iter().map(|it| Duration::from_nanos(it.until.0.unsigned_abs()));
    let lengths: Vec<Duration> = lengths.filter(|it| *it <= plan.cluster.pace.longest).collect();
    let all: Duration = lengths.iter().sum();
    let jobs = u32::try_from(plan.jobs).unwrap_or(u32::MAX).max(1);
    let longest = lengths.iter().max().copied().unwrap_or_default();
    // The sync period is measured before the first scenario.
    let seconds = (all / jobs).max(longest).as_secs() + 60;
    match seconds {
        ..=90 => "a minute".to_owned(),
        _ => format!("about {}", Span::from_mins(i64::try_from(seconds / 60 + 1).unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_keeps_its_arguments_for_the_replay() {
        let cleanup_command =
            cluster_command(["cluster", "clean"], Some("staging"), Some(Path::new("mine")));
        let cluster = ExistingCluster { cleanup_command, ..ExistingCluster::default() };
        let command = "kube-lockstep cluster clean --context staging --kubeconfig mine";
        assert_eq!(cluster.cleaning(), command);
    }
}
