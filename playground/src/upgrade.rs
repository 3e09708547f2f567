//! The search for the differences of the HPAs of a scenario between two releases.

use std::sync::Arc;

use kube_autoscaler_models::flags::GateSetting;
use kube_autoscaler_models::rules::Release;
use kube_lockstep_manifests::Manifests;
use kube_lockstep_predict::Scenario;
use kube_lockstep_report::overview::Overview;
use kube_lockstep_scenario::tree_to_yaml;
use kube_lockstep_upgrade::{Findings, Group, Notes, Report, Upgrade};
use serde_json::{Value, json};

use crate::request::Subject;
use crate::{Item, Progress, Refused, Watch};

/// The changes between two releases that affect the HPAs, each with an example. `lines` is the
/// output of `kube-lockstep upgrade --format json`.
pub(crate) fn searched(
    scenario: &Scenario,
    subject: &Subject,
    [one, other]: [Release; 2],
    ticks: u64,
    watch: Watch<'_>,
) -> Result<Value, Refused> {
    if one == other {
        return Err(Refused::new("choose two different releases"));
    }
    let setting =
        |(name, on): (&String, &bool)| GateSetting { component: None, name: name.clone(), on: *on };
    let gates: Vec<GateSetting> = scenario.gate_overrides.iter().map(setting).collect();
    let upgrade = Upgrade {
        from: one.min(other),
        to: one.max(other),
        from_gates: gates.clone(),
        to_gates: gates,
        ticks,
        seed: 0,
    };
    let manifests = Manifests::of_scenario(scenario, &subject.text)?;
    let scenario = Arc::new(of_manifests(scenario));
    let findings = Findings::new(&manifests, &upgrade);
    let notes = Notes::new(&manifests.hpas, &scenario, &findings, &upgrade);
    let search = || {
        let watch = |done: u64| {
            watch(Progress { done: done.min(ticks), most: ticks });
            true
        };
        upgrade.search_watched(&scenario, true, &watch)
    };
    let subjects = [kube_lockstep_upgrade::Subject {
        names: manifests.hpas.iter().map(|hpa| hpa.name.to_string()).collect(),
        file: scenario.path.clone(),
        line: scenario.line,
        known: notes.effect(),
        must_be_rewritten: notes.must_be_rewritten(),
        searched: notes.can_be_searched().then(search),
        notes: notes.all(),
    }];
    let mut groups = Group::all(&upgrade, &subjects);
    for group in &mut groups {
        group.example = upgrade.example(&scenario, &group.difference);
    }
    let report = Report {
        upgrade: &upgrade,
        subjects: &subjects,
        groups: &groups,
        general: &[],
        invalid: &[],
    };
    let mut lines = Vec::new();
    report.write_json(&mut lines).map_err(|error| Refused::new(error.to_string()))?;
    let Overview { paragraphs, items } = report.overview();
    // The items have the order of the groups by effect.
    groups.sort_by_key(|group| std::cmp::Reverse(group.effect));
    let item = |(item, group): (_, &Group)| {
        let example = group.example.as_ref();
        Item { item, scenario: example.map(|example| tree_to_yaml(&example.tree)) }
    };
    let items: Vec<Item> = items.into_iter().zip(&groups).map(item).collect();
    Ok(json!({
        "paragraphs": paragraphs,
        "items": items,
        "lines": String::from_utf8_lossy(&lines),
    }))
}

/// The scenario as if it were made from manifests: what the search generates has no expectations.
fn of_manifests(scenario: &Scenario) -> Scenario {
    Scenario {
        expect: Vec::new(),
        search: None,
        covers: Vec::new(),
        vpa: None,
        is_of_manifests: true,
        ..scenario.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn ask(text: &str, from: &str, to: &str) -> Value {
        let request = json!({
            "method": "upgrade", "path": "scenario.yaml", "text": text, "release": from,
            "with": to, "ticks": 5000,
        });
        serde_json::from_str(&crate::answer(&request.to_string(), &|_| {})).expect("JSON")
    }

    #[test]
    fn a_change_has_an_example_that_shows_it() {
        let template = include_str!("../../src/cli/init/template.yaml");
        let answer = ask(template, "1.32", "1.33");
        let items = answer["items"].as_array().expect("items");
        let is_tolerance = |item: &&Value| {
            item["title"].as_str().is_some_and(|title| title.contains("two tolerance bounds"))
        };
        let item = items.iter().find(is_tolerance).expect("the change of the tolerance");
        assert_eq!(item["about"], "Other replicas", "{item}");
        let compared = json!({
            "method": "compare", "path": "scenario.yaml", "text": item["scenario"],
            "release": "1.32", "with": "1.33",
        });
        let compared = crate::answer(&compared.to_string(), &|_| {});
        let compared: Value = serde_json::from_str(&compared).expect("JSON");
        assert_eq!(compared["same"], false, "{item}");
    }

    #[test]
    fn a_release_that_rejects_an_hpa_is_named_without_a_search() {
        let rollouts = include_str!("../../fixtures/search/rollouts-ratchet-upwards.yaml");
        let zero = rollouts.replace("minReplicas: 2", "minReplicas: 0");
        let answer = ask(&zero, "1.35", "1.37");
        let text = answer["paragraphs"].to_string();
        assert!(text.contains("HPAScaleToZero is off"), "{text}");
        assert_eq!(ask(rollouts, "1.35", "1.35")["problems"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn expectations_and_a_search_do_not_prevent_the_search() {
        let fight = include_str!("../../fixtures/search/two-hpas-fight.yaml");
        let answer = ask(fight, "1.25", "1.26");
        let text = answer["paragraphs"].to_string();
        assert!(text.contains("AmbiguousSelector"), "{text}");
        assert!(answer["items"].as_array().is_some_and(|items| !items.is_empty()), "{answer}");
    }
}
