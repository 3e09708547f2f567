//! The search for better settings of an HPA.

use std::sync::Arc;

use kube_autoscaler_models::rules::Release;
use kube_lockstep_predict::Scenario;
use kube_lockstep_report::bound::Bounds;
use kube_lockstep_report::html::front_chart;
use kube_lockstep_tune::{Setting, Subject, Tune};
use serde_json::{Value, json};

use crate::{Progress, Refused, Watch};

/// What to search for.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Search {
    /// The bounds, such as `missing<=0.1,above<=5m`. Empty: no worse than the current setting.
    objective: String,
    /// The largest number of settings to predict.
    settings: usize,
}

/// The best setting with its chart, the named settings of the chart, and the changed manifests.
pub(crate) fn tuned(
    scenario: &Arc<Scenario>,
    release: Release,
    search: &Search,
    watch: Watch<'_>,
) -> Result<Value, Refused> {
    if scenario.vpa.is_some() {
        let what = "the search in the page supports no VPAs; `kube-lockstep tune` does";
        return Err(Refused::new(what.to_owned()));
    }
    let objective = search.objective.trim();
    let mut tune = Tune::new(scenario.clone()).release(release);
    if !objective.is_empty() {
        let objective: Bounds = objective.parse().map_err(Refused::new)?;
        tune = tune.objective(objective);
    }
    let watched = |it: kube_lockstep_tune::Progress| {
        watch(Progress { done: it.done as u64, most: it.most as u64 });
        true
    };
    let tuned = tune.settings(search.settings).run_watched(&watched).map_err(Refused::new)?;
    let release = release.to_string();
    let subject = Subject { scenario, release: &release };
    let named = |(name, setting): (String, &Setting)| json!({ "name": name, "about": setting.text(), "figures": setting.figures });
    let shown: Vec<Value> = tuned.shown().into_iter().map(named).collect();
    Ok(json!({
        "body": front_chart(&tuned.chart(&subject)),
        "isMet": tuned.is_met(),
        "settings": shown,
        "patches": tuned.patches,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    /// Searches better settings for the scenario template.
    fn ask(objective: &str) -> Value {
        let text = include_str!("../../src/cli/init/template.yaml");
        let request = json!({
            "method": "tune", "path": "scenario.yaml", "text": text, "release": "1.37",
            "objective": objective, "settings": 60,
        });
        serde_json::from_str(&crate::answer(&request.to_string(), &|_| {})).expect("JSON")
    }

    #[test]
    fn the_best_setting_has_fewer_pod_hours_than_the_current_one() {
        let answer = ask("");
        assert_eq!(answer["isMet"], true, "{answer}");
        let settings = answer["settings"].as_array().expect("a list");
        let hours = |name: &str| {
            let found = settings.iter().find(|it| it["name"] == name);
            found.and_then(|it| it["figures"]["podHours"].as_f64())
        };
        assert!(hours("best") < hours("current") && hours("best").is_some(), "{settings:?}");
        let patch = &answer["patches"][0];
        assert_eq!(patch["hpa"], "web", "{patch}");
        assert!(patch["patch"]["spec"].is_object(), "{patch}");
        assert!(answer["body"].as_str().is_some_and(|body| body.contains("<svg")));
    }

    #[test]
    fn an_objective_can_be_invalid_or_unmet() {
        let wrong = ask("mising<=3");
        let what = wrong["problems"][0]["what"].as_str().expect("a problem");
        assert!(what.contains("there is no figure `mising`"), "{what}");
        assert_eq!(ask("pod-hours<=0.01")["isMet"], false);
    }
}
