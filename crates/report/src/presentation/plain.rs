//! Changes and faults of a scenario in plain words: `the metrics API answers 503
//! ServiceUnavailable`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::words;
use crate::counted;
use kube_autoscaler_models::api::ApiError;
use kube_lockstep_scenario::resolved::{
    Action, ObjectEdit, PodSet, QueryError, TargetDeletion, TimelineEvent,
};

/// The maximum number of characters of a text.
const LONGEST: usize = 160;

/// An event of an HPA's scenario, in one line.
#[must_use]
pub fn event_in_words(event: &TimelineEvent) -> String {
    let text = words::cut(&action(&event.action), LONGEST);
    match &event.during {
        Some(during) => {
            let of = during.hpa.as_ref().map(|hpa| format!(" of {hpa}")).unwrap_or_default();
            format!("{text} (during a reconcile{of}, after {during})")
        }
        None => text,
    }
}

/// `pods 0-2`, `pod 3`, `all pods`.
pub(super) fn pods(pods: &PodSet) -> String {
    match pods {
        PodSet::All => "all pods".to_owned(),
        some => format!("{} {some}", verb(some, "pod", "pods")),
    }
}

/// A word for one pod, or for several.
pub(super) fn verb<'v>(of: &PodSet, one: &'v str, several: &'v str) -> &'v str {
    if of.is_single() { one } else { several }
}

/// `503 ServiceUnavailable`.
pub(super) fn answer(error: &ApiError) -> String {
    format!("{} {}", error.code, error.reason).trim_end().to_owned()
}

/// An action in one line.
pub(super) fn action(action: &Action) -> String {
    let of = |set: &PodSet, one: &str, several: &str| {
        format!("{} {}", pods(set), verb(set, one, several))
    };
    let has = |set: &PodSet| of(set, "has", "have");
    match action {
        Action::PodsUnready(set) => of(set, "is unready", "are unready"),
        Action::PodsFailed(set) => of(set, "fails", "fail"),
        Action::PodsSucceeded(set) => of(set, "completes", "complete"),
        Action::PodsDeleted(set) => of(set, "is deleted", "are deleted"),
        Action::PodsStuckTerminating(set) => {
            of(set, "is stuck in Terminating", "are stuck in Terminating")
        }
        Action::MetricsMissing(set) => of(set, "has no metrics", "have no metrics"),
        Action::MetricsStale(set) => of(set, "has stale metrics", "have stale metrics"),
        Action::MetricsError(QueryError::Response(error)) => {
            format!("the metrics API answers {}", answer(error))
        }
        Action::MetricsError(QueryError::Text(error)) => format!("the metrics API fails: {error}"),
        Action::MetricsEmpty(_) => "the metrics API returns an empty list".to_owned(),
        Action::MetricsSlow(span) => format!("the metrics APIs answer after {span}"),
        Action::ContainerMetricsMissing(it) => {
            format!("{} no metrics of container {}", has(&it.pods), it.container)
        }
        Action::ResourceMissing(it) => format!("{} no {} usage", has(&it.pods), it.resource),
        Action::MetricError(it) => {
            format!("queries of metric {} answer {}", it.metric, answer(&it.error))
        }
        Action::MetricEmpty(metric) => format!("queries of metric {metric} return nothing"),
        Action::MetricMissing(it) => format!("{} no metric {}", has(&it.pods), it.metric),
        Action::GetScaleError(error) => format!("reads of the scale answer {}", answer(error)),
        Action::UpdateScaleError(error) => {
            format!("writes of the scale answer {}", answer(error))
        }
        Action::UpdateStatusError(error) => {
            format!("writes of the HPA's status answer {}", answer(error))
        }
        Action::CacheLag(span) => format!("the controller's caches lag by {span}"),
        Action::RollingUpdate(update) if update.containers.is_empty() => {
            "rolling update of all pods".to_owned()
        }
        Action::RollingUpdate(_) => "rolling update of all pods, with other containers".to_owned(),
        Action::TargetDeleted(deletion) => target_deleted(*deletion).to_owned(),
        Action::Scale(replicas) => {
            format!("the target is scaled to {}", counted(*replicas as usize, "replica"))
        }
        Action::EditHpa(patch) => format!("the HPA is edited: {}", fields(patch).join(", ")),
        Action::DeleteHpa(_) => "the HPA is deleted".to_owned(),
        Action::CreateHpa(_) => "the HPA is created again".to_owned(),
        Action::RestartController(_) => "the controller restarts".to_owned(),
        Action::ApplyObject(manifest) => applied(manifest),
        Action::EditObject(edit) => edited(edit),
        Action::DeleteObject(object) => format!("{object} is deleted"),
        Action::OomKill(it) => {
            format!("OOM kill of {}", container_in(it.container.as_ref(), &it.pods))
        }
        Action::Evict(it) => {
            format!("eviction of {}", container_in(it.container.as_ref(), &it.pods))
        }
        Action::Relabel(it) => of(&it.pods, "gets other labels", "get other labels"),
        Action::EditPods(it) => of(&it.pods, "is edited", "are edited"),
        Action::MetricsLate(it) => format!("metrics of {} are late by {}", pods(&it.pods), it.by),
        Action::EditVpa(_) => "the VPA is edited".to_owned(),
        Action::DeleteVpa(_) => "the VPA is deleted".to_owned(),
        Action::CreateVpa(_) => "the VPA is created".to_owned(),
        Action::SetCheckpoint(_) => "a checkpoint is written".to_owned(),
        Action::DeleteCheckpoint(name) => format!("checkpoint {name} is deleted"),
        Action::RestartRecommender(_) => "the recommender restarts".to_owned(),
    }
}

fn target_deleted(deletion: TargetDeletion) -> &'static str {
    match deletion.keeps_pods() {
        true => "the target is deleted, but not its pods",
        false => "the target is deleted",
    }
}

/// `Deployment web is applied`.
fn applied(manifest: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {} is applied", text(&manifest["kind"]), text(&manifest["metadata"]["name"]))
}

/// `Deployment web is edited: paused true`.
fn edited(edit: &ObjectEdit) -> String {
    format!("{} is edited: {}", edit.object(), fields(&edit.patch).join(", "))
}

/// `app in pod 0`.
fn container_in(container: Option<&Arc<str>>, set: &PodSet) -> String {
    let container = container.map(|container| format!("{container} in "));
    container.unwrap_or_default() + &pods(set)
}

/// The fields that a patch sets, without `spec`: `maxReplicas 4`, `behavior.scaleUp.policies […]`.
fn fields(patch: &Value) -> Vec<String> {
    let Some(fields) = patch.as_object() else { return vec![plain(patch)] };
    // Whether serde_json keeps the order of fields depends on the features of other crates.
    let fields: BTreeMap<&String, &Value> = fields.iter().collect();
    let mut found = Vec::new();
    for (name, value) in fields {
        match value {
            Value::Null => found.push(format!("{name} removed")),
            Value::Object(inner) if !inner.is_empty() => {
                let prefix = if name == "spec" { String::new() } else { format!("{name}.") };
                found.extend(self::fields(value).into_iter().map(|field| prefix.clone() + &field));
            }
            other => found.push(format!("{name} {}", plain(other))),
        }
    }
    found
}

/// A value without the punctuation of JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items = items.iter().map(plain).collect::<Vec<_>>();
            format!("[{}]", items.join("; "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| match value {
                Value::Object(_) => plain(value),
                _ => format!("{name} {}", plain(value)),
            });
            fields.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn actions_are_in_plain_words() {
        let reads = |action: Action| event_in_words(&TimelineEvent::from(action));
        let set = |text: &str| text.parse::<PodSet>().expect(text);
        assert_eq!(reads(Action::PodsUnready(set("0-2"))), "pods 0-2 are unready");
        assert_eq!(reads(Action::PodsDeleted(set("3"))), "pod 3 is deleted");
        assert_eq!(reads(Action::MetricsMissing(PodSet::All)), "all pods have no metrics");
        assert_eq!(reads(Action::Scale(1)), "the target is scaled to 1 replica");
        let error =
            ApiError { code: 503, reason: "ServiceUnavailable".to_owned(), message: "down".into() };
        let text = "the metrics API answers 503 ServiceUnavailable";
        assert_eq!(reads(Action::MetricsError(error.into())), text);
        let patch = json!({
            "spec": { "maxReplicas": 4, "behavior": { "scaleDown": { "selectPolicy": "Min" } } },
        });
        let text = "the HPA is edited: behavior.scaleDown.selectPolicy Min, maxReplicas 4";
        assert_eq!(reads(Action::EditHpa(patch)), text);
    }
}
