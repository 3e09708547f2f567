//! Evaluates the expectations of a scenario of the recommender over all its runs.

use std::fmt::{self, Display};
use std::sync::Arc;

use super::unmet::Miss;
use super::values::Wrong;
use super::when::{ExpectedTick, unmet};
use super::{Unmet, UnmetTick};
use kube_autoscaler_models::api::ConditionStatus;
use kube_autoscaler_models::rules::VpaRelease;
use kube_autoscaler_models::time::Time;
use kube_autoscaler_models::vpa::{ResourceList, Snapshot, VpaStatus};
use kube_lockstep_scenario::vpa::{ExpectedVpaCondition, VpaExpectation, VpaScenario};

/// Evaluates the expectations of a release over all runs, in the order of time.
#[must_use]
pub fn evaluate(scenario: &VpaScenario, release: VpaRelease, runs: &[Snapshot]) -> Vec<Unmet> {
    let all = scenario.expect.iter().enumerate();
    let applying = all.filter(|(_, expected)| scenario.expects(expected, release));
    let runs: Vec<RecommenderRun<'_>> =
        runs.iter().enumerate().map(|(index, state)| RecommenderRun { index, state }).collect();
    let unmet = applying.filter_map(|(index, expected)| {
        let Miss { what, tick, values } = unmet(&runs, &expected.when(scenario.until), expected)?;
        let what = match &expected.vpa {
            Some(vpa) if scenario.vpas.len() > 1 => format!("VPA {vpa}: {what}"),
            _ => what,
        };
        let (number, line) = (index + 1, expected.line);
        Some(Unmet { number, line, what, tick, values, ..Unmet::default() })
    });
    unmet.collect()
}

/// Like [`evaluate`], for a scenario that also has an HPA: each result names its VPA.
#[must_use]
pub(crate) fn evaluate_with_hpa(
    scenario: &VpaScenario,
    release: VpaRelease,
    runs: &[Snapshot],
) -> Vec<Unmet> {
    let only = scenario.vpas.first().map(|vpa| &*vpa.metadata.name.name);
    let named = evaluate(scenario, release, runs).into_iter().map(|unmet| {
        let expected = unmet.number.checked_sub(1).and_then(|index| scenario.expect.get(index));
        let vpa = expected.and_then(|expected| expected.vpa.as_deref()).or(only);
        Unmet { vpa: vpa.map(Arc::from), ..unmet }
    });
    named.collect()
}

/// A run of the recommender.
struct RecommenderRun<'r> {
    index: usize,
    /// The state after it.
    state: &'r Snapshot,
}

impl Display for RecommenderRun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tick {} (t={})", self.index + 1, self.state.at)
    }
}

impl ExpectedTick for RecommenderRun<'_> {
    type Expectation = VpaExpectation;

    fn at(&self) -> Time {
        self.state.at
    }

    fn name(&self) -> UnmetTick {
        UnmetTick { tick: self.index + 1, at: self.state.at, index: self.index }
    }

    fn wrong(&self, expected: &VpaExpectation) -> Option<Wrong> {
        Wrong::from_texts(wrong(self.state, expected))
    }

    fn unwanted(&self, expected: &VpaExpectation) -> Miss {
        let what = format!("{self}: never expected {}", found(self.state, expected));
        Miss { what, tick: Some(self.name()), values: Vec::new() }
    }
}

/// The values with which a run meets an expectation:
/// `target.cpu of app 587m, condition NoPodsMatched`.
fn found(run: &Snapshot, expected: &VpaExpectation) -> String {
    let mut found = Vec::new();
    let status = expected.vpa.as_ref().and_then(|vpa| run.status(vpa));
    let containers = status.map_or(&[][..], VpaStatus::containers);
    if let Some(names) = &expected.containers {
        found.push(format!("containers {}", list(names)));
    }
    if let Some(name) = &expected.container {
        let container = containers.iter().find(|container| container.container_name == *name);
        for (value, amounts) in expected.amounts() {
            for (resource, _) in amounts.ranges() {
                let amount = container.and_then(|it| value.of(it).amount(resource.name()));
                let amount = amount.map_or("none".to_owned(), ToString::to_string);
                found.push(format!("{}.{} of {name} {amount}", value.name(), resource.name()));
            }
        }
    }
    let conditions = expected.conditions.iter();
    found.extend(conditions.map(|condition| format!("condition {}", condition.type_)));
    found.extend(expected.no_conditions.iter().map(|type_| format!("no condition {type_}")));
    let generation = expected.observed_generation;
    found.extend(generation.map(|generation| format!("observedGeneration {generation}")));
    let checkpoints = expected.checkpoints.as_ref();
    found.extend(checkpoints.map(|names| format!("checkpoints {}", list(names))));
    let samples = expected.samples.iter();
    found.extend(samples.map(|(name, samples)| format!("samples of {name}: {samples}")));
    let contents = expected.checkpoint_status.keys();
    found.extend(contents.map(|name| format!("this checkpointStatus of {name}")));
    found.extend(expected.log.as_ref().map(|text| format!("log {text:?}")));
    found.join(", ")
}

/// All that is not as expected after a run.
fn wrong(run: &Snapshot, expected: &VpaExpectation) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Some(vpa) = &expected.vpa {
        let none = VpaStatus::default();
        let status = run.status(vpa).unwrap_or(&none);
        amounts(status, expected, &mut wrong);
        conditions(status, expected, &mut wrong);
        if let Some(generation) = expected.observed_generation
            && status.observed_generation != Some(generation)
        {
            let seen = status.observed_generation.map_or("none".to_owned(), |it| it.to_string());
            wrong.push(format!("observedGeneration: expected {generation}, was {seen}"));
        }
    }
    if let Some(names) = &expected.checkpoints {
        let found: Vec<Arc<str>> = run.checkpoints.keys().cloned().collect();
        if found != *names {
            wrong.push(format!("checkpoints: expected {}, were {}", list(names), list(&found)));
        }
    }
    for (name, samples) in &expected.samples {
        let found = run.checkpoints.get(name);
        if found != Some(samples) {
            let found = found.map_or("no checkpoint".to_owned(), ToString::to_string);
            wrong.push(format!("samples of {name}: expected {samples}, were {found}"));
        }
    }
    for (name, content) in &expected.checkpoint_status {
        match run.contents.get(name) {
            None => wrong.push(format!("checkpointStatus of {name}: there is no checkpoint")),
            Some(found) => {
                let different = content.differences(&found.status).into_iter();
                wrong.extend(different.map(|it| format!("checkpointStatus of {name}: {it}")));
            }
        }
    }
    if let Some(text) = &expected.log {
        let lines: Vec<String> = run.log.iter().map(ToString::to_string).collect();
        if !lines.iter().any(|line| line.contains(text)) {
            let found = if lines.is_empty() { "nothing".to_owned() } else { lines.join(", ") };
            wrong.push(format!("log: expected {text:?}, was {found}"));
        }
    }
    wrong
}

fn list(names: &[Arc<str>]) -> String {
    format!("[{}]", names.join(", "))
}

fn amounts(status: &VpaStatus, expected: &VpaExpectation, wrong: &mut Vec<String>) {
    let containers = status.containers();
    if let Some(names) = &expected.containers {
        let found: Vec<Arc<str>> =
            containers.iter().map(|container| container.container_name.clone()).collect();
        if found != *names {
            wrong.push(format!("containers: expected {}, were {}", list(names), list(&found)));
        }
    }
    let Some(name) = &expected.container else { return };
    let container = containers.iter().find(|container| container.container_name == *name);
    let none = ResourceList::default();
    for (value, amounts) in expected.amounts() {
        let list = container.map_or(&none, |container| value.of(container));
        for (resource, range) in amounts.ranges() {
            let amount = list.amount(resource.name());
            if !range.contains(amount) {
                let amount = amount.map_or("none".to_owned(), ToString::to_string);
                let field = format!("{}.{} of {name}", value.name(), resource.name());
                wrong.push(format!("{field}: expected {range}, was {amount}"));
            }
        }
    }
}

fn conditions(status: &VpaStatus, expected: &VpaExpectation, wrong: &mut Vec<String>) {
    for condition in &expected.conditions {
        let ExpectedVpaCondition { type_, status: expected, reason, message, .. } = condition;
        let Some(found) = status.conditions.iter().find(|it| it.type_ == *type_) else {
            wrong.push(format!("condition {type_}: expected, but there is none"));
            continue;
        };
        let mut differs = |field: &str, expected: &str, found: &str| {
            wrong.push(format!("{field} of {type_}: expected {expected:?}, was {found:?}"));
        };
        if let Some(expected) = expected.map(ConditionStatus::from)
            && found.status != expected
        {
            differs("status", expected.name(), found.status.name());
        }
        if let Some(reason) = reason
            && found.reason != *reason
        {
            differs("reason", reason, &found.reason);
        }
        if let Some(message) = message
            && !found.message.contains(message.as_str())
        {
            differs("message", message, &found.message);
        }
        if let Some(time) = condition.last_transition_time
            && found.last_transition_time != time
        {
            let [expected, found] = [time, found.last_transition_time].map(|it| it.to_string());
            differs("lastTransitionTime", &expected, &found);
        }
    }
    for type_ in &expected.no_conditions {
        if status.conditions.iter().any(|condition| condition.type_ == *type_) {
            wrong.push(format!("condition {type_}: not expected, but there is one"));
        }
    }
}
