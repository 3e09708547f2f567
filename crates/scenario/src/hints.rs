//! Hints on fields that a map does not have: the type to which the field belongs names its place.

use crate::action::Action;
use crate::deprecated::new_name;
use crate::diagnostic::{Diagnostic, Hint, Kind};
use crate::error::{nearest, suggest};
use crate::event::names;
use crate::manifest;
use crate::metrics::{self, Metrics};
use crate::raw::{self, ScenarioFile};
use crate::workload;

/// The correct place of fields that are often written one level too high or too low.
pub(crate) struct CorrectPlace {
    /// The place, after "belongs".
    pub place: &'static str,
    pub fields: &'static [&'static str],
}

/// The problem of a field that a map with other fields does not have.
pub(crate) fn unknown_field(field: &str, hint: Option<Hint>) -> Diagnostic {
    Diagnostic::new(format!("unknown field `{field}`"))
        .with_hint(hint)
        .kind(Kind::UnknownField(field.to_owned()))
}

/// The correct place of an unknown field, or the most similar one of the known fields.
pub(crate) fn on_unknown_field(field: &str, known: &[&str]) -> Option<Hint> {
    let elsewhere = elsewhere(field, known).map(|place| match new_name(field) {
        Some(new) => format!("`{field}` is the old name of `{new}`, which belongs {place}").into(),
        None => format!("`{field}` belongs {place}").into(),
    });
    elsewhere.or_else(|| suggest(field, known.iter().copied()))
}

/// The correct place of actions.
const IN_TIMELINE: &str = "to an event, in the list `timeline`";

/// The correct place of `metricMissing` in the usage of a resource.
const IN_TIMELINE_FOR_A_RESOURCE: &str =
    "to an event, in the list `timeline`; for cpu and memory, use `metricsMissing` there";

/// The correct place of a field that is known, but not valid here.
fn elsewhere(field: &str, here: &[&str]) -> Option<&'static str> {
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
    let actions = CorrectPlace { place: IN_TIMELINE, fields: names::<Action>() };
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
