//! Known and explained disagreements (`fixtures/divergences.yaml`).
//!
//! An entry that agrees or matches nothing fails the run.

use serde::Deserialize;

use super::FieldDifference;

/// The file `divergences.yaml`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Its entries.
    #[serde(default)]
    pub divergences: Vec<KnownDisagreement>,
}

/// An accepted disagreement between the model and upstream, with its reason.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDisagreement {
    /// The scenario's id.
    pub scenario: String,
    /// The releases with the disagreement, for example `1.37`. Default: all.
    #[serde(default)]
    pub releases: Vec<String>,
    /// The field as in reports, or a prefix of it: `status.conditions[ScalingLimited]`.
    pub field: String,
    /// The reason, in one sentence.
    pub reason: String,
    /// A link that explains it.
    pub link: String,
}

impl Known {
    /// Returns the error of the first invalid entry.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let is_empty = |entry: &KnownDisagreement| {
            let texts = [&entry.scenario, &entry.field, &entry.reason, &entry.link];
            texts.iter().any(|text| text.trim().is_empty())
        };
        let number = self.divergences.iter().position(is_empty)? + 1;
        let what = "scenario, field, reason and link are required and must not be empty";
        Some(format!("entry {number} of divergences: {what}"))
    }
}

impl KnownDisagreement {
    /// Returns true if this entry applies to a scenario on a release.
    #[must_use]
    pub fn covers(&self, scenario: &str, release: &str) -> bool {
        self.scenario == scenario
            && (self.releases.is_empty() || self.releases.iter().any(|known| known == release))
    }

    /// Returns true if the entry explains a difference.
    #[must_use]
    pub(crate) fn explains(&self, difference: &FieldDifference) -> bool {
        difference.field.without_run().to_string().starts_with(&self.field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{ConditionField, FieldPath};
    use kube_autoscaler_models::api::ConditionType;
    use kube_lockstep_scenario::decode_file;

    fn entry() -> KnownDisagreement {
        KnownDisagreement {
            scenario: "tolerance/upper-edge".to_owned(),
            releases: vec!["1.32".to_owned()],
            field: "status.conditions[AbleToScale]".to_owned(),
            reason: "a reason".to_owned(),
            link: "https://example.com".to_owned(),
        }
    }

    #[test]
    fn an_entry_covers_only_its_scenario_and_releases() {
        assert!(entry().covers("tolerance/upper-edge", "1.32"));
        assert!(!entry().covers("tolerance/upper-edge", "1.37"));
        assert!(!entry().covers("tolerance/upper-edges", "1.32"));
    }

    #[test]
    fn an_entry_explains_its_field_and_all_subfields() {
        let reason = |type_| {
            let field = FieldPath::Condition(type_, ConditionField::Reason);
            FieldDifference::new(field, "a", "b")
        };
        assert!(entry().explains(&reason(ConditionType::AbleToScale)));
        assert!(!entry().explains(&reason(ConditionType::ScalingActive)));
    }

    #[test]
    fn known_disagreements_are_parsed() {
        let text =
            "divergences:\n  - scenario: a/b\n    field: status\n    reason: so\n    link: x\n";
        let known = decode_file("divergences.yaml", text, Known::flaw).expect("a valid file");
        assert_eq!(known.divergences[0].scenario, "a/b");
        let error = decode_file("divergences.yaml", &text.replace("field", "feild"), Known::flaw);
        let error = error.expect_err("an invalid file").to_string();
        assert!(error.starts_with("divergences.yaml:3:5: unknown field `feild`"), "{error}");
    }
}
