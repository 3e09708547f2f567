//! The configuration of a control plane.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::workload::CustomKind;
use kube_autoscaler_models::flags::{Flag, Flags, gate_list};
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_engines::custom::Controller;

/// The user as which upstream's own HPA controller sends its requests.
pub(crate) const UPSTREAM_USER: &str =
    "system:serviceaccount:kube-system:horizontal-pod-autoscaler";

/// The number of workers of each controller: with fewer workers, concurrent scenarios would wait
/// for each other.
pub(crate) const WORKERS: &str = "100";

/// The configuration of a control plane.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Settings {
    /// The release, which decides on the flags that exist.
    pub release: Release,
    /// Flags of the kube-controller-manager.
    pub flags: Flags,
    /// Feature gates of the API server and the kube-controller-manager, by name.
    pub gates: BTreeMap<String, bool>,
    /// True if upstream's HPA controller runs.
    pub(crate) hpa_controller: bool,
    /// Additional arguments of the API server, without dashes.
    pub api_server: Vec<String>,
    /// The names of the users whose requests are in the audit log. If empty, there is no audit log.
    pub observed: Vec<String>,
    /// Custom resources to define.
    pub(crate) custom_kinds: BTreeSet<CustomKind>,
    /// True if it runs only a few scenarios, in parallel with other clusters. It then uses half of
    /// the cores.
    pub small: bool,
    /// The custom HPA controller to start.
    pub controller: Option<Controller>,
}

impl Settings {
    /// The configuration of the newest release with upstream's HPA controller and these flags.
    pub(crate) fn new(flags: Flags) -> Settings {
        Settings {
            release: Release::NEWEST,
            flags,
            gates: BTreeMap::new(),
            hpa_controller: true,
            api_server: Vec::new(),
            observed: Vec::new(),
            custom_kinds: BTreeSet::new(),
            small: false,
            controller: None,
        }
    }

    /// Returns true if new flags of the kube-controller-manager are enough to reach another
    /// configuration.
    pub(crate) fn can_become(&self, other: &Settings) -> bool {
        let (observed, small) = (self.observed.clone(), self.small);
        self.controller.is_none()
            && self.custom_kinds.is_superset(&other.custom_kinds)
            && self.agrees(&Settings { flags: self.flags, observed, small, ..other.clone() })
    }

    /// Returns true if scenarios of both can share a control plane, which defines the custom
    /// resources of both.
    pub(crate) fn agrees(&self, other: &Settings) -> bool {
        let custom_kinds = self.custom_kinds.clone();
        *self == Settings { custom_kinds, ..other.clone() }
    }
}

/// The flags of the HPA controller. The number of workers does not come from the scenario, because
/// it must be enough for all concurrent scenarios; a single HPA is not affected.
pub(crate) fn flags(settings: &Settings) -> Vec<String> {
    let Settings { flags, release, .. } = settings;
    let rules = Rules::of(*release);
    // Kubernetes 1.12 and later accept both delays without effect, as deprecated flags.
    let is_set = |flag: &Flag| {
        rules.flags[*flag as usize] && !matches!(flag, Flag::UpscaleDelay | Flag::DownscaleDelay)
    };
    let argument = |flag: Flag| match flag {
        Flag::ConcurrentSyncs => format!("--{}={WORKERS}", flag.name()),
        _ => format!("--{}={}", flag.name(), flags.get(flag)),
    };
    Flag::ALL.into_iter().filter(is_set).map(argument).collect()
}

/// The flag of the feature gates, if any.
pub(crate) fn gates(gates: &BTreeMap<String, bool>) -> Option<String> {
    (!gates.is_empty()).then(|| format!("--feature-gates={}", gate_list(gates)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flags_of_the_release_are_set() {
        let has_workers = |release: &str| {
            let release = Release::known(release).expect("known");
            let settings = Settings { release, ..Settings::new(Flags::default()) };
            flags(&settings).iter().any(|flag| flag.contains("concurrent"))
        };
        assert!(!has_workers("1.25") && has_workers("1.26") && has_workers("1.37"));
    }
    use kube_autoscaler_models::time::Span;

    #[test]
    fn only_flags_can_be_changed() {
        let default_image = Settings::new(Flags::default());
        let observed = vec!["user".to_owned()];
        let started = Settings { observed, small: true, ..default_image.clone() };
        let flags = Flags { sync_period: Span::from_secs(1), ..Flags::default() };
        assert!(started.can_become(&default_image));
        assert!(started.can_become(&Settings::new(flags)));
        let gates = BTreeMap::from([("HPAScaleToZero".to_owned(), false)]);
        assert!(!started.can_become(&Settings { gates, ..default_image.clone() }));
        assert!(!started.can_become(&Settings { hpa_controller: false, ..default_image.clone() }));
        let api_server = vec!["enable-aggregator-routing=true".to_owned()];
        assert!(!started.can_become(&Settings { api_server, ..default_image }));
    }
}
