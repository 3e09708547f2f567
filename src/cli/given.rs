//! Somebody's cluster on the command line: which one, what will be made there, and whether that is
//! wanted.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure::Failure;
use super::show;
use crate::engine::kubeconfig::{self, Given, Look, Place};
use crate::model::rules::Releases;
use crate::model::time::Span;
use crate::report::style::{STRONG, WARN, paint};
use crate::run::Plan;

/// Which cluster.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct OfContext {
    /// The context of a kubeconfig whose cluster is meant; nothing is done without
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The kubeconfig [default: what KUBECONFIG names, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// This program's command for a cluster, by its context and kubeconfig as they are named.
pub(super) fn again(
    command: [&str; 2],
    (context, kubeconfig): (Option<&str>, Option<&Path>),
) -> Vec<OsString> {
    // One that is not there any more may still be found by its name.
    let program = std::env::current_exe().map_or("kube-lockstep".into(), OsString::from);
    let mut all = vec![program];
    all.extend(command.map(OsString::from));
    all.extend(context.into_iter().flat_map(|name| ["--context".into(), name.into()]));
    all.extend(kubeconfig.into_iter().flat_map(|file| ["--kubeconfig".into(), file.into()]));
    all
}

impl OfContext {
    /// The cluster that is named. The context that is current is not enough: it is set for other
    /// purposes.
    fn open(&self) -> Result<Given, Failure> {
        let there = kubeconfig::contexts(self.kubeconfig.as_ref());
        let there = there.map_err(|error| {
            let hint = "--kubeconfig FILE names one, and --context NAME a cluster of it";
            Failure::usage(error.to_string()).hint(hint)
        })?;
        let list = match there.as_slice() {
            [] => "the kubeconfig has no contexts".to_owned(),
            there => format!("there are {}", there.join(", ")),
        };
        let Some(context) = &self.context else {
            let what = "an existing cluster requires an explicit context";
            return Err(Failure::usage(what).hint(format!("--context NAME; {list}")));
        };
        if !there.contains(context) {
            let what = format!("the kubeconfig has no context {context:?}");
            return Err(Failure::usage(what).hint(list));
        }
        let (kubeconfig, context) = (self.kubeconfig.clone(), context.clone());
        Ok(Given { kubeconfig, context, ..Given::default() })
    }
}

/// Which cluster, and what may be done to it.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "With --engine kubeconfig")]
pub(super) struct OfGiven {
    #[command(flatten)]
    of: OfContext,
    /// Where the cluster's API server finds this machine [default: it is tried]
    #[arg(long, value_name = "HOST[:PORT]")]
    metrics_address: Option<Place>,
    /// Put the scenarios' metrics API in the place of the cluster's own meanwhile, and restore that
    /// at the end
    #[arg(long)]
    replace_metrics_api: bool,
    /// Agree to what will be made on the cluster, without a question
    #[arg(long)]
    yes: bool,
}

impl OfGiven {
    /// Whether a cluster is named.
    pub(super) fn is_named(&self) -> bool {
        self.of.context.is_some()
    }

    /// How it is named on a command line; nothing if it is not.
    pub(super) fn words(&self) -> Vec<String> {
        let file = self.of.kubeconfig.as_ref().map(|path| path.to_string_lossy().into_owned());
        let named = [
            ("--context", self.of.context.clone()),
            ("--kubeconfig", file),
            ("--metrics-address", self.metrics_address.as_ref().map(ToString::to_string)),
        ];
        let named = named.into_iter().filter_map(|(flag, value)| Some([flag.to_owned(), value?]));
        let replaces = self.replace_metrics_api.then(|| "--replace-metrics-api".to_owned());
        named.flatten().chain(replaces).collect()
    }

    /// The cluster that is named, if the engine is one that has to be.
    pub(super) fn open(&self, wanted: bool) -> Result<Option<Given>, Failure> {
        if wanted {
            let (metrics_address, replaces) =
                (self.metrics_address.clone(), self.replace_metrics_api);
            let named = (self.of.context.as_deref(), self.of.kubeconfig.as_deref());
            let cleans = again(["cluster", "clean"], named);
            return Ok(Some(Given { metrics_address, replaces, cleans, ..self.of.open()? }));
        }
        let named = [
            (self.of.context.is_some(), "--context"),
            (self.of.kubeconfig.is_some(), "--kubeconfig"),
            (self.metrics_address.is_some(), "--metrics-address"),
            (self.replace_metrics_api, "--replace-metrics-api"),
            (self.yes, "--yes"),
        ];
        match named.iter().find(|(given, _)| *given) {
            Some((_, flag)) if !self.is_named() => {
                let what = format!("{flag} requires an existing cluster, and --context names none");
                let hint = format!(
                    "add --context NAME, with --engine kubeconfig or kind, or leave out {flag}"
                );
                Err(Failure::usage(what).hint(hint))
            }
            Some((_, flag)) => {
                let what = format!("{flag} requires --engine kubeconfig");
                Err(Failure::usage(what).hint(format!("add it, or leave out {flag}")))
            }
            None => Ok(None),
        }
    }

    /// Looks at the cluster, tells what will be made there, and asks whether that is wanted. The
    /// plan's release is then the cluster's.
    pub(super) fn agree(
        &self,
        given: &Given,
        plan: &mut Plan,
        release: Option<&Releases>,
    ) -> Result<(), Failure> {
        let look = kubeconfig::look(given)?;
        let of_cluster = Releases::only(look.release);
        if release.is_some_and(|release| *release != of_cluster) {
            let what = format!("the cluster of context {} is {}", given.context, look.version);
            return Err(Failure::usage(what).hint("leave out --release, or name that one"));
        }
        plan.releases = of_cluster;
        tell(&cleaned(&look.cleaned));
        if !look.metrics_apis.is_empty() && !given.replaces {
            let what = format!("the cluster has {} already", names(&look.metrics_apis));
            let hint = "--replace-metrics-api puts the scenarios' own in its place meanwhile, and \
                        restores it at the end";
            return Err(Failure::engine(what).hint(hint));
        }
        tell(&announcement(given, plan, &look));
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let what = "nothing was created on the cluster: the run was not confirmed";
            return Err(Failure::usage(what).hint("--yes agrees"));
        }
        tell("Go on? [y/N] ");
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        match read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            true => Ok(()),
            false => Err(Failure::usage("nothing was made there")),
        }
    }
}

/// Removes what dead runs have left.
pub(super) fn clean(of: &OfContext) -> anyhow::Result<u8> {
    let given = of.open()?;
    let done = kubeconfig::clean(&given).map_err(Failure::from)?;
    match done.is_empty() {
        true => show(&format!("Nothing is left on the cluster of context {}.\n", given.context))?,
        false => show(&format!("{}\n", done.join("\n")))?,
    }
    Ok(super::exit::CONFORMS)
}

/// Told apart from the results.
fn tell(text: &str) {
    let mut err = anstream::stderr();
    // There is nobody left to tell if even this can't be written.
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

fn cleaned(done: &[String]) -> String {
    match done.is_empty() {
        true => String::new(),
        false => format!("A run that has died had left something: {}.\n", done.join(", ")),
    }
}

fn names(apis: &[(String, String)]) -> String {
    let one = |(name, service): &(String, String)| format!("{name} (of {service})");
    apis.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What will be made on the cluster, and for how long.
fn announcement(given: &Given, plan: &Plan, look: &Look) -> String {
    let Given { context, .. } = given;
    let Look { server, version, metrics_apis, hpas, .. } = look;
    let mut text = format!(
        "On the cluster of context {} ({server}, Kubernetes {version}) this will make\n  \
         - a namespace kube-lockstep-… for each of up to {} scenarios, {} at a time, each with a \
         workload, its pods and an HPA; no node ever runs these pods\n  \
         - a namespace kube-lockstep-metrics with a Service, and APIServices of the metrics APIs, \
         which lead to this machine\n  \
         - a namespace kube-lockstep-warm-up with an HPA that tells the sync period, and \
         kube-lockstep-pulse with a Deployment without pods, edited three times a second to see \
         whether the controllers keep pace\n",
        paint(STRONG, context),
        plan.runs(),
        plan.jobs.min(plan.runs()),
    );
    if !metrics_apis.is_empty() {
        let _ = writeln!(
            text,
            "  - {}: it replaces {} meanwhile: `kubectl top` has no answers, and the {hpas} HPAs \
             of the cluster see no metrics and keep their sizes",
            paint(WARN, "note"),
            names(metrics_apis)
        );
    }
    let _ = writeln!(
        text,
        "It takes {} where the sync period is the usual one. All of it is removed at the end, also \
         after Ctrl-C or a kill; if this machine is lost, by the next run, or by `{}`.",
        takes(plan),
        given.cleaning()
    );
    text
}

/// How long the scenarios take as they are written, those left out that take too long.
fn takes(plan: &Plan) -> String {
    let lengths = plan.scenarios.iter().map(|it| Duration::from_nanos(it.until.0.unsigned_abs()));
    let lengths: Vec<Duration> = lengths.filter(|it| *it <= plan.pace.longest).collect();
    let all: Duration = lengths.iter().sum();
    let jobs = u32::try_from(plan.jobs).unwrap_or(u32::MAX).max(1);
    let longest = lengths.iter().max().copied().unwrap_or_default();
    // Before the first one, the sync period is measured.
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
    fn who_names_no_cluster_is_told_how() {
        let of = |kubeconfig: &str, context: Option<&str>| OfGiven {
            of: OfContext {
                context: context.map(str::to_owned),
                kubeconfig: Some(PathBuf::from(kubeconfig)),
            },
            metrics_address: None,
            replace_metrics_api: false,
            yes: false,
        };
        let hint = |failure: Failure| failure.hint.unwrap_or_default();
        let unnamed = of("/nowhere", None).open(false).expect_err("no context is named");
        assert!(unnamed.what.starts_with("--kubeconfig requires an existing cluster"), "{unnamed}");
        assert!(hint(unnamed).starts_with("add --context NAME, with --engine kubeconfig or kind"));
        let other = of("/nowhere", Some("staging")).open(false).expect_err("another engine");
        assert!(other.what.starts_with("--context requires --engine kubeconfig"), "{other}");
        let missing = of("/nowhere", Some("staging")).open(true).expect_err("there is no file");
        assert!(hint(missing).contains("--kubeconfig FILE"));
    }

    #[test]
    fn a_command_is_the_same_again() {
        let named = (Some("staging"), Some(Path::new("mine")));
        let given = Given { cleans: again(["cluster", "clean"], named), ..Given::default() };
        let command = "kube-lockstep cluster clean --context staging --kubeconfig mine";
        assert_eq!(given.cleaning(), command);
    }
}
