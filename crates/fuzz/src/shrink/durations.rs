//! The durations in the tree of a scenario file.

use serde_json::Value;

use kube_autoscaler_models::time::Span;

/// Fields with durations, by name: `5m` alone could be five minutes or five thousandths. `of` is
/// missing, because the value of a noisy signal has the same name; generated scenarios have no
/// expectations.
const DURATIONS: [&str; 27] = [
    "metricsSlow",
    "cacheLag",
    "at",
    "for",
    "until",
    "age",
    "pending",
    "ready",
    "metrics",
    "termination",
    "readyWhileTerminating",
    "repeat",
    "window",
    "lag",
    "sampleLag",
    "hold",
    "resolution",
    "period",
    "offset",
    "every",
    "from",
    "to",
    "in",
    "within",
    "by",
    "step",
    "length",
];

/// The duration of a field, if the field has one by its name.
pub(super) fn span(name: &str, value: &Value) -> Option<Span> {
    // No number of a flag has the form of a duration.
    let is_flag = name.contains('-') && !name.contains(['.', '/']);
    let text = value.as_str().filter(|_| is_flag || DURATIONS.contains(&name))?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use kube_lockstep_scenario as scenario;

    /// Adds the names of the properties whose schema refers to a duration.
    fn durations<'s>(schema: &'s Value, names: &mut BTreeSet<&'s str>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            if property.to_string().contains("#/$defs/Duration") {
                names.insert(name);
            }
        }
        match schema {
            Value::Object(fields) => fields.values().for_each(|inner| durations(inner, names)),
            Value::Array(items) => items.iter().for_each(|inner| durations(inner, names)),
            _ => {}
        }
    }

    #[test]
    fn each_duration_of_the_schema_is_listed() {
        let schema = serde_json::json!(scenario::schema());
        let mut names = BTreeSet::new();
        durations(&schema, &mut names);
        assert!(names.contains("until"), "{names:?}");
        names.retain(|name| !name.contains('-'));
        names.remove("of");
        assert_eq!(names, BTreeSet::from(DURATIONS));
    }

    #[test]
    fn flags_are_durations_if_they_have_their_form() {
        let is_duration = |name, text: &str| span(name, &Value::from(text)).is_some();
        assert!(is_duration("recommender-interval", "2m"));
        assert!(is_duration("horizontal-pod-autoscaler-sync-period", "30s"));
        assert!(!is_duration("oom-bump-up-ratio", "1.5"));
        assert!(!is_duration("pod-update-threshold", "0.05"));
        assert!(!is_duration("cpu", "2m"));
    }
}
