//! The result of a search.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::axis::Axis;
use super::evaluate::Measured;
use super::search::Point;
use kube_lockstep_manifests::AutoscalerKind;
use kube_lockstep_report::bound::Bounds;
use kube_lockstep_report::figures::Figures;
use kube_lockstep_sim::run::Note;

/// A field that a setting changes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    /// The name of the HPA, if it is one of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpa: Option<String>,
    /// The path of the field.
    pub path: String,
    /// The current value; null if the field is not set.
    pub from: Value,
    /// The value of the setting.
    pub to: Value,
}

/// A setting with its figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// The changes from the current setting.
    #[serde(rename = "changedFields")]
    pub changes: Vec<Change>,
    /// The figures over the whole load.
    #[serde(flatten)]
    pub figures: Figures,
    /// The number of days that meet the objective.
    pub days_kept: usize,
    #[serde(skip)]
    pub(crate) point: Point,
}

/// The best setting without one of its changes.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Without {
    /// The change that is left out.
    pub change: Change,
    /// The figures without it. None: the setting is invalid without it.
    pub figures: Option<Figures>,
    /// The number of days that meet the objective.
    pub days_kept: usize,
}

/// A check of the best setting under other conditions than those of the search.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The conditions, for example `day 2` or `start-up of 40s`.
    pub condition: String,
    /// The figures that break the objective, for example `missing 0.31, limit 0.1`. Empty: it is
    /// kept.
    pub broken: Vec<String>,
}

/// The result of a search.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tuned {
    /// The objective, as it is given on the command line.
    pub objective: String,
    /// The name of the figure that is minimized.
    pub minimized: &'static str,
    /// The name of the figure that is the other axis of the front.
    pub risk: &'static str,
    /// The current setting.
    pub current: Setting,
    /// The setting with the least cost of those that meet the objective. None: none of them does.
    pub best: Option<Setting>,
    /// The best setting without each of its changes.
    pub contributions: Vec<Without>,
    /// The checks of the best setting.
    pub checks: Vec<Check>,
    /// The number of settings with different figures that meet the objective on all days.
    pub kept_settings: usize,
    /// The number of settings that were checked until one passed all checks.
    pub checked_settings: usize,
    /// Why the controller can't scale any HPA with any setting: the error of its reconciles. There
    /// is no best setting then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The metrics whose load is that of each pod, so that fewer pods have a lower load.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads_per_pod: Vec<String>,
    /// The settings that no other one improves in both figures, by cost. Of these, a part keeps the
    /// objective.
    pub front: Vec<Setting>,
    /// The fields that were varied, with all values.
    pub varied: Vec<Varied>,
    /// The number of settings that were evaluated.
    pub evaluated: usize,
    /// The number of those that an API server rejects, or that have no deterministic outcome.
    pub invalid: usize,
    /// Why one of these is invalid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invalid_reason: Option<String>,
    /// The number of settings in the grid.
    pub grid: u64,
    /// True if the whole grid was evaluated.
    pub is_exhaustive: bool,
    /// True if the search was interrupted.
    pub is_interrupted: bool,
    /// The number of days of the load; 1 for less than two days.
    pub days: usize,
    /// The best setting as a merge patch, for each autoscaler that it changes.
    pub patches: Vec<Patch>,
    /// Notes on the prediction of the current setting.
    #[serde(skip)]
    pub notes: Vec<Note>,
    /// All settings with figures.
    #[serde(skip)]
    pub(crate) all: Vec<Setting>,
}

/// A field that was varied.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Varied {
    /// The name of the HPA, if it is one of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hpa: Option<String>,
    /// The path of the field.
    pub path: String,
    /// The values; null if the field is not set.
    pub values: Vec<Value>,
}

/// A JSON merge patch (RFC 7396), as `kubectl patch --type merge` reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Patch {
    /// The kind of the autoscaler.
    pub kind: AutoscalerKind,
    /// Its name.
    pub name: String,
    /// The fields that change.
    pub patch: Value,
    /// The whole manifest after the change.
    pub manifest: Value,
}

/// With the name in the field `hpa` or `vpa`.
impl Serialize for Patch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry(self.kind.word(), &self.name)?;
        map.serialize_entry("patch", &self.patch)?;
        map.serialize_entry("manifest", &self.manifest)?;
        map.end()
    }
}

/// The setting of a point.
pub(crate) fn setting(
    axes: &[Axis],
    point: &Point,
    measured: &Measured,
    current: &Measured,
    objective: &Bounds,
) -> Setting {
    Setting {
        changes: changes(axes, point),
        figures: measured.whole,
        days_kept: days_kept(measured, current, objective),
        point: point.clone(),
    }
}

/// The number of days that meet the objective.
pub(crate) fn days_kept(measured: &Measured, current: &Measured, objective: &Bounds) -> usize {
    let days = measured.days.iter().zip(&current.days);
    days.filter(|(day, base)| objective.are_kept(day, base)).count()
}

fn changes(axes: &[Axis], point: &Point) -> Vec<Change> {
    let changed = axes.iter().zip(point).filter(|(axis, index)| axis.current != **index);
    changed.map(|(axis, index)| change(axis, *index)).collect()
}

/// The change of one field.
pub(crate) fn change(axis: &Axis, index: usize) -> Change {
    Change {
        hpa: axis.path.name.clone(),
        path: axis.path.to_string(),
        from: axis.values[axis.current].clone(),
        to: axis.values[index].clone(),
    }
}

/// The merge patch that makes one manifest of another (RFC 7396). A list is replaced as a whole,
/// and `null` removes a field.
pub(crate) fn merge_patch(before: &Value, after: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (before, after) else { return after.clone() };
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new {
        match old.get(name) {
            Some(same) if same == value => {}
            Some(other) => _ = patch.insert(name.clone(), merge_patch(other, value)),
            None => _ = patch.insert(name.clone(), value.clone()),
        }
    }
    Value::Object(patch)
}

/// Removes fields that are not set.
pub(crate) fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_has_whole_lists_and_removes_fields() {
        let before = json!({ "spec": {
            "maxReplicas": 10,
            "minReplicas": 2,
            "metrics": [{ "resource": { "target": { "averageUtilization": 70 } } }],
            "behavior": { "scaleUp": { "policies": [], "selectPolicy": "Max" } },
        } });
        let mut after = json!({ "spec": {
            "maxReplicas": 20,
            "minReplicas": 2,
            "metrics": [{ "resource": { "target": { "averageUtilization": 80 } } }],
            "behavior": { "scaleUp": { "policies": null, "selectPolicy": "Max" } },
        } });
        remove_nulls(&mut after);
        let expected = json!({ "spec": {
            "maxReplicas": 20,
            "metrics": after["spec"]["metrics"],
            "behavior": { "scaleUp": { "policies": null } },
        } });
        assert_eq!(merge_patch(&before, &after), expected);
        // A field that is replaced loses what the new value lacks.
        let (before, after) = (json!({ "a": { "b": 1 } }), json!({ "a": { "c": 2 } }));
        assert_eq!(merge_patch(&before, &after), json!({ "a": { "b": null, "c": 2 } }));
    }
}
