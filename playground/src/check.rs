//! The search for choices with which an expectation of a scenario is not met.

use std::sync::Arc;

use kube_autoscaler_models::rules::Release;
use kube_lockstep_check::{Check, Counterexample};
use kube_lockstep_predict::Scenario;
use kube_lockstep_report::counted;
use kube_lockstep_report::overview::OverviewItem;
use kube_lockstep_scenario::to_yaml;
use serde_json::{Value, json};

use crate::{Item, Progress, Refused, Watch};

/// What the search covered, and the counterexample. `checked` is the output of `kube-lockstep check
/// --format json`.
pub(crate) fn checked(
    scenario: &Arc<Scenario>,
    release: Release,
    most: usize,
    watch: Watch<'_>,
) -> Result<Value, Refused> {
    let check = Check::new(scenario.clone()).release(release).states(most);
    let checked = check.run_watched(&mut |progress| {
        watch(Progress { done: progress.states as u64, most: most as u64 });
        true
    });
    let checked = checked.map_err(Refused::new)?;
    let limit = format!("{}, the limit of this search", counted(most, "state"));
    Ok(json!({
        "paragraphs": checked.summary(&limit),
        "items": checked.counterexample.iter().map(item).collect::<Vec<Item>>(),
        "checked": checked,
    }))
}

fn item(found: &Counterexample) -> Item {
    let choices = found.choices.iter().map(|made| format!("t={}  {}", made.at, made.what));
    let item = OverviewItem {
        title: found.headline(),
        link: String::new(),
        about: String::new(),
        lines: choices.chain([found.what.clone()]).collect(),
    };
    Item { item, scenario: Some(to_yaml(&found.scenario, None)) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn ask(text: &str, states: usize) -> Value {
        let request = json!({
            "method": "check", "path": "scenario.yaml", "text": text, "release": "1.37",
            "states": states,
        });
        serde_json::from_str(&crate::answer(&request.to_string(), &|_| {})).expect("JSON")
    }

    #[test]
    fn a_counterexample_is_a_scenario_that_does_not_meet_its_expectation() {
        let fight = include_str!("../../fixtures/search/two-hpas-fight.yaml");
        let answer = ask(fight, 1000);
        assert_eq!(answer["checked"]["outcome"], "counterexample", "{answer}");
        let item = &answer["items"][0];
        assert_eq!(item["lines"].as_array().map(Vec::len), Some(3), "{item}");
        let request = json!({
            "method": "predict", "path": "scenario.yaml", "text": item["scenario"],
            "release": "1.37",
        });
        let answer = crate::answer(&request.to_string(), &|_| {});
        let predicted: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(predicted["unmet"].as_array().map(Vec::len), Some(1), "{predicted}");
        assert_eq!(predicted["hasSearch"], false);
    }

    #[test]
    fn the_limit_and_a_missing_search_are_named() {
        let fight = include_str!("../../fixtures/search/two-hpas-fight.yaml");
        let limited = ask(fight, 2);
        assert_eq!(limited["checked"]["outcome"], "tooManyStates");
        let text = limited["paragraphs"][0].as_str().expect("text");
        assert!(text.contains("more than 2 states, the limit of this search"), "{text}");
        let none = ask(include_str!("../../src/cli/init/template.yaml"), 2);
        let what = none["problems"][0]["what"].as_str().expect("a problem");
        assert!(what.contains("has no `search`"), "{what}");
    }
}
