//! Conversion of the selectors in objects to selectors that can be matched.

use super::{Operator, Selector, SelectorError, error, new_requirement};
use crate::api::LabelSelector;

impl Selector {
    /// Converts the selector of an object's field. An absent selector selects nothing, an empty one
    /// everything. Upstream checks the labels in random order; here they are sorted by key.
    ///
    /// # Errors
    /// The first invalid requirement, with upstream's message.
    ///
    /// Upstream: apimachinery, meta/v1/helpers.go, LabelSelectorAsSelector
    pub fn from_label_selector(
        selector: Option<&LabelSelector>,
    ) -> Result<Selector, SelectorError> {
        let Some(selector) = selector else {
            return Ok(Selector::nothing());
        };
        let mut requirements = Vec::new();
        for (key, value) in &selector.match_labels {
            let values = vec![value.clone()];
            requirements.push(new_requirement(key.clone(), Operator::Equals, values)?);
        }
        for expression in &selector.match_expressions {
            let operator = match expression.operator.as_str() {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    return error(format!("{other:?} is not a valid label selector operator"));
                }
            };
            let values = expression.values.clone();
            requirements.push(new_requirement(expression.key.clone(), operator, values)?);
        }
        Ok(Selector::from_requirements(requirements))
    }
}

#[cfg(test)]
mod tests {
    use super::super::WrongNumberFormat;
    use super::*;
    use crate::api::LabelSelectorRequirement;

    fn selector(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        LabelSelector {
            match_labels: [("verb".to_owned(), "GET".to_owned())].into(),
            match_expressions: vec![LabelSelectorRequirement {
                key: key.to_owned(),
                operator: operator.to_owned(),
                values: values.iter().map(|it| (*it).to_owned()).collect(),
            }],
        }
    }

    fn text(key: &str, operator: &str, values: &[&str]) -> Result<String, String> {
        let selector = Selector::from_label_selector(Some(&selector(key, operator, values)));
        selector.map(|it| it.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn requirements_are_sorted_by_key_and_values_are_kept() {
        assert_eq!(text("zone", "In", &["b", "a", "b"]), Ok("verb=GET,zone in (a,b,b)".to_owned()));
        assert_eq!(text("app", "NotIn", &["a"]), Ok("app notin (a),verb=GET".to_owned()));
        assert_eq!(text("app", "Exists", &[]), Ok("app,verb=GET".to_owned()));
        assert_eq!(text("app", "DoesNotExist", &[]), Ok("!app,verb=GET".to_owned()));
    }

    #[test]
    fn label_selector_errors_match_upstream() {
        let error = |key, operator, values: &[&str]| text(key, operator, values).unwrap_err();
        assert_eq!(
            error("app", "In", &[]),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
        );
        assert_eq!(
            error("app", "Exists", &["x"]),
            "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist"
        );
        let older = |key, operator, values: &[&str]| {
            let wrong = Selector::from_label_selector(Some(&selector(key, operator, values)));
            let wrong = wrong.unwrap_err();
            [WrongNumberFormat::Detail, WrongNumberFormat::GoSyntax].map(|it| wrong.in_format(it))
        };
        assert_eq!(
            older("app", "In", &[]),
            [
                "for 'in', 'notin' operators, values set can't be empty",
                "values: Invalid value: []string(nil): for 'in', 'notin' operators, values set \
                 can't be empty"
            ]
        );
        assert_eq!(
            older("app", "Exists", &["x", "y"])[1],
            "values: Invalid value: []string{\"x\", \"y\"}: values set must be empty for exists \
             and does not exist"
        );
        assert_eq!(
            error("app", "Matches", &["x"]),
            "\"Matches\" is not a valid label selector operator"
        );
        assert!(error("", "Exists", &[]).starts_with("key: Invalid value: \"\": name part must"));
        assert!(
            error("a", "In", &["!"]).starts_with("values[0][a]: Invalid value: \"!\": a valid")
        );
    }

    #[test]
    fn an_absent_selector_selects_nothing_and_an_empty_selector_everything() {
        let labels = [("app".to_owned(), "web".to_owned())].into();
        assert!(!Selector::from_label_selector(None).unwrap().matches(&labels));
        let empty = LabelSelector::default();
        assert!(Selector::from_label_selector(Some(&empty)).unwrap().matches(&labels));
        assert_eq!(Selector::from_label_selector(None).unwrap().to_string(), "");
    }
}
