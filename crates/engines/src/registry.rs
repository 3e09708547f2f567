//! The list of all engines, by name. `run::virtual_time` and `run::wall_clock` start them.
//!
//! The list is the same in every build. A run that requests an engine whose cargo feature is
//! missing fails with an error that names the feature.

use crate::process_group::SYSTEMS;
use crate::{recorded, upstream};
use kube_lockstep_scenario::Diagnostic;
use kube_lockstep_sim::engine::{EngineError, model};

/// The clock of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clock {
    /// The engine advances the clock from event to event.
    Virtual,
    /// The engine is a cluster, which uses the wall clock.
    Wall,
}

/// The engine to run scenarios on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EngineChoice {
    /// Upstream if it can run on this machine, else its recorded traces.
    #[default]
    Best,
    /// Upstream's controller in virtual time.
    Upstream,
    /// The reference model.
    Model,
    /// Upstream's recorded traces.
    Recorded,
    /// A control plane of child processes.
    Embedded,
    /// The same control plane in a container.
    Image,
    /// k3s in a container.
    K3s,
    /// A new kind cluster.
    Kind,
    /// An existing cluster.
    Kubeconfig,
}

/// The static data of an engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineInfo {
    /// The engine.
    pub choice: EngineChoice,
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// A line of help.
    pub about: &'static str,
    /// The clock that it uses.
    pub clock: Clock,
    /// The clock of scenarios of the recommender, which run in virtual time unless the engine is a
    /// cluster that can run the recommender's program.
    pub recommender_clock: Clock,
    /// The cargo feature that it requires.
    pub feature: Option<&'static str>,
    /// True if it creates clusters in containers, so that `--image` can choose their image.
    pub takes_image: bool,
    /// True if `--controller` can replace upstream's controller.
    pub takes_controller: bool,
    /// True if it uses a cluster that exists already, with the settings of that cluster.
    pub is_existing: bool,
}

/// The common properties of engines in virtual time.
const VIRTUAL: EngineInfo = EngineInfo {
    choice: EngineChoice::Best,
    name: "",
    about: "",
    clock: Clock::Virtual,
    recommender_clock: Clock::Virtual,
    feature: None,
    takes_image: false,
    takes_controller: false,
    is_existing: false,
};

/// The common properties of clusters.
const CLUSTER: EngineInfo = EngineInfo { clock: Clock::Wall, feature: Some(CLUSTERS), ..VIRTUAL };

/// All engines, in the order of the help.
pub const ENGINES: [EngineInfo; 8] = [
    EngineInfo {
        choice: EngineChoice::Upstream,
        name: upstream::NAME,
        about: "The upstream controller in virtual time",
        ..VIRTUAL
    },
    EngineInfo {
        choice: EngineChoice::Model,
        name: model::NAME,
        about: "The reference model: checks only the expectations",
        ..VIRTUAL
    },
    EngineInfo {
        choice: EngineChoice::Recorded,
        name: recorded::NAME,
        about: "Recorded traces of the upstream controller",
        ..VIRTUAL
    },
    EngineInfo {
        choice: EngineChoice::Embedded,
        name: EMBEDDED,
        about: "A real control plane on this machine: etcd, kube-apiserver, \
                kube-controller-manager",
        recommender_clock: Clock::Wall,
        takes_controller: true,
        ..CLUSTER
    },
    EngineInfo {
        choice: EngineChoice::Image,
        name: IMAGE,
        about: "The embedded control plane in a container (requires Docker)",
        takes_image: true,
        ..CLUSTER
    },
    EngineInfo {
        choice: EngineChoice::K3s,
        name: K3S,
        about: "k3s in a container (requires Docker and the k3s image)",
        takes_image: true,
        ..CLUSTER
    },
    EngineInfo {
        choice: EngineChoice::Kind,
        name: KIND,
        about: "A new kind cluster (requires kind and Docker); with --context, an existing one",
        takes_image: true,
        ..CLUSTER
    },
    EngineInfo {
        choice: EngineChoice::Kubeconfig,
        name: KUBECONFIG,
        about: "An existing cluster, named by --context, with its own sync period",
        is_existing: true,
        ..CLUSTER
    },
];

/// The name of the control plane of child processes.
pub const EMBEDDED: &str = "embedded";
/// The name of the control plane in its own image.
pub const IMAGE: &str = "image";
/// The name of k3s.
pub const K3S: &str = "k3s";
/// The name of a new kind cluster.
pub const KIND: &str = "kind";
/// The name of an existing cluster.
pub const KUBECONFIG: &str = "kubeconfig";

/// The cargo feature that contains all code for clusters.
pub const CLUSTERS: &str = "clusters";

impl EngineChoice {
    /// The engine's row in the registry; for [`EngineChoice::Best`], upstream's row.
    #[must_use]
    pub fn info(self) -> &'static EngineInfo {
        let [upstream, ..] = &ENGINES;
        ENGINES.iter().find(|engine| engine.choice == self).unwrap_or(upstream)
    }

    /// Returns true if it is a cluster, with a wall clock.
    #[must_use]
    pub fn is_wall_clock(self) -> bool {
        self.info().clock == Clock::Wall
    }
}

impl EngineInfo {
    /// The cargo feature that the engine requires and this build lacks. `has_clusters`: whether it
    /// has [`CLUSTERS`].
    #[must_use]
    pub fn missing_feature(&self, has_clusters: bool) -> Option<&'static str> {
        self.feature.filter(|_| !has_clusters)
    }

    /// Checks that this build contains the engine.
    ///
    /// # Errors
    /// If the build lacks a feature. The error names it.
    pub fn require(&self, has_clusters: bool) -> Result<(), EngineError> {
        let Some(feature) = self.missing_feature(has_clusters) else { return Ok(()) };
        Err(EngineError::Unavailable {
            engine: self.name.into(),
            problem: Diagnostic::new(format!(
                "`--engine {}` requires a build with `--features {feature}`",
                self.name
            ))
            .hint(feature_hint(feature)),
        })
    }
}

/// The hint for a build with a cargo feature.
#[must_use]
pub fn feature_hint(feature: &str) -> String {
    if feature == CLUSTERS && !cfg!(unix) {
        return format!("control planes require {SYSTEMS}");
    }
    format!(
        "in a clone of the repository, run `cargo install --path . --features {feature}` or \
         `cargo run --features {feature} -- …`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_hint_for_a_feature_also_holds_for_an_installed_program() {
        let hint = feature_hint(CLUSTERS);
        assert!(hint.contains("`cargo install --path . --features clusters`"), "{hint}");
        assert!(hint.contains("`cargo run --features clusters -- …`"), "{hint}");
    }

    #[test]
    fn every_engine_has_one_row() {
        for engine in &ENGINES {
            assert_eq!(engine.choice.info(), engine);
            assert_eq!(ENGINES.iter().filter(|other| other.name == engine.name).count(), 1);
        }
        assert_eq!(EngineChoice::Best.info().name, upstream::NAME);
    }

    #[test]
    fn only_clusters_require_a_feature() {
        for engine in &ENGINES {
            assert_eq!(engine.feature.is_some(), engine.clock == Clock::Wall, "{}", engine.name);
            assert!(engine.require(true).is_ok());
            assert_eq!(engine.require(false).is_ok(), engine.feature.is_none());
        }
    }
}
