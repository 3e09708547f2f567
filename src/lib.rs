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
//! # #[cfg(feature = "reports")]
//! # fn main() -> Result<(), kube_lockstep::scenario::Error> {
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
//! # #[cfg(not(feature = "reports"))]
//! # fn main() {}
//! ```
//!
//! [`Lockstep`] runs a [`Scenario`] on an [`Engine`] and compares it with the model: its [`Report`]
//! has the verdict. The macro [`suite!`] makes a test of a folder of scenarios: one line in a file
//! under `tests/`. These types require the feature `engines`; [`Predict`] requires only `reports`.
//! `default-features = false` leaves out the command.
//!
//! ```no_run
//! # #[cfg(feature = "engines")]
//! kube_lockstep::suite!("tests/hpa/**/*.yaml");
//! ```
//!
//! # Code map
//!
//! | module | purpose | may use |
//! |---|---|---|
//! | [`model`] | the reference models of the HPA and of the VPA's recommender: pure, deterministic, fast | no other module |
//! | [`scenario`] | scenario files: parsing, validation, writing | `model` |
//! | [`world`] | pods, workloads and metrics over time | `model`, `scenario`, `trace` |
//! | [`trace`] | observations of a controller; their JSON and recorded forms | `model` |
//! | [`compare`] | the comparison of observations | `model`, `trace` |
//! | [`expect`] | the expectations of scenarios | `model`, `scenario` |
//! | [`fuzz`] | generated scenarios, and shrinking | `model`, `scenario`, `world` |
//! | [`engine`] | the engines that run scenarios | `model`, `scenario`, `world`, `trace` |
//! | [`run`] | runs, verdicts and events | `model`, `scenario`, `world`, `trace`, `compare`, `expect`, `fuzz`, `engine` |
//! | [`report`] | reports as text, JSON, pages, and in the formats of CI systems | `model`, `trace`, `compare`, `expect`, `run`, `scenario`, `fuzz` |
//! | `facade` | the main types of the library | `model`, `scenario`, `expect`, `engine`, `run`, `report` |
//! | [`cli`] | the command, one file per subcommand | everything |
//!
//! The modules from [`model`] to [`fuzz`] are the *pure half*: no files, no clock, no processes.
//! The table is generated from the one that `suites/tidy.rs` checks. Without default features, only
//! the pure half is compiled, and the dependency tree contains neither tokio nor any other I/O. The
//! features `reports` and `pages` add no I/O either: with them, the playground (`playground/`) runs
//! in a browser.
//!
//! Engines in virtual time run scenarios through [`engine::Session`], step by step. A cluster
//! (`engine::cluster`) follows the wall clock instead: `run::wall_clock` compares each reconcile
//! with the decisions that the model permits at that time. [`run::run_all`] runs both kinds of
//! engines, and both kinds of controllers ([`engine::ControllerKind`]).
//!
//! # Invariants
//!
//! - Time, randomness and order are inputs: the model has no clock, and runs are reproducible.
//! - Upstream is the reference: recorded traces are never written from the model.
//! - Differences between Kubernetes releases are rows in [`model::rules`], not branches.
//! - A broken engine never causes a divergence: its verdict is [`run::Verdict::Inconclusive`].
//!
//! # Glossary
//!
//! - *Tick*: one reconcile of an HPA.
//! - *Lockstep*: model and engine run side by side; the engine's decisions drive the world.
//! - *Free run*: the model's own decisions drive the world (`predict`).
//! - *Derivation*: the values, limits and windows that led the model to a decision.

#![cfg_attr(docsrs, feature(doc_cfg))]

// The example of this page is compiled and run as a test. Those of docs/library.md are tests
// themselves, which rustdoc would leave out: suites/library.rs compiles them.
#[cfg(all(doctest, feature = "engines"))]
#[doc = include_str!("../docs/vpa.md")]
mod page_on_vpas {}

#[cfg(all(feature = "clusters", not(unix)))]
compile_error!("the feature `clusters` requires Linux or macOS");

pub mod compare;
#[cfg(feature = "engines")]
mod data;
pub mod engine;
pub mod expect;
pub mod fuzz;
pub mod model;
pub mod run;
pub mod scenario;
pub mod trace;
pub mod world;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "reports")]
mod facade;
#[cfg(feature = "reports")]
pub mod report;

pub use engine::EngineError;
#[cfg(feature = "engines")]
pub use facade::{Engine, Error, Lockstep, Report, Suite};
#[cfg(feature = "reports")]
pub use facade::{Predict, PredictHpa, PredictVpa, Prediction, VpaPrediction};
pub use model::rules::{Release, VpaRelease};
pub use scenario::Scenario;
pub use scenario::vpa::VpaScenario;
