//! A conformance test harness for the Kubernetes pod autoscalers.
//!
//! # Bird's eye view
//!
//! A *scenario* is a YAML file: a HorizontalPodAutoscaler as given to the API server, a workload,
//! metrics over time, and what happens when. The *world* plays it: pods come up, share a load, go
//! missing. An *engine* runs the HPA controller in that world: above all the real, unmodified
//! upstream controller, in virtual time. The *model* predicts everything that can be observed of
//! each reconcile ("tick"), from exactly what the controller saw. The *comparison* of the two,
//! field by field, is the verdict.
//!
//! ```text
//! fixtures/*.yaml ─ scenario ─► world ──changes──► engine ──observations──┐
//!                                │ ▲                                      ▼
//!                                │ └── scale decisions ◄───────────── run, compare ─► report
//!                                └──changes──► model ──predictions────────┘
//! ```
//!
//! # Code map
//!
//! | module | purpose | may use |
//! |---|---|---|
//! | [`model`] | the reference model of the HPA: pure, deterministic, fast | no other module |
//! | [`scenario`] | scenario files: parsed, validated, written | `model`, `compare` |
//! | [`world`] | pods, workloads and metrics over time | `model`, `scenario`, `trace` |
//! | [`trace`] | observations of a controller; their JSON and recorded forms | `model` |
//! | [`compare`] | the one comparison | `model`, `trace` |
//! | [`expect`] | the expectations of a scenario's author | `model`, `scenario` |
//! | [`fuzz`] | scenarios generated from a seed, and shrunk | `model`, `scenario`, `world` |
//! | [`engine`] | everything that a scenario can run on | `model`, `scenario`, `world`, `trace`, `compare::Scope` |
//! | [`run`] | lockstep, verdicts, events; prints nothing | `model`, `scenario`, `world`, `trace`, `compare`, `expect`, `fuzz`, `engine` |
//! | [`report`] | events as text, HTML, JUnit and JSON; knows no engine | `model`, `trace`, `compare`, `expect`, `run`, `scenario`, `fuzz` |
//! | [`cli`] | the command, one file per subcommand | everything |
//!
//! Down to [`fuzz`] this is the *pure half*: no files, no clock, no processes.
//! The table is generated from the one that `suites/tidy.rs` checks. Without default features only
//! the pure half is compiled, and there is neither tokio nor any other I/O in the dependency tree.
//!
//! Engines with a real clock (`engine::cluster`) are no [`engine::Session`]s: there the model
//! follows the clock, in `run::wall`.
//!
//! # Invariants
//!
//! - Time, randomness and order are inputs: the model has no clock, and each run is the same.
//! - Upstream is right until shown otherwise; a recorded trace is never written from the model.
//! - Differences between Kubernetes releases are rows in [`model::rules`], not branches.
//! - A broken engine is never a verdict: [`run::Verdict::Inconclusive`].
//!
//! # Glossary
//!
//! *Tick*: one reconcile of an HPA. *Lockstep*: model and engine side by side, the engine's
//! decisions driving the world. *Free run*: the model's own decisions drive it (`predict`).
//! *Poisoned*: the ticks after a first divergence, shown but not counted. *Derivation*: every
//! number, clamp and window that led the model to a decision.

pub mod compare;
pub mod engine;
pub mod expect;
pub mod fuzz;
pub mod model;
pub mod run;
pub mod scenario;
pub mod trace;
pub mod world;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "cli")]
pub mod report;
