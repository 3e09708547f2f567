//! The requests of the engine protocol, and the JSON Schema of all its messages
//! (`docs/protocol.md`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

use kube_autoscaler_models::flags::Flags;
use kube_autoscaler_models::rules::{Release, Rules};
use kube_lockstep_scenario::Scenario;
use kube_lockstep_scenario::resolved::ScalableKind;
use kube_lockstep_sim::engine::Step;
use kube_lockstep_sim::engine::disturbance::Disturbance;
use kube_lockstep_sim::trace::wire::{ALL_METRICS, Answer};

/// The URL of the schema of the newest version.
const ID: &str = "https://kube-lockstep.dev/schema/protocol.schema.json";

/// The start of a scenario: a cluster without objects, and a running controller.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Open<'a> {
    /// The id of the scenario, for messages.
    scenario: &'a str,
    /// The namespace of the HPAs.
    namespace: &'a str,
    /// The flags of the kube-controller-manager, without the leading
    /// `--horizontal-pod-autoscaler-`; durations in nanoseconds. All flags are sent: an engine
    /// ignores those that its release lacks.
    flags: Flags,
    /// The feature gates that the scenario sets.
    feature_gates: Cow<'a, BTreeMap<String, bool>>,
    /// The kinds that have a scale.
    targets: Vec<ScalableKind<'a>>,
    /// Kinds that the API server serves without a scale: a GET of their scale is answered with
    /// code 404, reason `NotFound` and the message `the server could not find the requested
    /// resource`.
    without_scale: Vec<ScalableKind<'a>>,
    /// True if several reconciles can be due or in progress at once, which happens with several
    /// HPAs or slow metrics, or if the scenario has `during` or `cacheLag`.
    #[schemars(default)]
    turns: bool,
    /// True if `log` has to contain the requests that write events (`sendEvent`).
    #[schemars(default)]
    sent_events: bool,
    /// True if `log` has to contain the metrics of the work queue. Only sent to engines that speak
    /// version 4 of the protocol.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    all_metrics: bool,
    /// The disturbances of the scenario. Only sent to engines that support them, and then, `closed`
    /// must have `disturbable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    disturbances: Option<&'a [Disturbance]>,
    /// The manifests of objects of any kind that exist before the controller starts. If it is
    /// present, `log` has to contain all changes of objects (`write`). Only sent to engines that
    /// support it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Map<String, Value>>>")]
    objects: Option<&'a [Value]>,
}

/// A line that an engine reads.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "RequestLine")]
pub enum Request<'a> {
    /// Start a scenario.
    Open(Box<Open<'a>>),
    /// Apply changes at the current time, wait until the cluster is idle, advance the time to
    /// `until`, wait until the cluster is idle again, and report all observations.
    Step(&'a Step),
    /// End the scenario, and discard its state.
    Close {},
}

impl<'a> Open<'a> {
    pub(crate) fn new(scenario: &'a Scenario, release: Release, protocol: u32) -> Open<'a> {
        let rules = Rules::of(release);
        Open {
            scenario: &scenario.id,
            namespace: &scenario.namespace,
            flags: scenario.flags_by(&rules),
            feature_gates: scenario.gate_settings(&rules),
            targets: scenario.kinds(),
            without_scale: scenario.kinds_without_scale(),
            turns: takes_turns(scenario),
            sent_events: scenario.observed.sent_events,
            all_metrics: scenario.observed.all_metrics && protocol >= ALL_METRICS,
            disturbances: None,
            objects: scenario.objects.as_deref(),
        }
    }

    pub(crate) fn disturbed(self, disturbances: Option<&'a [Disturbance]>) -> Open<'a> {
        Open { disturbances, ..self }
    }
}

/// The JSON Schema (draft 2020-12) of a line of the engine protocol, in either direction.
#[must_use]
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let request = generator.subschema_for::<Request<'_>>();
    let answer = generator.subschema_for::<Answer>();
    let mut types = generator.take_definitions(true);
    types.sort_keys();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": "Engine protocol",
        "description": "A line that an engine reads or writes.",
        "anyOf": [request, answer],
        "$defs": types,
    })
}

/// Returns true if the log must say where reconciles begin and end: several can be in progress, one
/// can follow another one immediately, or one can end before it reads the scale.
pub(super) fn takes_turns(scenario: &Scenario) -> bool {
    scenario.may_interleave() || has_changes_during_reconciles(scenario)
}

/// Returns true if older versions of the protocol cannot express the scenario.
pub(super) fn has_changes_during_reconciles(scenario: &Scenario) -> bool {
    scenario.interrupts_reconciles() || scenario.has_cache_lag()
}
