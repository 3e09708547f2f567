//! The requests of the page.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::tune::Search;

/// A request.
#[derive(Debug, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase")]
pub(crate) enum Request {
    /// The version, the releases and the schema.
    About,
    /// The prediction of a scenario.
    Predict(Subject),
    /// One tick in full, as `kube-lockstep explain` prints it.
    Explain {
        /// The scenario.
        #[serde(flatten)]
        subject: Subject,
        /// The number of the tick, from 1.
        tick: usize,
    },
    /// The ticks as CSV.
    Csv(Subject),
    /// The trace in its recorded form.
    Trace(Subject),
    /// The scenario on two releases.
    Compare {
        /// The scenario, and one of the releases.
        #[serde(flatten)]
        subject: Subject,
        /// The other release of Kubernetes.
        with: String,
        /// The other release of the VPA, for scenarios of VPAs.
        #[serde(default, rename = "vpaWith")]
        vpa_with: String,
    },
    /// The search for better settings of the HPAs of a scenario.
    Tune {
        /// The scenario.
        #[serde(flatten)]
        subject: Subject,
        /// What to search for.
        #[serde(flatten)]
        search: Search,
    },
    /// The search for choices with which an expectation is not met.
    Check {
        /// The scenario.
        #[serde(flatten)]
        subject: Subject,
        /// The largest number of states.
        states: usize,
    },
    /// The search for the differences between two releases.
    Upgrade {
        /// The scenario, and one of the releases.
        #[serde(flatten)]
        subject: Subject,
        /// The other release.
        with: String,
        /// The number of ticks to predict on generated loads.
        ticks: u64,
    },
    /// The findings in manifests.
    Lint {
        /// The manifests: any number of documents.
        manifests: String,
        /// Loads in the short form of the command line.
        load: Vec<String>,
        /// The release of Kubernetes.
        release: String,
    },
    /// A scenario from manifests.
    Draft {
        /// The manifests: any number of documents.
        manifests: String,
        /// Loads in the short form of the command line: `cpu=total:8`.
        load: Vec<String>,
    },
}

/// A scenario on a release.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subject {
    /// The path of the scenario's file, for messages.
    pub(crate) path: String,
    /// The scenario as YAML.
    pub(crate) text: String,
    /// The files that the scenario may name, by their paths.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// The release of Kubernetes: `1.37`.
    pub(crate) release: String,
    /// The release of the VPA, for scenarios of VPAs: `vpa-1.8`. Empty: the newest.
    #[serde(default)]
    pub(crate) vpa_release: String,
}
