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
//! | module | what it is | may use |
//! |---|---|---|
//! | [`model`] | the reference model of the HPA: pure, deterministic, fast | std, serde derive |
//! | [`scenario`] | scenario files, as typed and as meant | `model` |
//! | [`world`] | pods, workloads and metrics over time | `model`, `scenario` |
//! | [`trace`] | what was observed; its JSON and recorded forms | `model` |
//! | [`compare`] | the one comparison | `model`, `trace` |
//! | [`expect`] | what the author of a scenario expects | `model`, `scenario` |
//! | [`fuzz`] | given a seed: scenarios, made and made smaller | `model`, `scenario` |
//! | [`engine`] | everything that a scenario can be run on | all above, but no comparison |
//! | [`run`] | lockstep, verdicts, events; prints nothing | all above |
//! | [`report`] | events as text and JSON; knows no engine | `run`, `trace`, `compare` |
//! | [`cli`] | the command, one file a subcommand | everything |
//!
//! Down to [`fuzz`] this is the *pure half*: no files, no clock, no processes.
//! `suites/tidy.rs` checks this table. Without default features only the pure half is compiled, and
//! there is neither tokio nor any other I/O in the dependency tree.
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
