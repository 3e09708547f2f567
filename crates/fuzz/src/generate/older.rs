//! HPAs in older API versions, which keep newer fields in annotations.

use serde_json::{Map, Value, json};

use super::{Draft, HPA};
use kube_autoscaler_models::hpa::metric_to_v2beta1;
use kube_lockstep_scenario as scenario;

/// The current version, with all fields.
pub(super) const CURRENT: &str = "autoscaling/v2";

/// A manifest of a spec, usually in the current version. Versions that are no longer served are
/// converted, as in scenario files.
pub(super) fn in_some_version(draft: &mut Draft, spec: &Map<String, Value>) -> Value {
    draft.api_version = CURRENT;
    let current = json!({
        "apiVersion": CURRENT,
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": HPA },
        "spec": spec,
    });
    let (version, older) = match draft.dice.weighted(&[(84, 0), (8, 1), (4, 2), (4, 3)]) {
        1 if is_expressible_in_v1(spec) => ("autoscaling/v1", Some(to_version_1(draft, spec))),
        2 => ("autoscaling/v2beta1", to_version_2beta1(&current)),
        3 => ("autoscaling/v2beta2", Some(to_version_2beta2(&current))),
        _ => return current,
    };
    match older.map(scenario::served) {
        Some(Ok(manifest)) => {
            draft.api_version = version;
            manifest
        }
        _ => current,
    }
}

/// Returns true if v1 can express the spec: in v1, policies have no default.
fn is_expressible_in_v1(spec: &Map<String, Value>) -> bool {
    let Some(Value::Object(behavior)) = spec.get("behavior") else { return true };
    behavior.values().all(|rules| rules["policies"].as_array().is_some_and(|all| !all.is_empty()))
}

/// A v1 manifest that is equivalent to a v2 spec, except for the default of metrics.
fn to_version_1(draft: &mut Draft, spec: &Map<String, Value>) -> Value {
    let mut spec = spec.clone();
    let mut annotations = Map::new();
    let mut put = |name: &str, value: Value| {
        let name = format!("autoscaling.alpha.kubernetes.io/{name}");
        annotations.insert(name, Value::from(value.to_string()));
    };
    if let Some(Value::Array(mut metrics)) = spec.shift_remove("metrics") {
        // CPU utilization has a separate field and comes last.
        let percent = metrics.last().and_then(|last| {
            let source = &last["resource"];
            let is_cpu = source["name"] == "cpu";
            source["target"].get("averageUtilization").filter(|_| is_cpu).cloned()
        });
        if let Some(percent) = percent.filter(|_| draft.dice.percent(80)) {
            metrics.pop();
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
        }
        put("metrics", metrics.iter().map(metric_to_v2beta1).collect());
    }
    if let Some(behavior) = spec.shift_remove("behavior") {
        put("behavior", behavior);
    }
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": HPA, "annotations": annotations },
        "spec": spec,
    })
}

/// The form of v2beta1: metrics in the form of v1, behavior in an annotation.
fn to_version_2beta1(manifest: &Value) -> Option<Value> {
    let spec = manifest["spec"].as_object().filter(|spec| is_expressible_in_v1(spec))?;
    let mut spec = spec.clone();
    let mut annotations = Map::new();
    if let Some(behavior) = spec.shift_remove("behavior") {
        let name = "autoscaling.alpha.kubernetes.io/behavior".to_owned();
        annotations.insert(name, Value::from(behavior.to_string()));
    }
    if let Some(Value::Array(metrics)) = spec.shift_remove("metrics") {
        let metrics: Vec<Value> = metrics.iter().map(metric_to_v2beta1).collect();
        spec.insert("metrics".to_owned(), Value::Array(metrics));
    }
    Some(json!({
        "apiVersion": "autoscaling/v2beta1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": { "name": manifest["metadata"]["name"], "annotations": annotations },
        "spec": spec,
    }))
}

/// The form of v2beta2: tolerances in annotations.
fn to_version_2beta2(manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    manifest["apiVersion"] = json!("autoscaling/v2beta2");
    for (direction, name) in [("scaleUp", "scale-up"), ("scaleDown", "scale-down")] {
        let rules = manifest["spec"].get_mut("behavior").and_then(|it| it.get_mut(direction));
        let rules = rules.and_then(Value::as_object_mut);
        if let Some(tolerance) = rules.and_then(|rules| rules.shift_remove("tolerance")) {
            let name = format!("autoscaling.alpha.kubernetes.io/{name}-tolerance");
            manifest["metadata"]["annotations"][name] = tolerance;
        }
    }
    manifest
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_autoscaler_models::hpa::{ApiVersion, decode_spec};
    use kube_autoscaler_models::rules::Release;
    use kube_lockstep_scenario::Scenario;

    /// No server accepts these versions, and no engine receives them: the parser of scenarios
    /// converts them to v2.
    #[test]
    fn an_hpa_has_the_same_meaning_in_removed_versions() {
        let mut compared = 0;
        for index in 0..600 {
            let made = super::super::scenario(5, index, Release::NEWEST, &[]);
            let manifest = made.hpas[0].manifest.clone();
            let Ok((spec, ApiVersion::V2)) = decode_spec(&manifest) else { continue };
            let older = [to_version_2beta1(&manifest), Some(to_version_2beta2(&manifest))];
            for older in older.into_iter().flatten() {
                let mut made = made.clone();
                made.hpas[0].manifest = older;
                let made = Scenario { timeline: Vec::new(), ..made };
                let text = scenario::to_yaml(&made, None);
                let no_files = |_: &str| Err("there is no other file".into());
                let read = scenario::parse("made.yaml", &text, &no_files);
                let read = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
                let again = decode_spec(&read.hpas[0].manifest).map(|(spec, _)| spec);
                let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
                let plain = |mut spec: kube_autoscaler_models::api::HpaSpec| {
                    spec.behavior = spec.behavior.filter(|it| *it != Default::default());
                    spec
                };
                assert_eq!(plain(again), plain(spec.clone()), "{text}");
                compared += 1;
            }
        }
        assert!(compared > 700, "{compared}");
    }
}
