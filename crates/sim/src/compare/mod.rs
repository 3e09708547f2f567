//! Compares two observations of the same tick, field by field.
//!
//! The comparison does not depend on engines. A [`Scope`] excludes fields that an engine cannot
//! observe; it does not change how the others are compared.

mod field;
mod known;
pub mod recommender;

pub use field::{AmountField, ApiField, ConditionField, EntryList, FieldPath};
pub use known::{Known, KnownDisagreement};

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::trace::{ApiAnswer, ApiOutcome, Scope};
use kube_autoscaler_models::api::{ConditionType, HpaCondition, HpaStatus};
use kube_autoscaler_models::observation::{
    ControllerAction, Observation, ScaleWrite, SentScale, StatusWrite,
};
use kube_autoscaler_models::time::Time;

/// A field with different values in two observations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FieldDifference {
    /// The compared field.
    pub field: FieldPath,
    /// The value from the model.
    pub model: String,
    /// The observed value.
    pub upstream: String,
    /// True if the field is a request that only shows the event that it sends. Not in files of
    /// results.
    #[serde(skip)]
    pub only_shows_event: bool,
}

impl FieldDifference {
    /// A difference of two values, which are given as text.
    pub fn new(
        field: impl Into<FieldPath>,
        model: impl Into<String>,
        upstream: impl Into<String>,
    ) -> FieldDifference {
        FieldDifference {
            field: field.into(),
            model: model.into(),
            upstream: upstream.into(),
            only_shows_event: false,
        }
    }
}

impl Display for FieldDifference {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: model {}, engine {}", self.field, self.model, self.upstream)
    }
}

/// A controller of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Controller {
    /// The HPA controller. Its ticks are its reconciles.
    #[default]
    Hpa,
    /// The recommender of the VPA. Its ticks are its runs.
    Recommender,
    /// The updater of the VPA, and its admission controller. Their ticks are the updater's runs.
    Updater,
}

/// The first tick where model and engine differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Divergence {
    /// The controller that differs from its model.
    pub controller: Controller,
    /// The number of the controller's tick, from 1; 0 before the first tick (API defaulting and
    /// validation).
    pub tick: usize,
    /// The time.
    pub at: Time,
    /// The number of ticks of the HPA controller so far, if the scenario has an HPA and another
    /// controller diverges.
    pub ticks_of_hpa: Option<usize>,
    /// All fields that differ.
    pub fields: Vec<FieldDifference>,
    /// How the model derived its values, in one line; empty if it is not known.
    pub why: String,
}

impl Divergence {
    /// A divergence of the main controller of a scenario, with an unknown derivation.
    #[must_use]
    pub fn new(
        controller: Controller,
        tick: usize,
        at: Time,
        fields: Vec<FieldDifference>,
    ) -> Divergence {
        Divergence { controller, tick, at, ticks_of_hpa: None, fields, why: String::new() }
    }

    /// The tick of the main controller of the scenario, which is the HPA controller if there is
    /// one.
    #[must_use]
    pub fn scenario_tick(&self) -> usize {
        self.ticks_of_hpa.unwrap_or(self.tick)
    }

    /// A divergence of a controller other than the HPA controller, after this number of ticks of
    /// the HPA controller.
    #[must_use]
    pub fn after_ticks_of_hpa(self, ticks: usize) -> Divergence {
        let in_run = |difference: FieldDifference| match self.controller {
            Controller::Recommender => {
                let field = FieldPath::InRun(self.tick, Box::new(difference.field));
                FieldDifference { field, ..difference }
            }
            Controller::Hpa | Controller::Updater => difference,
        };
        let fields = self.fields.into_iter().map(in_run).collect();
        Divergence { fields, ticks_of_hpa: Some(ticks), ..self }
    }

    /// Returns true if only answers of the API server to users differ.
    #[must_use]
    pub fn is_api_answer(&self) -> bool {
        self.fields.iter().all(|difference| matches!(difference.field, FieldPath::Api(_)))
    }

    /// The reason why a run with this divergence has no verdict, if its repetition agreed with the
    /// model.
    pub(crate) fn not_repeated(&self) -> String {
        let (tick, at) = (self.scenario_tick(), self.at);
        let field = self.fields.first().map_or_else(String::new, |it| format!("; {it}"));
        format!(
            "the engine is not deterministic: it differed from the model at tick {tick} \
             (t={at}{field}), but not when the scenario was repeated"
        )
    }
}

const NONE: &str = "(none)";
const NO_NAMESPACE: &str = "no namespace";

/// Compares the model's prediction of a tick with the observation. Empty if they agree.
#[must_use]
pub fn observations(model: &Observation, seen: &Observation, scope: Scope) -> Vec<FieldDifference> {
    let mut differences = Differences::default();
    differences.field("at", &model.at, &seen.at);
    differences.field("hpa", &model.hpa, &seen.hpa);
    differences.field("took", &model.took, &seen.took);
    scale_writes(&mut differences, model, seen, scope);
    if scope.status {
        status_writes(&mut differences, model, seen, scope);
    }
    if scope.events {
        differences.list(EntryList::Events, model.events(), seen.events());
    }
    if scope.sent_events {
        sent_events(&mut differences, model, seen, scope);
    }
    // Reads nearly always agree, so this case must be fast.
    if model.reads().ne(seen.reads()) {
        differences.list(EntryList::Reads, scope.visible(model), scope.visible(seen));
    }
    if scope.errors {
        differences.list(EntryList::Errors, model.errors(), seen.errors());
    }
    if scope.bodies {
        bodies(&mut differences, model, seen);
    }
    if scope.series(model).ne(scope.series(seen)) {
        controller_metrics(&mut differences, model, seen, scope);
    }
    if scope.order && differences.found.is_empty() {
        order(&mut differences, model, seen, scope);
    }
    if differences.found.is_empty() {
        namespaces(&mut differences, model, seen, scope);
    }
    if differences.found.is_empty() && scope.is_all_of(model) && model != seen {
        // The observations differ, but in no known field; this must not count as agreement.
        let text = |tick: &Observation| format!("{tick:?}");
        differences.field("observation", &text(model), &text(seen));
    }
    differences.found
}

/// Compares the requests that send events.
fn sent_events(
    differences: &mut Differences,
    model: &Observation,
    seen: &Observation,
    scope: Scope,
) {
    let sent = |request| scope.sent(request);
    let requests = [model, seen].map(|tick| tick.sent_events().map(sent));
    let [of_model, observed] = requests.clone();
    differences.list(EntryList::SentEvents, of_model, observed);
    for difference in &mut differences.found {
        let FieldPath::Entry(EntryList::SentEvents, index) = difference.field else { continue };
        let mut ticks = [model, seen].into_iter().zip(requests.clone());
        difference.only_shows_event = ticks.all(|(tick, mut requests)| {
            match (tick.events().nth(index), requests.nth(index)) {
                (Some(event), Some(request)) => request.only_shows(event),
                (event, request) => event.is_none() && request.is_none(),
            }
        });
    }
}

/// The difference for a tick that only one side has.
#[must_use]
pub fn unmatched(model: Option<&Observation>, seen: Option<&Observation>) -> Vec<FieldDifference> {
    let text = |tick: Option<&Observation>| {
        tick.map_or_else(|| "no reconcile".to_owned(), |tick| format!("a reconcile at {}", tick.at))
    };
    vec![FieldDifference::new("at", text(model), text(seen))]
}

/// Compares the API server's answers to the same request.
#[must_use]
pub fn api_answers(model: &ApiAnswer, seen: &ApiAnswer) -> Vec<FieldDifference> {
    let mut differences = Differences::default();
    differences.field(ApiField::At, &model.at, &seen.at);
    differences.field(ApiField::Name, model.outcome.name(), seen.outcome.name());
    match (&model.outcome, &seen.outcome) {
        (
            ApiOutcome::Stored { generation, spec, .. },
            ApiOutcome::Stored { generation: seen_generation, spec: seen_spec, .. },
        ) => {
            differences.field(ApiField::Generation, generation, seen_generation);
            // Compared as JSON, so that the notation of quantities counts.
            differences.field(ApiField::Spec, &json(spec), &json(seen_spec));
        }
        (ApiOutcome::Deleted { .. }, ApiOutcome::Deleted { .. }) => {}
        (ApiOutcome::Refused { message, .. }, ApiOutcome::Refused { message: seen, .. })
            if message == seen => {}
        (model, seen) => differences.field(ApiField::Outcome, &outcome(model), &outcome(seen)),
    }
    differences.found
}

fn json(spec: &kube_autoscaler_models::api::HpaSpec) -> String {
    serde_json::to_string(spec).unwrap_or_else(|error| error.to_string())
}

fn outcome(outcome: &ApiOutcome) -> String {
    match outcome {
        ApiOutcome::Stored { spec, .. } => format!("stored {}", json(spec)),
        ApiOutcome::Refused { message, .. } => format!("refused: {message}"),
        ApiOutcome::Deleted { .. } => "deleted".to_owned(),
        ApiOutcome::Write(write) => write.to_string(),
    }
}

#[derive(Default)]
struct Differences {
    found: Vec<FieldDifference>,
}

impl Differences {
    fn field<T: PartialEq + Display + ?Sized>(
        &mut self,
        field: impl Into<FieldPath>,
        model: &T,
        seen: &T,
    ) {
        if model != seen {
            self.found.push(FieldDifference::new(field, model.to_string(), seen.to_string()));
        }
    }

    fn optional<T: PartialEq + Display>(
        &mut self,
        field: impl Into<FieldPath>,
        model: Option<&T>,
        seen: Option<&T>,
    ) {
        if model != seen {
            let text = |value: Option<&T>| value.map_or_else(|| NONE.to_owned(), T::to_string);
            self.found.push(FieldDifference::new(field, text(model), text(seen)));
        }
    }

    /// Compares two lists. Lists of different lengths are also compared by element, so that a
    /// missing or additional element is visible.
    fn list<T: PartialEq + Display>(
        &mut self,
        list: EntryList,
        model: impl IntoIterator<Item = T>,
        seen: impl IntoIterator<Item = T>,
    ) {
        let (mut model, mut seen) = (model.into_iter(), seen.into_iter());
        for index in 0.. {
            let (one, other) = (model.next(), seen.next());
            if one.is_none() && other.is_none() {
                break;
            }
            self.optional(FieldPath::Entry(list, index), one.as_ref(), other.as_ref());
        }
    }
}

/// A write of a scale. The object is named unless both sides scale the same target.
struct ShownScaleWrite<'a> {
    write: &'a ScaleWrite,
    named: bool,
}

impl Display for ShownScaleWrite<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let ScaleWrite { resource, name, replicas, error, .. } = self.write;
        write!(f, "{replicas}")?;
        if self.named {
            write!(f, " of {resource}/{name}")?;
        }
        error.as_ref().map_or(Ok(()), |error| write!(f, " (refused: {error})"))
    }
}

/// Without what [`bodies`] compares.
impl PartialEq for ShownScaleWrite<'_> {
    fn eq(&self, other: &Self) -> bool {
        let shown = |write: &ScaleWrite| ScaleWrite { sent: None, ..write.clone() };
        self.named == other.named && shown(self.write) == shown(other.write)
    }
}

fn scale_writes(
    differences: &mut Differences,
    model: &Observation,
    seen: &Observation,
    scope: Scope,
) {
    let elsewhere = |tick: &Observation| tick.scale_writes().any(|write| tick.is_elsewhere(write));
    // A target that was not read is omitted.
    let differ = model.target().zip(seen.target()).is_some_and(|(one, other)| one != other);
    let named = elsewhere(model) || elsewhere(seen) || scope.scale_reads && differ;
    let shown = |write| ShownScaleWrite { write, named };
    let (model, seen) = (model.scale_writes().map(shown), seen.scale_writes().map(shown));
    differences.list(EntryList::ScaleWrites, model, seen);
}

/// Compares the changes of the controller's own metrics, by series.
fn controller_metrics(
    differences: &mut Differences,
    model: &Observation,
    seen: &Observation,
    scope: Scope,
) {
    let changes = |tick: &Observation, series: &str| -> Vec<String> {
        let changes = scope.series(tick).filter(|change| change.series.as_str() == series);
        changes.map(|change| change.change.to_string()).collect()
    };
    let all = scope.series(model).chain(scope.series(seen));
    let names: BTreeSet<&str> = all.map(|change| change.series.as_str()).collect();
    let before = differences.found.len();
    for series in names {
        let (one, other) = (changes(model, series), changes(seen, series));
        if one != other {
            let shown = |changes: &[String]| match changes {
                [] => NONE.to_owned(),
                changes => changes.join(", "),
            };
            let field = FieldPath::ControllerMetric(series.to_owned());
            differences.field(field, &shown(&one), &shown(&other));
        }
    }
    if differences.found.len() == before {
        let order = |tick: &Observation| -> String {
            let names = scope.series(tick).map(|change| change.series.as_str());
            names.collect::<Vec<_>>().join(", ")
        };
        differences.field("metrics", &order(model), &order(seen));
    }
}

/// Compares the order of actions of different kinds. The actions of each kind are equal.
fn order(differences: &mut Differences, model: &Observation, seen: &Observation, scope: Scope) {
    let names = |tick: &Observation| -> Vec<&'static str> {
        let visible = tick.actions().filter(|action| scope.shows(action));
        visible.map(ControllerAction::name).collect()
    };
    let (model, seen) = (names(model), names(seen));
    if model != seen {
        differences.field("order", &model.join(", "), &seen.join(", "));
    }
}

/// Compares the namespaces of requests. All actions are equal otherwise.
fn namespaces(
    differences: &mut Differences,
    model: &Observation,
    seen: &Observation,
    scope: Scope,
) {
    let names = |tick: &Observation| -> Vec<String> {
        let name = |index| tick.actions().nth(index).map_or("", ControllerAction::name);
        let shown = |(index, namespace)| match namespace {
            "" => format!("{} {}", NO_NAMESPACE, name(index)),
            namespace => format!("namespace {namespace} {}", name(index)),
        };
        let is_visible =
            |index| tick.actions().nth(index).is_some_and(|action| scope.shows(action));
        let others = tick.in_other_namespaces().map(|(index, of)| (index, &**of));
        others.filter(|(index, _)| is_visible(*index)).map(shown).collect()
    };
    if model.in_other_namespaces().ne(seen.in_other_namespaces()) {
        differences.list(EntryList::Namespaces, names(model), names(seen));
    }
}

/// Compares the rest of what writes send: API versions, and the scale's status.
fn bodies(differences: &mut Differences, model: &Observation, seen: &Observation) {
    let scales = model.scale_writes().zip(seen.scale_writes());
    for (index, (model, seen)) in scales.enumerate() {
        let text = |sent: &Option<SentScale>| sent.as_ref().map(ToString::to_string);
        if model.sent != seen.sent {
            let (model, seen) = (text(&model.sent), text(&seen.sent));
            let field = FieldPath::Entry(EntryList::SentScales, index);
            differences.optional(field, model.as_ref(), seen.as_ref());
        }
    }
    for (model, seen) in model.status_writes().zip(seen.status_writes()) {
        let field = "status: apiVersion of the request";
        differences.optional(field, model.api_version.as_ref(), seen.api_version.as_ref());
    }
}

/// Compares the writes of the status. Usually there is at most one.
fn status_writes(
    differences: &mut Differences,
    model: &Observation,
    seen: &Observation,
    scope: Scope,
) {
    let (mut model, mut seen) = (model.status_writes(), seen.status_writes());
    loop {
        match (model.next(), seen.next()) {
            (None, None) => break,
            (model, seen) => status_write(differences, model, seen, scope),
        }
    }
}

fn status_write(
    differences: &mut Differences,
    model: Option<&StatusWrite>,
    seen: Option<&StatusWrite>,
    scope: Scope,
) {
    match (model, seen) {
        (Some(model), Some(seen)) => {
            status(differences, &model.status, &seen.status, scope);
            differences.optional("status.error", model.error.as_ref(), seen.error.as_ref());
        }
        (None, None) => {}
        (model, seen) => {
            let text = |write: Option<&StatusWrite>| match write {
                Some(write) => format!("written: {}", write.status),
                None => "not written (unchanged)".to_owned(),
            };
            differences.found.push(FieldDifference::new("status", text(model), text(seen)));
        }
    }
}

fn status(differences: &mut Differences, model: &HpaStatus, seen: &HpaStatus, scope: Scope) {
    let desired = [model, seen].map(|status| status.desired_replicas);
    differences.field(FieldPath::DesiredReplicas, &desired[0], &desired[1]);
    differences.optional(
        "status.currentReplicas",
        model.current_replicas.as_ref(),
        seen.current_replicas.as_ref(),
    );
    differences.optional(
        "status.lastScaleTime",
        model.last_scale_time.as_ref(),
        seen.last_scale_time.as_ref(),
    );
    differences.optional(
        "status.observedGeneration",
        model.observed_generation.as_ref(),
        seen.observed_generation.as_ref(),
    );
    // Compares texts, because releases may write the same quantity in different units.
    let texts = |status: &HpaStatus| -> Vec<String> {
        status.current_metrics.iter().map(ToString::to_string).collect()
    };
    differences.list(EntryList::CurrentMetrics, texts(model), texts(seen));
    conditions(differences, &model.conditions, &seen.conditions, scope);
}

fn conditions(
    differences: &mut Differences,
    model: &[HpaCondition],
    seen: &[HpaCondition],
    scope: Scope,
) {
    let types = |conditions: &[HpaCondition]| -> Vec<ConditionType> {
        conditions.iter().map(|condition| condition.type_).collect()
    };
    let (types_of_model, types_seen) = (types(model), types(seen));
    if types_of_model != types_seen {
        let names = |types: &[ConditionType]| -> String {
            types.iter().map(|type_| format!("{type_:?}")).collect::<Vec<_>>().join(", ")
        };
        differences.field("status.conditions", &names(&types_of_model), &names(&types_seen));
    }
    for one in model {
        let Some(other) = seen.iter().find(|other| other.type_ == one.type_) else { continue };
        let field = |field| FieldPath::Condition(one.type_, field);
        differences.field(field(ConditionField::Status), &one.status, &other.status);
        differences.field(field(ConditionField::Reason), &one.reason, &other.reason);
        if scope.messages {
            differences.field(field(ConditionField::Message), &one.message, &other.message);
        }
        differences.field(
            field(ConditionField::LastTransitionTime),
            &one.last_transition_time,
            &other.last_transition_time,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::observation::{Items, ScaleReplicas};

    #[test]
    fn unobserved_fields_are_not_compared() {
        let scale = ControllerAction::GetScale {
            resource: "deployments.apps".into(),
            name: "web".into(),
            answer: Ok(ScaleReplicas { replicas: 1, status_replicas: 1 }),
        };
        let list = ControllerAction::ListPodMetrics {
            selector: "app=web".into(),
            answer: Ok(Items { items: 3 }),
        };
        let tick = |reads: Vec<ControllerAction>| Observation::new(Time::ZERO, "web".into(), reads);
        let (all, some) = (tick(vec![scale.clone(), list.clone()]), tick(vec![list]));
        let fields = |scope: Scope, seen: &Observation| -> Vec<String> {
            observations(&all, seen, scope).iter().map(|it| it.field.to_string()).collect()
        };
        let by_watches = Scope { scale_reads: false, ..Scope::ALL };
        assert_eq!(fields(Scope::ALL, &some), ["reads[0]", "reads[1]"]);
        assert_eq!(fields(by_watches, &some), Vec::<String>::new());
        assert_eq!(fields(by_watches, &tick(vec![scale])), ["reads[0]"], "a query is missing");
        assert_eq!(by_watches.visible(&all), some.reads().collect::<Vec<_>>());
    }
}
