//! What a control plane is to be like.

use crate::model::flags::Flag;
use crate::model::time::Span;
use std::collections::{BTreeMap, BTreeSet};

use crate::engine::cluster::workload::CustomKind;
use crate::engine::custom::Controller;
use crate::model::flags::{Flags, gate_list};

/// The user as which upstream's own HPA controller sends its requests.
pub(crate) const UPSTREAM_USER: &str =
    "system:serviceaccount:kube-system:horizontal-pod-autoscaler";

/// How many HPAs, Deployments and ReplicaSets are looked after at a time, each: with fewer workers,
/// they would wait for each other where nothing else does.
pub(crate) const WORKERS: &str = "100";

/// What a control plane is to be like.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Settings {
    /// Flags of the kube-controller-manager.
    pub(crate) flags: Flags,
    /// Feature gates of both, by name.
    pub(crate) gates: BTreeMap<String, bool>,
    /// Whether upstream's own controller of HPAs runs.
    pub(crate) hpa_controller: bool,
    /// More arguments of the API server, without their dashes.
    pub(crate) api_server: Vec<String>,
    /// Whose requests are told of, by user name; nobody's: none are.
    pub(crate) observed: Vec<String>,
    /// Kinds of custom resources that there are.
    pub(crate) custom_kinds: BTreeSet<CustomKind>,
    /// Whether few scenarios are played there, beside others: it has half of the cores.
    pub(crate) small: bool,
    /// Whose controller of HPAs is started beside it.
    pub(crate) controller: Option<Controller>,
}

impl Settings {
    /// Upstream's own, with these flags, and nothing else.
    pub(crate) fn of(flags: Flags) -> Settings {
        Settings {
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

    /// Whether a control plane that is like this becomes like another one by other flags of its
    /// kube-controller-manager.
    pub(crate) fn can_become(&self, other: &Settings) -> bool {
        let (observed, small) = (self.observed.clone(), self.small);
        self.controller.is_none()
            && self.custom_kinds.is_superset(&other.custom_kinds)
            && self.agrees(&Settings { flags: self.flags, observed, small, ..other.clone() })
    }

    /// Whether scenarios of both can be played on one: kinds of custom resources only add up.
    pub(crate) fn agrees(&self, other: &Settings) -> bool {
        let custom_kinds = self.custom_kinds.clone();
        *self == Settings { custom_kinds, ..other.clone() }
    }
}

/// The flags of the HPA controller. The number of its workers is not the scenario's: it has to be
/// enough for all scenarios that run side by side, and of one HPA nobody can tell.
pub(crate) fn flags(flags: &Flags) -> Vec<String> {
    let duration = |span: Span| format!("{}ns", span.0);
    let values = [
        (Flag::SyncPeriod, duration(flags.sync_period)),
        (Flag::DownscaleStabilization, duration(flags.downscale_stabilization)),
        (Flag::Tolerance, flags.tolerance.to_string()),
        (Flag::CpuInitializationPeriod, duration(flags.cpu_initialization_period)),
        (Flag::InitialReadinessDelay, duration(flags.initial_readiness_delay)),
        (Flag::ConcurrentSyncs, WORKERS.to_owned()),
    ];
    values.into_iter().map(|(flag, value)| format!("--{}={value}", flag.name())).collect()
}

/// The flag of feature gates, if there are any.
pub(crate) fn gates(gates: &BTreeMap<String, bool>) -> Option<String> {
    (!gates.is_empty()).then(|| format!("--feature-gates={}", gate_list(gates)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Span;

    #[test]
    fn only_flags_can_be_changed() {
        let usual = Settings::of(Flags::default());
        let observed = vec!["somebody".to_owned()];
        let started = Settings { observed, small: true, ..usual.clone() };
        let flags = Flags { sync_period: Span::from_secs(1), ..Flags::default() };
        assert!(started.can_become(&usual));
        assert!(started.can_become(&Settings::of(flags)));
        let gates = BTreeMap::from([("HPAScaleToZero".to_owned(), false)]);
        assert!(!started.can_become(&Settings { gates, ..usual.clone() }));
        assert!(!started.can_become(&Settings { hpa_controller: false, ..usual.clone() }));
        let api_server = vec!["enable-aggregator-routing=true".to_owned()];
        assert!(!started.can_become(&Settings { api_server, ..usual }));
    }
}
