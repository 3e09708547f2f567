//! A conformance test harness for the Kubernetes pod autoscalers: the HPA controller and the
//! recommender of the Vertical Pod Autoscaler (VPA).
//!
//! # Overview
//!
//! A *scenario* is a YAML file: the manifest of a HorizontalPodAutoscaler, a workload, metrics over
//! time, and a timeline of actions. The *world* simulates the scenario: pods start, share a load
//! and fail. An *engine* runs the HPA controller in that world; the most important engine runs the
//! real, unmodified upstream controller in virtual time. The *model* predicts everything observable
//! about each reconcile from the same input. The *comparison* of prediction and observation, field
//! by field, gives the verdict.
//!
//! ```text
//! fixtures/*.yaml ─ scenario ─► world ──changes──► engine ──observations──┐
//!                                │ ▲                                      ▼
//!                                │ └── scale decisions ◄───────────── run, compare ─► report
//!                                └──changes──► model ──predictions────────┘
//! ```
//!
//! # Use as a library
//!
//! [`Predict`] runs the model alone: on a [`Scenario`], or on the manifest of an HPA.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use kube_lockstep::Predict;
//!
//! let manifest = "
//! apiVersion: autoscaling/v2
//! kind: HorizontalPodAutoscaler
//! metadata: {name: web}
//! spec:
//!   scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
//!   maxReplicas: 20
//!   metrics:
//!   - type: Resource
//!     resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}
//! ";
//! // All pods together use five CPUs, and each requests one.
//! let load = [(Duration::ZERO, "5")];
//! let prediction = Predict::hpa(manifest).replicas(2).load("cpu", load).run()?;
//! assert_eq!(prediction.replicas_at(Duration::from_secs(300)), 10);
//! # Ok(())
//! # }
//! ```
//!
//! [`Lockstep`] runs a [`Scenario`] on an [`Engine`] and compares it with the model: its [`Report`]
//! has the verdict. The macro [`suite!`] makes a test of a folder of scenarios: one line in a file
//! under `tests/`. The crate `kube-lockstep-predict` has [`Predict`] alone, without any I/O.
//!
//! ```no_run
//! kube_lockstep::suite!("tests/hpa/**/*.yaml");
//! ```
//!
//! # Code map
//!
//! | crate | purpose | uses |
//! |---|---|---|
//! | `models` | the reference models of the HPA and of the VPA's recommender and updater: pure, deterministic, fast | no other crate |
//! | `scenario` | scenario files and recorded metrics: parsing, validation, writing | `models` |
//! | `sim` | the simulated cluster: pods, workloads and metrics over time; observations, their comparison, expectations; the interface of engines, and lockstep runs | `models`, `scenario` |
//! | `manifests` | scenarios from the manifests of autoscalers | `models`, `scenario` |
//! | `lint` | rules about settings of autoscalers that have no effect or a surprising one | `models`, `manifests`, `scenario` |
//! | `report` | reports as text, JSON, pages, and in the formats of CI systems | `models`, `scenario`, `sim` |
//! | `predict` | predictions on the model alone, for libraries | `models`, `manifests`, `report`, `scenario`, `sim` |
//! | `tune` | the search for the settings of an HPA or a VPA, on the model alone | `models`, `manifests`, `report`, `scenario`, `sim` |
//! | `check` | the search for choices with which an expectation is not met, on the model alone | `models`, `report`, `scenario`, `sim` |
//! | `gate` | the verdict on a change of manifests, on the model alone | `models`, `lint`, `manifests`, `report`, `scenario`, `sim` |
//! | `data` | fixtures, recorded traces, and the Go programs that host upstream's code: read from their folders by development builds, embedded in a release | no other crate |
//! | `engines` | engines in virtual time: upstream's controllers in child processes, recorded traces; plans and their runs | `models`, `data`, `scenario`, `sim` |
//! | `fuzz` | generated scenarios, disturbed runs, shrinking, and their reports | `models`, `report`, `scenario`, `sim` |
//! | `upgrade` | the search for the differences of an HPA between two releases, on the model alone | `models`, `fuzz`, `lint`, `manifests`, `report`, `scenario`, `sim` |
//! | `clusters` | engines that are real clusters, the fake metrics APIs, and the verdicts on a wall clock | `models`, `data`, `engines`, `scenario`, `sim` |
//!
//! The crates are in `crates/`; their names begin with `kube-lockstep-`, apart from
//! `kube-autoscaler-models`. This crate has the library's main types and, in `src/cli`, the command
//! with one file per subcommand. The compiler holds which crate may use which. The crates from
//! `models` to `gate` do no I/O: no files, no clock, no processes. With them, the playground
//! (`playground/`) runs in a browser.
//!
//! Engines in virtual time run scenarios through `Session` of `sim`, step by step. A cluster
//! follows the wall clock instead: the module `wall_clock` of `clusters` compares each reconcile
//! with the decisions that the model permits at that time. [`run_all`] runs both kinds of engines,
//! and both kinds of controllers.
//!
//! # Invariants
//!
//! - Time, randomness and order are inputs: the model has no clock, and runs are reproducible.
//! - Upstream is the reference: recorded traces are never written from the model.
//! - Differences between Kubernetes releases are rows in `rules` of `models`, not branches.
//! - A broken engine never causes a divergence: its verdict is `Inconclusive`.
//!
//! # Glossary
//!
//! - *Tick*: one pass of a controller: a reconcile of an HPA, or a run of the recommender.
//! - *Lockstep*: model and engine run side by side; the engine's decisions drive the world.
//! - *Free run*: the model's own decisions drive the world (`predict`).
//! - *Derivation*: the values, limits and windows that led the model to a decision.

#![warn(missing_docs)]
#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of this page is compiled and run as a test. Those of docs/library.md are tests
// themselves, which rustdoc would leave out: suites/live/library.rs compiles them.
#[cfg(doctest)]
#[doc = include_str!("../docs/vpa.md")]
mod page_on_vpas {}

#[cfg(all(feature = "clusters", not(unix)))]
compile_error!("the feature `clusters` requires Linux or macOS");

mod facade;

use kube_lockstep_engines::executor::WallClock;
use kube_lockstep_engines::plan::Plan;
use kube_lockstep_sim::run::{Event, Summary};

#[doc(hidden)]
pub use facade::content::Content;
pub use facade::{Engine, Error, Lockstep, ReadScenario, Report, Suite};
pub use kube_lockstep_check::{Check, Checked, Outcome};
pub use kube_lockstep_predict::{Predict, PredictHpa, PredictVpa, Prediction, VpaPrediction};
pub use kube_lockstep_predict::{Release, Scenario, VpaRelease, VpaScenario};
pub use kube_lockstep_sim::engine::EngineError;
pub use kube_lockstep_tune::{Setting, Tune, Tuned};
pub use kube_lockstep_upgrade::{Difference, Effect, Example, Searched, Upgrade};

/// True if this build has the feature `clusters`.
#[doc(hidden)]
pub const HAS_CLUSTERS: bool = cfg!(feature = "clusters");

#[cfg(feature = "clusters")]
const CLUSTERS: Option<WallClock> = Some(kube_lockstep_clusters::wall_clock::executor);
#[cfg(not(feature = "clusters"))]
const CLUSTERS: Option<WallClock> = None;

/// Runs all scenarios of a plan, in virtual time or on clusters, and reports events to `sink`.
///
/// # Errors
/// If the engine of the only release can't be prepared. With several releases, the scenarios of a
/// release without an engine have no verdict.
#[doc(hidden)]
pub fn run_all(plan: &Plan, sink: &mut dyn FnMut(Event)) -> Result<Summary, EngineError> {
    kube_lockstep_engines::runner::run_all(plan, CLUSTERS, sink)
}
