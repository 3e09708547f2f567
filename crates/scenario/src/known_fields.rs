//! The fields that the maps of a scenario can have. The types of the file name those that only some
//! scenarios can have, and the decoder reports them.

use Requirement::{AVpa, AnHpa, NoHpa, NoVpa};

use super::action::TimelineEvent;
use super::autoscalers::Autoscalers;
use super::expectation::{Expectation, ExpectedSeries};
use super::hints::{on_unknown_field, unknown_field};
use super::metrics::Metrics;
use super::raw::{ScenarioFile, Workload};
use super::vpa::VpaExpectation;
use crate::diagnostic::Diagnostic;

/// The scenarios that can have a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Requirement {
    AnHpa,
    NoHpa,
    AVpa,
    NoVpa,
    /// The type does not have the field; there is only a hint on it.
    Never,
}

impl Requirement {
    /// Returns true if a scenario with these autoscalers meets the requirement.
    fn is_met(self, autoscalers: Autoscalers) -> bool {
        match self {
            AnHpa => autoscalers != Autoscalers::Vpas,
            NoHpa => autoscalers == Autoscalers::Vpas,
            AVpa => autoscalers != Autoscalers::Hpas,
            NoVpa => autoscalers == Autoscalers::Hpas,
            Requirement::Never => false,
        }
    }
}

/// Fields of a type that not all scenarios can have. A field with several requirements has several
/// rules.
pub(crate) struct FieldRule {
    requires: Requirement,
    fields: &'static [&'static str],
    hint: Option<&'static str>,
}

impl FieldRule {
    pub(crate) const fn new(requires: Requirement, fields: &'static [&'static str]) -> FieldRule {
        FieldRule { requires, fields, hint: None }
    }

    /// Sets the hint on the fields, which by default is that on unknown fields.
    pub(crate) const fn hint(self, hint: &'static str) -> FieldRule {
        FieldRule { hint: Some(hint), ..self }
    }
}

/// The rules of types, by the names that serde knows.
const RULES: [(&str, &[FieldRule]); 7] = [
    ("ScenarioFile", ScenarioFile::RULES),
    ("Workload", Workload::RULES),
    ("Metrics", Metrics::RULES),
    ("TimelineEvent", TimelineEvent::RULES),
    ("Expectation", Expectation::RULES),
    ("ExpectedSeries", ExpectedSeries::RULES),
    ("VpaExpectation", VpaExpectation::RULES),
];

/// The rules on the fields of a type in a scenario.
#[derive(Clone, Copy)]
pub(crate) struct KnownFields {
    rules: &'static [FieldRule],
    autoscalers: Autoscalers,
}

/// A field that a map can't have.
pub(crate) enum Refused {
    /// The type does not have the field.
    Unknown(Diagnostic),
    /// The type has the field, but not in a scenario with these autoscalers.
    Impossible(Diagnostic),
}

impl KnownFields {
    /// The rules of a type, by the name that serde knows. `None`: the type has no rules.
    pub(crate) fn in_type(name: &str, autoscalers: Autoscalers) -> Option<KnownFields> {
        let (_, rules) = RULES.iter().find(|(type_name, _)| *type_name == name)?;
        Some(KnownFields { rules, autoscalers })
    }

    /// The first rule that forbids a field.
    fn unmet(&self, field: &str) -> Option<&'static FieldRule> {
        let is_unmet = |rule: &&FieldRule| !rule.requires.is_met(self.autoscalers);
        self.rules.iter().filter(is_unmet).find(|rule| rule.fields.contains(&field))
    }

    /// The fields with rules that other scenarios can have, but this one can't.
    pub(crate) fn impossible(self) -> impl Iterator<Item = &'static str> {
        let rules = self.rules.iter().filter(|rule| rule.requires != Requirement::Never);
        let fields = rules.flat_map(|rule| rule.fields).copied();
        fields.filter(move |field| self.unmet(field).is_some())
    }

    /// Checks the name of a field. `fields`: all those of the type.
    pub(crate) fn check(self, field: &str, fields: &[&str]) -> Result<(), Refused> {
        let unmet = self.unmet(field);
        let hint = unmet.and_then(|rule| rule.hint);
        let unknown = || {
            let possible = |name: &&str| self.unmet(name).is_none();
            let fields: Vec<&str> = fields.iter().copied().filter(possible).collect();
            let hint = hint.map(Into::into).or_else(|| on_unknown_field(field, &fields));
            unknown_field(field, hint)
        };
        if !fields.contains(&field) {
            return Err(Refused::Unknown(unknown()));
        }
        let unsupported = |subject: &str, other: &str| {
            let what = format!("`{field}` is not supported in a scenario with {subject}");
            let other = format!("remove it, or remove the {other}");
            Diagnostic::new(what).hint(hint.map_or(other, str::to_owned))
        };
        Err(Refused::Impossible(match unmet.map(|rule| rule.requires) {
            None => return Ok(()),
            Some(NoVpa) => unsupported("a VPA", "VPA"),
            Some(NoHpa) => unsupported("an HPA and a VPA", "HPA"),
            Some(AnHpa | AVpa | Requirement::Never) => unknown(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::names;

    #[test]
    fn rules_name_fields_of_their_types() {
        let wrong = |rules: &'static [FieldRule], fields: &[&str]| -> Vec<&str> {
            let rules = rules.iter().filter(|rule| rule.requires != Requirement::Never);
            let named = rules.flat_map(|rule| rule.fields).copied();
            named.filter(|name| !fields.contains(name)).collect()
        };
        // Hints on fields of the workload that are often written one level too high.
        let above_workload = ["scaleDownOrder", "victims"];
        assert_eq!(wrong(ScenarioFile::RULES, names::<ScenarioFile>()), above_workload);
        assert_eq!(wrong(Workload::RULES, names::<Workload>()), ["victims"]);
        assert_eq!(wrong(Metrics::RULES, names::<Metrics>()), [""; 0]);
        assert_eq!(wrong(TimelineEvent::RULES, names::<TimelineEvent>()), [""; 0]);
    }

    #[test]
    fn a_scenario_with_an_hpa_and_a_vpa_has_no_fields_of_one_alone() {
        let refused = |field: &str, autoscalers| {
            let known = KnownFields::in_type("TimelineEvent", autoscalers).expect("rules");
            known.check(field, names::<TimelineEvent>()).is_err()
        };
        for (field, hpas, vpas, both) in [
            ("scale", false, false, false),
            ("metricEmpty", false, true, false),
            ("metricsSlow", false, true, true),
            ("oomKill", true, false, false),
            ("relabel", true, false, true),
        ] {
            let found = [Autoscalers::Hpas, Autoscalers::Vpas, Autoscalers::HpasAndVpa]
                .map(|autoscalers| refused(field, autoscalers));
            assert_eq!(found, [hpas, vpas, both], "{field}");
        }
    }
}
