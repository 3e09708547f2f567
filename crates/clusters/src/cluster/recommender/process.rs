//! The process of a recommender: upstream's program.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::cluster::provision::process::tail;
use kube_autoscaler_models::time::Span;
use kube_lockstep_engines::guard::cluster::Guard;
use kube_lockstep_sim::engine::shell::shell_word;

/// Flags that the harness sets, with their values. Scenarios can't set them.
const OWN_FLAGS: [(&str, &str); 3] = [
    // The port of the recommender's own metrics: any free one.
    ("address", "127.0.0.1:0"),
    // The client's rate limits of 5 requests/s would delay the writes of a run.
    ("kube-api-qps", "200"),
    ("kube-api-burst", "400"),
];

/// The flag that limits the recommender to the objects of a namespace.
pub(super) const NAMESPACE_FLAG: &str = "vpa-object-namespace";

/// A running recommender.
pub(super) struct Process {
    guard: Guard,
    log: PathBuf,
}

/// The command line of a recommender for one namespace.
pub(super) fn command(
    program: &Path,
    kubeconfig: &Path,
    namespace: &str,
    flags: &BTreeMap<String, String>,
    interval: Span,
) -> String {
    let interval = format!("{}ns", interval.0);
    let own = [
        ("kubeconfig", kubeconfig.display().to_string()),
        (NAMESPACE_FLAG, namespace.to_owned()),
        ("recommender-interval", interval),
    ];
    let set = own.into_iter().chain(OWN_FLAGS.map(|(name, value)| (name, value.to_owned())));
    let set: BTreeMap<&str, String> = set.collect();
    let written = flags.iter().map(|(name, value)| (&**name, value.clone()));
    let written = written.filter(|(name, _)| !set.contains_key(name));
    let args = written.chain(set.clone()).map(|(name, value)| format!("--{name}={value}"));
    let words: Vec<String> = [program.display().to_string()]
        .into_iter()
        .chain(args)
        .map(|word| shell_word(&word))
        .collect();
    format!("exec {}", words.join(" "))
}

impl Process {
    /// Starts a recommender. Its log is appended to a file.
    ///
    /// # Errors
    /// If the shell can't be started, or the log can't be created.
    pub(super) fn start(command: &str, log: PathBuf) -> io::Result<Process> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&log)?;
        Ok(Process { guard: Guard::holding(command, Vec::new(), file)?, log })
    }

    /// The exit status, if it has exited.
    pub(super) fn exited(&mut self) -> Option<ExitStatus> {
        self.guard.exited()
    }

    /// The last lines of its log.
    pub(super) fn tail(&self) -> String {
        tail(&self.log).unwrap_or_default()
    }

    /// Stops it, and waits for its exit.
    pub(super) async fn stop(self) {
        self.guard.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_scenario_do_not_replace_those_of_the_harness() {
        let flags = [("recommender-interval", "1m"), ("oom-bump-up-ratio", "1.5")];
        let flags = flags.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let (program, kubeconfig) = (Path::new("/a b/recommender"), Path::new("/k"));
        let command = command(program, kubeconfig, "shop", &flags, Span::from_secs(4));
        assert!(command.starts_with("exec '/a b/recommender' --oom-bump-up-ratio=1.5 "));
        assert!(command.contains(" --recommender-interval=4000000000ns"), "{command}");
        assert!(!command.contains("=1m"), "{command}");
        assert!(command.contains(" --vpa-object-namespace=shop"), "{command}");
    }
}
