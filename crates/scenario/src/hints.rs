//! Hints on fields that a map does not have: the type of the map, or the type to which the field
//! belongs, names them.

use crate::action::Action;
use crate::diagnostic::{Diagnostic, Kind, Place};
use crate::error::nearest;
use crate::event::variants;
use crate::expectation::{Expectation, ExpectedSeries};
use crate::manifest;
use crate::metrics::{self, Metrics};
use crate::node::Node;
use crate::raw::{self, ScenarioFile};
use crate::vpa::raw::{VpaScenarioFile, VpaWorkload};
use crate::vpa::{VpaAction, VpaExpectation};
use crate::workload;

/// A hint on fields that a type does not have, because they are those of another type.
pub(crate) struct HintOnFields {
    /// The fields.
    pub fields: &'static [&'static str],
    /// The meaning of the fields, or the solution.
    pub hint: &'static str,
}

/// The correct place of fields that are often written one level too high or too low.
pub(crate) struct CorrectPlace {
    /// The place, after "belongs".
    pub place: &'static str,
    /// The fields.
    pub fields: &'static [&'static str],
}

/// The hints of types, by the names that serde knows.
const OF_TYPES: [(&str, &[HintOnFields]); 6] = [
    ("ScenarioFile", ScenarioFile::HINTS),
    ("VpaScenarioFile", VpaScenarioFile::HINTS),
    ("VpaWorkload", VpaWorkload::HINTS),
    ("Expectation", Expectation::HINTS),
    ("ExpectedSeries", ExpectedSeries::HINTS),
    ("VpaExpectation", VpaExpectation::HINTS),
];

/// The problem of a value of a type, with the type's own hint on an unknown field, if it has one.
pub(crate) fn of_type(problem: Diagnostic, type_name: &str, node: &Node) -> Diagnostic {
    let Kind::UnknownField(field) = &problem.kind else { return problem };
    let place =
        node.entry(field).map(|(key, _)| Place { file: None, line: key.line, column: key.column });
    // The field may be one of a map in this map.
    if place.is_none() || place.as_ref() != problem.place.as_deref() {
        return problem;
    }
    let hints = OF_TYPES.iter().find(|(name, _)| *name == type_name).map(|(_, hints)| *hints);
    let hint = hints.unwrap_or_default().iter().find(|it| it.fields.contains(&field.as_str()));
    match hint {
        Some(HintOnFields { hint, .. }) => problem.hint(*hint),
        None => problem,
    }
}

/// The hint for an action of the other kind of scenario: with an HPA, or with a VPA.
pub(crate) fn of_another_timeline(field: &str, here: &[&str]) -> Option<&'static str> {
    let of_hpa = variants::<Action>().contains(&field);
    let of_vpa = variants::<VpaAction>().contains(&field);
    if of_hpa && here.contains(&"restartRecommender") {
        Some("remove the event: this action requires an HPA")
    } else if of_vpa && here.contains(&"restartController") {
        Some("the scenario has no VPA: add `vpa`, or remove the event")
    } else {
        None
    }
}

/// The correct place of actions.
const IN_TIMELINE: &str = "to an event, in the list `timeline`";

/// The correct place of `metricMissing` in the usage of a resource.
const IN_TIMELINE_FOR_A_RESOURCE: &str =
    "to an event, in the list `timeline`; for cpu and memory, use `metricsMissing` there";

/// The correct place of a field that is known, but not valid here.
pub(crate) fn elsewhere(field: &str, here: &[&str]) -> Option<&'static str> {
    // The usage of the containers of a pod is not a field of all metrics.
    if field == "containers" && here.contains(&"perPod") {
        return None;
    }
    if nearest(field, here).is_some() {
        return None;
    }
    if field == "metricMissing" && here.contains(&"perPod") && here.contains(&"containers") {
        return Some(IN_TIMELINE_FOR_A_RESOURCE);
    }
    let own =
        [Metrics::PLACE, metrics::Sampling::PLACE, raw::Controller::PLACE, manifest::TARGET_PLACE];
    let lists: [&[CorrectPlace]; 5] =
        [&own, metrics::USAGE_PLACES, workload::PLACES, manifest::PLACES, ScenarioFile::PLACES];
    let actions = CorrectPlace { place: IN_TIMELINE, fields: variants::<Action>() };
    let mut places = lists.into_iter().flatten().chain([&actions]);
    places.find_map(|place| place.of(field, here)).flatten()
}

/// The correct place of a field in the manifest of an HPA, if it is not valid here.
pub(crate) fn elsewhere_in_hpa(field: &str, here: &[&str]) -> Option<&'static str> {
    if nearest(field, here).is_some() {
        return None;
    }
    manifest::PLACES.iter().find_map(|place| place.of(field, here)).flatten()
}

impl CorrectPlace {
    /// The place of a field. The inner value is `None` if the map has another field of the place:
    /// it is at the right place, but can't have the field. The outer one is `None` for fields of
    /// other places.
    fn of(&self, field: &str, here: &[&str]) -> Option<Option<&'static str>> {
        let is_here = || self.fields.iter().any(|other| here.contains(other));
        self.fields.contains(&field).then(|| (!is_here()).then_some(self.place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_at_the_wrong_place_has_a_hint() {
        let in_entry = ["name", "perPod"];
        assert_eq!(elsewhere("metricMissing", &in_entry), Some(IN_TIMELINE));
        assert_eq!(elsewhere("metricsMissing", &["hpa", "metrics", "until"]), Some(IN_TIMELINE));
        assert_eq!(elsewhere("metricsMissing", &["at", "for", "podsDeleted"]), None);
        assert_eq!(elsewhere("quota", &in_entry), Some("under `workload`"));
        assert_eq!(elsewhere("quota", &["replicas", "podLabels"]), None);
    }
}
