//! The result of a search.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::axis::Axis;
use super::evaluate::Measured;
use super::search::Point;
use kube_lockstep_manifests::field::FieldPath;
use kube_lockstep_report::bound::Bounds;
use kube_lockstep_report::comparison::Figures;

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
    pub changes: Vec<Change>,
    /// The figures over the whole load.
    #[serde(flatten)]
    pub figures: Figures,
    /// The number of days that keep the objective.
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
    /// The number of days that keep the objective.
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
    /// The setting with the least cost of those that keep the objective. None: none of them does.
    pub best: Option<Setting>,
    /// The best setting without each of its changes.
    pub contributions: Vec<Without>,
    /// The checks of the best setting.
    pub checks: Vec<Check>,
    /// The settings that no other one improves in both figures, by cost. Of these, a part keeps the
    /// objective.
    pub front: Vec<Setting>,
    /// The fields that were varied, with all values.
    pub varied: Vec<Varied>,
    /// The number of settings that were evaluated.
    pub evaluated: usize,
    /// The number of those that an API server rejects, or that have no deterministic outcome.
    pub invalid: usize,
    /// The number of settings in the grid.
    pub grid: u64,
    /// True if the whole grid was evaluated.
    pub is_exhaustive: bool,
    /// True if the search was interrupted.
    pub is_interrupted: bool,
    /// The number of days of the load; 1 for less than two days.
    pub days: usize,
    /// The best setting as a merge patch, for each HPA that it changes.
    pub patches: Vec<Patch>,
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
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Patch {
    /// The name of the HPA.
    pub hpa: String,
    /// The fields that change.
    pub patch: Value,
    /// The whole manifest after the change.
    pub manifest: Value,
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

/// The number of days that keep the objective.
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
        hpa: axis.path.hpa.clone(),
        path: axis.path.to_string(),
        from: axis.values[axis.current].clone(),
        to: axis.values[index].clone(),
    }
}

/// The merge patch of the fields of an HPA that differ. A list is replaced as a whole.
pub(crate) fn merge_patch(paths: &[&FieldPath], manifest: &Value) -> Value {
    let mut patch = json!({});
    for path in paths {
        let mut fields = Vec::new();
        let (mut from, path) = (manifest, path.to_string());
        for part in path.split('.').take_while(|part| part.parse::<usize>().is_err()) {
            fields.push(part);
            from = &from[part];
        }
        let mut into = &mut patch;
        for field in fields {
            if !into.is_object() {
                *into = Value::Object(Map::new());
            }
            into = &mut into[field];
        }
        *into = from.clone();
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_has_whole_lists_and_removes_fields() {
        let manifest = json!({ "spec": {
            "maxReplicas": 20,
            "metrics": [{ "resource": { "target": { "averageUtilization": 80 } } }],
            "behavior": { "scaleUp": { "policies": null, "selectPolicy": "Max" } },
        } });
        let paths = [
            "spec.maxReplicas",
            "spec.metrics.0.resource.target.averageUtilization",
            "spec.behavior.scaleUp.policies",
        ];
        let paths = paths.map(|path| FieldPath::parse(path).expect("a path"));
        let expected = json!({ "spec": {
            "maxReplicas": 20,
            "metrics": manifest["spec"]["metrics"],
            "behavior": { "scaleUp": { "policies": null } },
        } });
        assert_eq!(merge_patch(&paths.iter().collect::<Vec<_>>(), &manifest), expected);
    }
}
